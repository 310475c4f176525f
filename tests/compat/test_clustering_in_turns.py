"""Clusterings in turns: Hudi carries out our plans, we carry out its plans, each reads what the other has clustered,
goes on with it and cleans it up.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from peers import (
    WRITE,
    Model,
    Peer,
    Readers,
    continue_table,
    ensure_same_rows,
    slim_rows,
    table_options,
    without_meta,
    write_rows,
)

from hoodie import Table
from hoodie.spec import Instant

WRITERS = [(6, "hudi_015"), (8, "hudi_12"), (9, "hudi_12")]
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
PLAN = "hoodie.clustering.plan.strategy"
BY_AMOUNT = {f"{PLAN}.sort.columns": "amount"}
LEFT_ALONE = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
CASES = pytest.mark.parametrize(
    ("version", "writer", "kind"),
    [(*one, kind) for one, kind in zip([*WRITERS, WRITERS[-1]], [*KINDS, *KINDS], strict=True)],
)


def started(table: Path, version: int, kind: str, model: Model, peer: Peer | None = None) -> None:
    """Thirty rows of three commits and an update, by us, or by Hudi."""
    first = {**table_options(version, "id", "region"), WRITE + "table.type": kind, **LEFT_ALONE}
    for number in range(3):
        rows = slim_rows(range(number * 10, number * 10 + 10))
        if peer is not None:
            given = first if number == 0 else LEFT_ALONE
            peer.write(table, "insert", rows, for_peer(given, peer), mode="append" if number else "overwrite")
        elif number:
            continue_table(table, "insert", rows, LEFT_ALONE)
        else:
            write_rows(table, "insert", rows, first)
        model.upsert(rows)
    change(table, model, slim_rows(range(0, 30, 4), 1), peer)


def change(table: Path, model: Model, rows: Any, peer: Peer | None = None) -> None:
    if peer is None:
        continue_table(table, "upsert", rows, LEFT_ALONE)
    else:
        peer.write(table, "upsert", rows, for_peer(LEFT_ALONE, peer))
    model.upsert(rows)


def for_peer(options: dict[str, str], peer: Peer) -> dict[str, str]:
    """The version is asked for where the peer knows more than one."""
    if peer.name.endswith("0.15.0"):
        return {key: value for key, value in options.items() if key != "hoodie.write.table.version"}
    return options | {"hoodie.write.auto.upgrade": "false"}


def call(peer: Peer, table: Path, version: int, op: str) -> Any:
    given = {**LEFT_ALONE, **({} if op == "execute" else BY_AMOUNT)}
    if not peer.name.endswith("0.15.0"):
        given |= {"hoodie.write.auto.upgrade": "false", "hoodie.write.table.version": str(version)}
    options = ",".join(f"{key}={value}" for key, value in given.items())
    statement = f"CALL run_clustering(op => '{op}', table => '{{t}}', options => '{options}')"
    return peer.ask("sql", path=str(table), statement=statement)


def pending(table: Path) -> list[Instant]:
    return list(Table.open(str(table)).timeline().pending())


def ensure(readers: Readers, table: Path, version: int, model: Model, groups: int) -> None:
    """All readers see the rows of the model, in so many file groups, and no check finds a fault."""
    rows = readers.ensure_agree(table, version)
    ensure_same_rows(without_meta(rows), model.rows, called=("all of us", "model"))
    ours = Table.open(str(table))
    assert ours.validate() == []
    assert len(ours.files()) == groups


def regions(model: Model) -> int:
    return len(set(model.rows.column("region").to_pylist()))


@CASES
def test_hudi_goes_on_with_what_we_clustered_and_cleans_it(
    version: int, writer: str, kind: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    started(table, version, kind, model)
    old = {path.name for path in table.rglob("*.parquet") if ".hoodie" not in path.parts}
    done = Table.open(str(table), options=LEFT_ALONE).services.cluster(**BY_AMOUNT)
    assert done is not None
    assert done.files == regions(model)
    ensure(readers, table, version, model, regions(model))
    change(table, model, slim_rows([1, 2, 50], 2), peer)
    once = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
    peer.write(
        table, "upsert", slim_rows([3], 3), for_peer({**LEFT_ALONE, **once, "hoodie.clean.automatic": "true"}, peer)
    )
    model.upsert(slim_rows([3], 3))
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("all of us", "model"))
    assert Table.open(str(table)).validate() == []
    assert not old & {path.name for path in table.rglob("*.parquet")}


@CASES
def test_hudi_carries_out_our_plan(version: int, writer: str, kind: str, readers: Readers, tmp_path: Path) -> None:
    peer: Peer = getattr(readers, writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    started(table, version, kind, model)
    plan = Table.open(str(table), options=LEFT_ALONE).services.cluster(op="schedule", **BY_AMOUNT)
    assert plan is not None
    call(peer, table, version, "execute")
    assert pending(table) == []
    ensure(readers, table, version, model, regions(model))
    change(table, model, slim_rows([1, 2, 50], 2))
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("all of us", "model"))


@CASES
def test_we_carry_out_hudis_plan_and_both_go_on(
    version: int, writer: str, kind: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    started(table, version, kind, model, peer)
    call(peer, table, version, "schedule")
    (planned,) = pending(table)
    done = Table.open(str(table), options=LEFT_ALONE).services.cluster(op="execute")
    assert done is not None
    assert done.instant == planned.requested
    assert done.sorted_by == ("amount",)
    ensure(readers, table, version, model, regions(model))
    change(table, model, slim_rows([1, 2, 50], 2), peer)
    change(table, model, slim_rows([2, 3], 3))
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("all of us", "model"))


@pytest.mark.parametrize(("version", "writer"), [WRITERS[0], WRITERS[-1]])
def test_base_files_joined_by_copying_row_groups_of_ours_and_of_hudis(
    version: int, writer: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    copied = {**LEFT_ALONE, "hoodie.row.group.copy.min.bytes": "0"}
    for by in (None, peer):
        table, model = tmp_path / f"by_{'us' if by is None else 'hudi'}", Model(slim_rows(range(0)).schema)
        started(table, version, "COPY_ON_WRITE", model, by)
        done = Table.open(str(table), options=copied).services.compact_base_files()
        assert done is not None
        assert (done.copied, done.files) == (done.groups, regions(model))
        ensure(readers, table, version, model, regions(model))
        rows = slim_rows([2, 3], 3)  # into files of several row groups, most of which are copied again
        continue_table(table, "upsert", rows, copied)
        model.upsert(rows)
        change(table, model, slim_rows([1, 2, 50], 4), peer)  # by the bloom filters of these footers
        rows = slim_rows(range(60, 70))
        Table.open(str(table), options=copied).append(rows)
        model.upsert(rows)
        planned = Table.open(str(table), options=copied).services.schedule_base_file_compaction()
        assert [one.requested for one in pending(table)] == [planned.requested if planned else None]
        call(peer, table, version, "execute")
        assert pending(table) == []
        ensure(readers, table, version, model, regions(model))


STRATEGIES = {
    "overlap": {f"{PLAN}.class": "ColumnOverlap", f"{PLAN}.overlap.columns": "amount,id"},
    "keys": {f"{PLAN}.class": "KeyRange"},
    "commits": {f"{PLAN}.class": "CommitBased"},
    "curve": {
        f"{PLAN}.sort.columns": "amount,id",
        "hoodie.layout.optimize.strategy": "ZORDER",
        "hoodie.layout.optimize.curve.build.method": "DIRECT",
    },
}


@pytest.mark.parametrize(
    ("version", "writer", "strategy"),
    [(*WRITERS[0], "overlap"), (*WRITERS[1], "keys"), (*WRITERS[2], "commits"), (*WRITERS[2], "curve")],
)
def test_hudi_carries_out_plans_of_other_strategies_with_their_parameters_and_bounds(
    version: int, writer: str, strategy: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    started(table, version, "COPY_ON_WRITE", model)
    ours = Table.open(str(table), options=LEFT_ALONE)
    planned = ours.services.cluster(op="schedule", **{**BY_AMOUNT, **STRATEGIES[strategy]})
    assert planned is not None
    call(peer, table, version, "execute")
    assert pending(table) == []
    ensure(readers, table, version, model, regions(model))
    again = ours.services.cluster(op="schedule", **{**BY_AMOUNT, **STRATEGIES[strategy]})
    assert again is not None, "Hudi did not say that its files are in order"
    assert ours.services.cluster(op="execute") is not None
    ensure(readers, table, version, model, regions(model))
