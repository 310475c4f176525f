"""Queries of changes: how each kind of write tells what it changed."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt, Invalid
from hoodie.logs import HeaderKey, encode_avro_content, encode_block
from hoodie.records import to_avro
from hoodie.spec import V9, BlockKind, LogFileName, State
from hoodie.state.handle import load_handle
from hoodie.table import Table
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.hand_logs import HandLogTable, at
from hoodie.testing.lake import Awake, Lake
from hoodie.testing.lake import row as lake_row

GROUP = ("p0", "a")


def row(key: str, qty: int, written: str | None = None) -> dict[str, object]:
    found: dict[str, object] = {"id": key, "part": "p0", "qty": qty}
    return found if written is None else {**found, "_hoodie_commit_time": written}


def made(profile, mode: str = "DATA_BEFORE_AFTER", **choices) -> HandLogTable:
    cdc = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": mode}
    return HandLogTable(profile, choices={"extra": cdc, **choices})


def clock(table: HandLogTable, second: int) -> str:
    return at(second, 500) if table.profile.stores_completion_time else at(second)


def changes(found: pa.Table) -> list[tuple[str, str, object, object]]:
    """(op, time, quantity before, quantity after), sorted; the text `null` for an image that says so."""
    return sorted(
        (one["op"], one["ts_ms"], quantity(one["before"]), quantity(one["after"])) for one in found.to_pylist()
    )


def quantity(image: str | None) -> object:
    if image is None or image == "null":
        return image or ""
    return json.loads(image)["qty"]


def test_new_base_file_is_all_inserts_with_meta_columns(profile, rows):
    table = made(profile)
    table.commit(at(1), {GROUP: [row("k1", 1)]}, operation="INSERT", stats={"num_inserts": 1})
    (change,) = rows(table, query="cdc", begin="000").to_pylist()
    assert (change["op"], change["ts_ms"], change["before"]) == ("i", at(1), None)
    assert list(json.loads(change["after"]))[:1] == ["_hoodie_commit_time"]
    assert json.loads(change["after"])["qty"] == 1


def test_log_file_changes_the_slice_it_was_written_on(profile, rows):
    table = made(profile)
    table.commit(at(1), {GROUP: [row("k1", 1), row("k2", 1)]}, operation="INSERT", stats={"num_inserts": 2})
    table.delta(at(2), {GROUP: {"rows": [row("k1", 2), row("k3", 2)]}})
    table.delta(at(3), {GROUP: {"rows": [row("k1", 3)], "deleted": ["k2", "unknown"]}}, operation="UPSERT")
    found = rows(table, query="cdc", begin=clock(table, 1))
    assert changes(found) == [
        ("d", at(3), 1, ""),
        ("i", at(2), "", 2),
        ("u", at(2), 1, 2),
        ("u", at(3), 2, 3),
    ]
    assert changes(rows(table, query="cdc", begin=clock(table, 1), end=clock(table, 2))) == [
        ("i", at(2), "", 2),
        ("u", at(2), 1, 2),
    ]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("starts", ["base file", "log file"])
def test_writes_beside_a_planned_compaction_change_what_it_is_to_read(version, starts):
    """In version 6 their log files belong to a slice without base file, and all of their rows were told as inserts
    (state machine, seed 1209).
    """
    options = {
        "hoodie.table.cdc.enabled": "true",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.compact.inline": "false",
        **({} if starts == "base file" else {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}),
    }
    lake = Lake(version, options)
    lake.upsert(lake_row("a", "1", 1), lake_row("b", "1", 1))
    begin = lake.table.timeline().completed_writes()[-1]
    lake.upsert(lake_row("a", "2", 2))
    lake.table.services.schedule_compaction()
    lake.upsert(lake_row("a", "3", 3), lake_row("c", "3", 3))
    lake.upsert(lake_row("a", "4", 4))
    lake.write("delete", [lake_row("b", ts=4)])
    wanted = [("d", "1", None), ("i", None, "3"), ("u", "1", "2"), ("u", "2", "3"), ("u", "3", "4")]

    def told() -> list[tuple[str, object, object]]:
        found = lake.table.scan(query="cdc", begin=begin.completed or begin.requested).read_all().to_pylist()
        images = [[json.loads(one[name] or "{}").get("v") for name in ("before", "after")] for one in found]
        return sorted(((one["op"], *image) for one, image in zip(found, images, strict=True)), key=str)

    assert told() == wanted
    lake.table.services.compact()
    assert told() == wanted
    lake.upsert(lake_row("a", "5", 5))
    assert told() == [*wanted, ("u", "4", "5")]


def test_version_that_loses_is_no_change(rows):
    table = made(V9, ordering_fields=("qty",))
    table.commit(at(1), {GROUP: [row("k1", 5)]}, operation="INSERT", stats={"num_inserts": 1})
    table.delta(at(2), {GROUP: {"rows": [row("k1", 4), row("k2", 1)]}})
    assert changes(rows(table, query="cdc", begin=clock(table, 1))) == [("i", at(2), "", 1)]


def test_compaction_changes_nothing(profile, rows):
    table = made(profile)
    table.commit(at(1), {GROUP: [row("k1", 1)]}, operation="INSERT", stats={"num_inserts": 1})
    table.commit(at(2), {GROUP: [row("k1", 1, at(1))]}, operation="COMPACT")
    assert rows(table, query="cdc", begin=clock(table, 1)).num_rows == 0


def test_replaced_groups_are_deletes(profile, rows):
    table = made(profile)
    table.commit(at(1), {GROUP: [row("k1", 1)]}, operation="INSERT", stats={"num_inserts": 1})
    table.delta(at(2), {GROUP: {"rows": [row("k1", 2)]}})
    table.commit(
        at(3),
        {("p0", "b"): [row("k9", 3)]},
        replaces={"p0": ("a",)},
        operation="INSERT_OVERWRITE",
        stats={"num_inserts": 1},
    )
    assert changes(rows(table, query="cdc", begin=clock(table, 2))) == [("d", at(3), 2, ""), ("i", at(3), "", 3)]


def change_file(table: HandLogTable, requested: str, fields: list[tuple[str, pa.DataType]], found: list[dict]) -> str:
    """A change file beside the base file of `requested`; its path."""
    schema = pa.schema(fields)
    avro = to_avro(schema, "CDC")
    content = encode_avro_content(pa.Table.from_pylist(found, schema=schema), avro)
    data = encode_block(BlockKind.CDC_DATA, {HeaderKey.INSTANT_TIME: requested, HeaderKey.SCHEMA: avro}, content)
    path = f"p0/{LogFileName('a', requested, 1, '0-1-2', '.cdc').text}"
    table.storage.put(path, data)
    return path


IMAGE = pa.struct([("id", pa.string()), ("part", pa.string()), ("qty", pa.int64())])


@pytest.mark.parametrize("mode", ["DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY"])
def test_change_files_of_every_logging_mode(profile, rows, mode):
    table = made(profile, mode)
    table.commit(at(1), {GROUP: [row("k1", 1), row("k2", 1)]}, operation="INSERT", stats={"num_inserts": 2})
    said = [("u", "k1", row("k1", 1), row("k1", 2)), ("d", "k2", row("k2", 1), None), ("i", "k3", None, row("k3", 2))]
    fields = {
        "DATA_BEFORE_AFTER": [("op", pa.string()), ("ts_ms", pa.string()), ("before", IMAGE), ("after", IMAGE)],
        "DATA_BEFORE": [("op", pa.string()), ("record_key", pa.string()), ("before", IMAGE)],
        "OP_KEY_ONLY": [("op", pa.string()), ("record_key", pa.string())],
    }[mode]
    names = ("op", "record_key", "before", "after")
    found = [{**dict(zip(names, one, strict=True)), "ts_ms": at(2)} for one in said]
    path = change_file(table, at(2), fields, [{name: one[name] for name, _ in fields} for one in found])
    written = {path: len(table.storage.read(path))}
    stats = {"num_update_writes": 1, "num_deletes": 1, "cdc_stats": written, "prev_commit": at(1)}
    table.commit(at(2), {GROUP: [row("k1", 2), row("k3", 2)]}, stats=stats)
    missing = "" if mode == "OP_KEY_ONLY" else "null"
    expected = [
        ("d", at(2), 1, "null" if mode == "DATA_BEFORE_AFTER" else ""),
        ("i", at(2), missing, 2),
        ("u", at(2), 1, 2),
    ]
    assert changes(rows(table, query="cdc", begin=clock(table, 1))) == expected


def test_update_without_change_file_is_named(profile, rows):
    table = made(profile)
    table.commit(at(1), {GROUP: [row("k1", 1)]}, operation="INSERT", stats={"num_inserts": 1})
    table.commit(at(2), {GROUP: [row("k1", 2)]}, stats={"num_update_writes": 1})
    with pytest.raises(Corrupt, match="names no change file"):
        rows(table, query="cdc", begin=clock(table, 1))


def test_slice_that_was_cleaned_cannot_tell_changes(profile, rows):
    table = made(profile)
    table.commit(at(1), {GROUP: [row("k1", 1)]}, operation="INSERT", stats={"num_inserts": 1})
    table.delta(at(2), {GROUP: {"rows": [row("k1", 2)]}})
    table.clean(at(3), at(2), removed=[table.path_of(at(1), *GROUP)])
    with pytest.raises(Invalid, match="cleaned since"):
        rows(table, query="cdc", begin=clock(table, 1))


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_files_that_a_dead_clean_took_are_cleaned_not_lost(version, kind):
    """The metadata table lists them until the clean is finished (state machine, seed 1212)."""
    lake = Lake(
        version,
        {
            "hoodie.table.cdc.enabled": "true",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.metadata.enable": "true",
            "hoodie.clean.automatic": "false",
        },
    )
    for number in range(4):
        lake.upsert(lake_row("a", str(number), number))
        if kind == "MERGE_ON_READ":
            lake.table.services.compact()
    newest = [one for one in lake.table.timeline().completed_writes() if one.action != "compaction"][-1]

    def die(call):
        if call.op == "create" and call.path.endswith(".clean"):
            raise Crash("when the files are gone")

    dying = Table(load_handle(CountingStorage(lake.storage, on_call=die), Awake()), {}, LocalEngine(1))
    with pytest.raises(Crash):
        dying.services.clean(
            **{"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
        )
    with pytest.raises(Invalid, match="which the clean .* takes, is gone, cleaned since"):
        lake.table.scan(query="cdc", begin="000").read_all()
    assert lake.values() == {"a": "3"}
    later = lake.upsert(lake_row("b", "new", 9))
    (change,) = lake.table.scan(query="cdc", begin=newest.completed or newest.requested).read_all().to_pylist()
    assert (change["op"], change["ts_ms"]) == ("i", later.instant)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_rows_of_a_replaced_group_are_not_those_of_an_older_slice_that_a_savepoint_keeps(version, kind):
    """The newest slice was cleaned, the one below is there still (state machine, seed 1300)."""
    lake = Lake(
        version,
        {
            "hoodie.table.cdc.enabled": "true",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.clean.automatic": "false",
            "hoodie.compact.inline": "false",
        },
    )
    lake.upsert(lake_row("a", "old", 1), lake_row("q", part="q"))
    lake.table.savepoints.create()
    newer = lake.upsert(lake_row("a", "new", 2), lake_row("b", "new", 2))
    if kind == "MERGE_ON_READ":
        lake.table.services.compact(**{"hoodie.compact.inline.max.delta.commits": "1"})
    lake.write("delete_partition", [], {"hoodie.datasource.write.partitions.to.delete": "p"})
    begin = newer.completed or newer.instant
    changes = lake.table.scan(query="cdc", begin=begin).read_all().to_pylist()
    assert sorted(json.loads(one["before"])["v"] for one in changes) == ["new", "new"]
    for number in range(3):
        lake.upsert(lake_row("q", str(number), number + 2, part="q"))
    lake.table.services.clean(**{"hoodie.clean.commits.retained": "1"})
    assert any("/" in path and path.startswith("p/") for path in lake.base_files())
    with pytest.raises(Invalid, match=r"the replaced file group \S+ is gone, cleaned since"):
        lake.table.scan(query="cdc", begin=begin).read_all()


@pytest.mark.parametrize("view", ["listing", "metadata table"])
@pytest.mark.parametrize("mode", ["data_before_after", "data_before", "op_key_only"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_changes_that_were_cleaned_are_cleaned_not_lost(version, mode, view):
    """With both images in the change file, it is all that a change query reads (state machine, seed 1215)."""
    lake = Lake(
        version,
        {
            "hoodie.table.cdc.enabled": "true",
            "hoodie.table.cdc.supplemental.logging.mode": mode,
            "hoodie.metadata.enable": str(view == "metadata table").lower(),
            "hoodie.clean.automatic": "false",
        },
    )
    for number in range(4):
        lake.upsert(lake_row("a", str(number), number))
    policy = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "2"}
    assert lake.table.services.clean(**policy) is not None
    first, _, third = lake.table.timeline().completed_writes()[:3]
    with pytest.raises(Invalid, match=r"The changes of \d+ cannot be told: .* is gone, cleaned since"):
        lake.table.scan(query="cdc", begin=first.completed or first.requested).read_all()
    assert len(lake.table.scan(query="cdc", begin=third.completed or third.requested).read_all()) == 1


def test_columns_and_filter_are_of_the_changes(profile, rows):
    table = made(profile)
    table.commit(at(1), {GROUP: [row("k1", 1)]}, operation="INSERT", stats={"num_inserts": 1})
    table.delta(at(2), {GROUP: {"rows": [row("k1", 2), row("k2", 2)]}})
    found = rows(table, query="cdc", begin="000", columns=("ts_ms",), filter="op = 'i'")
    assert sorted(found["ts_ms"].to_pylist()) == [at(1), at(2)]


def test_table_without_change_data_and_missing_begin_are_refused(profile, rows):
    with pytest.raises(Invalid, match="keeps no change data"):
        rows(HandLogTable(profile), query="cdc", begin="000")
    with pytest.raises(Invalid, match="needs a begin"):
        rows(made(profile), query="cdc")


def test_nothing_in_the_range_has_the_schema_of_changes(profile, rows):
    table = made(profile)
    table.instant(at(1), "commit", state=State.REQUESTED)
    assert rows(table, query="cdc", begin="000").schema.names == ["op", "ts_ms", "before", "after"]
