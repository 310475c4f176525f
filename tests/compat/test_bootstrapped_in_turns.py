"""Bootstrapped tables in turns: Hudi makes one over Parquet files, we write on, and it reads that and writes on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from peers import (
    WRITE,
    Model,
    Peer,
    continue_table,
    ensure_same_rows,
    read_rows,
    slim_rows,
    table_options,
    without_meta,
)

from hoodie import Table
from hoodie.slices.bootstrap import is_skeleton

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
WRITERS = [(6, "hudi_015"), (8, "hudi_12"), (9, "hudi_12")]
SELECTOR = "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector"
EVENT_TIME_PAYLOAD = {WRITE + "payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
NO_SERVICES = {
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


def _source(folder: Path, rows: pa.Table) -> None:
    """Files of other people's making: a folder for each region, which is no column in them."""
    for region in sorted(set(rows["region"].to_pylist())):
        own = rows.filter(pa.compute.equal(rows["region"], region)).drop_columns(["region"])
        (folder / f"region={region}").mkdir(parents=True)
        for number, at in enumerate(range(0, own.num_rows, 5)):
            pq.write_table(own.slice(at, 5), folder / f"region={region}" / f"part-{number}.parquet")


def _options(version: int, table_type: str, source: Path) -> dict[str, str]:
    return {
        **table_options(version, "id", "region"),
        **(EVENT_TIME_PAYLOAD if version == 6 else {}),
        **NO_SERVICES,
        WRITE + "table.type": table_type,
        WRITE + "hive_style_partitioning": "true",
        WRITE + "keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.bootstrap.base.path": str(source),
        "hoodie.bootstrap.mode.selector": SELECTOR,
        "hoodie.bootstrap.parallelism": "2",
    }


def _bootstrapped(peer: Peer, table: Path, version: int, table_type: str, keys: int) -> Model:
    """The rows of a table that the peer bootstrapped over files beside it."""
    source, rows = table.with_name("source"), slim_rows(range(keys))
    model = Model(rows.schema)
    _source(source, rows)
    model.upsert(rows)
    peer.write(table, "bootstrap", rows.slice(0, 0), _options(version, table_type, source), mode="overwrite")
    return model


def _skeletons(table: Path) -> set[str]:
    opened = Table.open(str(table))
    return {one.partition for one in opened.files() if is_skeleton(one, opened.config)}


def _ensure(peer: Peer, table: Path, model: Model) -> None:
    for query in (
        "snapshot",
        *(("read_optimized",) if not any(one.logs for one in Table.open(str(table)).files()) else ()),
    ):
        ensure_same_rows(without_meta(peer.read(table, query)), model.rows, called=(f"{query} of {peer.name}", "model"))
        ensure_same_rows(without_meta(read_rows(table, query=query)), model.rows, called=(f"our {query}", "model"))
    assert Table.open(str(table)).validate() == []


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize(("version", "peer"), WRITERS)
def test_hudi_goes_on_where_we_wrote_over_its_skeletons(
    version: int, peer: str, table_type: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    hudi: Peer = request.getfixturevalue(peer)
    table = tmp_path / "table"
    model = _bootstrapped(hudi, table, version, table_type, keys=36)
    assert len(_skeletons(table)) == 3
    _ensure(hudi, table, model)

    ours, gone = slim_rows([0, 3, 100], turn=1), slim_rows([1, 6], turn=1)  # 0, 3, 6: north; 1, 100: south
    continue_table(table, "upsert", ours, NO_SERVICES)
    continue_table(table, "delete", gone, NO_SERVICES)
    model.upsert(ours)
    model.delete(gone)
    _ensure(hudi, table, model)

    theirs = slim_rows([3, 4, 5, 101], turn=2)
    hudi.write(table, "upsert", theirs, NO_SERVICES)
    model.upsert(theirs)
    _ensure(hudi, table, model)

    if table_type == "MERGE_ON_READ":
        Table.open(str(table)).services.compact()
        _ensure(hudi, table, model)
    more = slim_rows([*range(0, 36, 4), 102], turn=3)
    continue_table(table, "upsert", more, NO_SERVICES)
    model.upsert(more)
    _ensure(hudi, table, model)

    last = slim_rows([0, 7, 8, 103], turn=4)
    hudi.write(table, "upsert", last, NO_SERVICES)
    model.upsert(last)
    _ensure(hudi, table, model)


@pytest.mark.parametrize(("version", "peer"), WRITERS)
def test_hudi_carries_out_our_plan_of_compacting_skeletons(
    version: int, peer: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    hudi: Peer = request.getfixturevalue(peer)
    table = tmp_path / "table"
    model = _bootstrapped(hudi, table, version, "MERGE_ON_READ", keys=18)
    ours = slim_rows(range(18), turn=1)
    continue_table(table, "upsert", ours, NO_SERVICES)
    model.upsert(ours)
    assert Table.open(str(table)).services.schedule_compaction() is not None
    given = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.metadata.enable": "false"}
    if version != 6:
        given |= {"hoodie.write.auto.upgrade": "false", "hoodie.write.table.version": str(version)}
    options = ",".join(f"{key}={value}" for key, value in given.items())
    statement = f"CALL run_compaction(op => 'execute', table => '{{t}}', options => '{options}')"
    hudi.ask("sql", path=str(table), statement=statement)
    assert [one for one in Table.open(str(table)).timeline().pending() if "compaction" in one.action] == []
    _ensure(hudi, table, model)
    assert _skeletons(table) == set()


@pytest.mark.parametrize(("version", "peer"), WRITERS)
def test_hudi_skips_no_rows_of_skeletons_by_our_statistics(
    version: int, peer: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    hudi: Peer = request.getfixturevalue(peer)
    table = tmp_path / "table"
    model = _bootstrapped(hudi, table, version, "COPY_ON_WRITE", keys=36)
    ours = slim_rows([0, 1, 100], turn=1)
    indexed = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
    continue_table(table, "upsert", ours, {**NO_SERVICES, **indexed})
    model.upsert(ours)
    assert _skeletons(table)
    skipping = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
    for condition in ("ts >= 1000", "ts between 20 and 25", "ts = 35", "amount < 1", "name is null", "region = 'east'"):
        found = hudi.read(table, where=condition, options=skipping)
        everything = hudi.read(table, where=condition)
        ensure_same_rows(without_meta(found), without_meta(everything), called=(f"{condition} skipping", "all files"))
        ensure_same_rows(without_meta(found), without_meta(read_rows(table, filter=condition)), called=(peer, "ours"))
    theirs = slim_rows([35, 101], turn=2)
    hudi.write(table, "upsert", theirs, {**NO_SERVICES, **indexed})
    model.upsert(theirs)
    for query in ({}, {"options": skipping}):
        ensure_same_rows(without_meta(hudi.read(table, **query)), model.rows, called=(peer, "model"))
    ensure_same_rows(without_meta(read_rows(table)), model.rows, called=("ours", "model"))
