"""Tables in another version: Hudi reads and continues what we upgraded or downgraded, and the other way round."""

from __future__ import annotations

from pathlib import Path

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

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
PAIRS = [(6, 9), (9, 6), (6, 8), (8, 6), (8, 9), (9, 8)]
EVENT_TIME_PAYLOAD = {WRITE + "payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
NO_SERVICES = {"hoodie.compact.inline": "false", "hoodie.clean.automatic": "false"}


def _options(version: int, kind: str) -> dict[str, str]:
    payload = EVENT_TIME_PAYLOAD if version == 6 and kind == "MERGE_ON_READ" else {}
    return {**table_options(version, "id", "region"), WRITE + "table.type": kind, **payload}


def _peers(readers: Readers, version: int) -> list[Peer]:
    return [readers.hudi_12, readers.hudi_015] if version == 6 else [readers.hudi_12]


def _ensure(readers: Readers, table: Path, version: int, model: Model, called: str) -> None:
    opened = Table.open(str(table))
    assert opened.config.table_version == version
    rows = readers.ensure_agree(table, version)
    ensure_same_rows(without_meta(rows), model.rows, called=(called, "model"))
    assert opened.validate() == []


def _payload(version: int, kind: str) -> dict[str, str]:
    return EVENT_TIME_PAYLOAD if version == 6 and kind == "MERGE_ON_READ" else {}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_peers_go_on_with_a_table_we_brought_to_another_version(
    before: int, after: int, kind: str, readers: Readers, tmp_path: Path
) -> None:
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    write_rows(table, "insert", slim_rows(range(30)), _options(before, kind))
    model.upsert(slim_rows(range(30)))
    for turn in (1, 2):
        rows = slim_rows(range(turn, 10 + turn), turn=turn)
        continue_table(table, "upsert", rows)
        model.upsert(rows)
        theirs = slim_rows(range(5 * turn, 12 * turn), turn=turn)
        readers.hudi_12.write(table, "upsert", theirs, {**_payload(before, kind), **NO_SERVICES})
        model.upsert(theirs)
    first = Table.open(str(table)).timeline().completed_writes()[1].requested
    then = Table.open(str(table)).scan(as_of=first).read_all()
    done = Table.open(str(table)).services.upgrade(after)
    assert done is not None
    _ensure(readers, table, after, model, "in the new version")
    ensure_same_rows(Table.open(str(table)).scan(as_of=first).read_all(), then, called=("time travel", "before"))
    for turn, peer in enumerate(_peers(readers, after), start=3):
        theirs = slim_rows(range(turn, 20 + turn), turn=turn)
        peer.write(table, "upsert", theirs, {**_payload(after, kind), **NO_SERVICES})
        model.upsert(theirs)
        ours = slim_rows(range(2 * turn, 25 + turn), turn=turn)
        continue_table(table, "upsert", ours)
        model.upsert(ours)
    _ensure(readers, table, after, model, "continued by all")


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("before", "after"), [(6, 9), (9, 6), (8, 9)])
def test_we_go_on_with_a_table_hudi_brought_to_another_version(
    before: int, after: int, kind: str, readers: Readers, tmp_path: Path
) -> None:
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    write_rows(table, "insert", slim_rows(range(30)), _options(before, kind))
    model.upsert(slim_rows(range(30)))
    continue_table(table, "upsert", slim_rows(range(10), turn=1))
    model.upsert(slim_rows(range(10), turn=1))
    names = {6: "SIX", 8: "EIGHT", 9: "NINE"}
    call = "upgrade_table" if after > before else "downgrade_table"
    readers.hudi_12.ask(
        "sql",
        path=str(table),
        statement=f"CALL {call}(table => '{{t}}', to_version => '{names[after]}')",
        options={"hoodie.metadata.enable": "false"},
    )
    _ensure(readers, table, after, model, "after Hudi's change")
    ours = slim_rows(range(5, 40), turn=2)
    continue_table(table, "upsert", ours)
    model.upsert(ours)
    back = Table.open(str(table)).services.upgrade(before)
    assert back is not None
    _ensure(readers, table, before, model, "brought back by us")


@pytest.mark.parametrize("release", ["0.15.0/mor_archived", "0.15.0/cow_archived", "1.2.0/mor_kitchen_sink"])
def test_golden_tables_read_the_same_in_the_other_version(release: str, readers: Readers, golden) -> None:
    table, _ = golden(release)
    before = Table.open(str(table)).config.table_version
    rows = readers.hudi_12.read(table)
    after = 9 if before == 6 else 6
    Table.open(str(table)).services.upgrade(after)
    found = readers.ensure_agree(table, after)
    ensure_same_rows(found, rows, ["_hoodie_file_name"], called=("in the new version", "before"))
