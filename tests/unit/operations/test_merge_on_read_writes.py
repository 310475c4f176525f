"""Writing to merge-on-read tables: what goes to base files and what to log files, what these hold, what readers see."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.errors import Invalid, Unsupported
from hoodie.logs import BlockKind, Deletes, HeaderKey, LogBlock, parse_positions, read_block_rows, read_blocks
from hoodie.logs import read_deletes as deletes_of
from hoodie.services.compaction.compact import run_compaction, schedule_compaction
from hoodie.spec import State, WriteStat
from hoodie.state.handle import load_handle
from hoodie.table import Table
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lake import ROWS, Awake, Lake, row, table_of
from hoodie.testing.lake import logged_lake as logged

TYPE = "hoodie.datasource.write.table.type"
FORMAT = "hoodie.logfile.data.block.format"
FILLS = "hoodie.merge.small.file.group.candidates.limit"
ORDERING = "hoodie.table.ordering.fields"
DELETED = ROWS.append(pa.field("_hoodie_is_deleted", pa.bool_()))
KINDS = {"parquet": BlockKind.PARQUET_DATA, "avro": BlockKind.AVRO_DATA, "hfile": BlockKind.HFILE_DATA}


def blocks(lake: Lake) -> list[LogBlock]:
    """Blocks of all log files of the live slices, oldest first."""
    logs = [log for one in lake.table.files() for log in one.logs]
    return [block for log in logs for block in read_blocks(lake.storage, log.path, log.size_bytes)]


def last_stats(lake: Lake) -> list[WriteStat]:
    return [stat for group in lake.commits()[-1].partition_to_write_stats.values() for stat in group]


def deletes(lake: Lake) -> Deletes:
    """Of the newest delete block."""
    return deletes_of(lake.storage, [block for block in blocks(lake) if block.kind is BlockKind.DELETE][-1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partition", ["part", None])
def test_updates_and_deletes_go_to_logs_and_new_rows_to_base_files(
    version: int, kind: str, partition: str | None
) -> None:
    lake = logged(version, **{FORMAT: kind, "hoodie.datasource.write.partitionpath.field": partition})
    lake.upsert(row("a"), row("b"), row("c"), row("d"))
    bases = lake.base_files()
    done = lake.upsert(row("a", "a2", 2), row("c", "late", 0), row("b", "b2", 2))
    assert (done.updates, done.inserts, done.deletes) == (3, 0, 0)
    assert lake.base_files() == bases
    assert lake.values() == {"a": "a2", "b": "b2", "c": "a", "d": "a"}
    gone = lake.write("delete", [row("b"), row("nobody")])
    assert (gone.deletes, gone.rows_written) == (1, 0)
    assert lake.values() == {"a": "a2", "c": "a", "d": "a"}
    lake.upsert(row("b", "back"), row("e"))
    assert lake.values() == {"a": "a2", "b": "back", "c": "a", "d": "a", "e": "a"}
    assert len(lake.base_files()) == len(bases) + 1
    assert [block.kind for block in blocks(lake)] == [KINDS[kind], BlockKind.DELETE, KINDS[kind]]
    actions = {instant.action for instant in lake.table.timeline().completed()}
    assert actions == {"deltacommit"}
    lake.ensure_sound()


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"])
def test_operations_that_only_add_rows_make_base_files(version: int, operation: str) -> None:
    lake = logged(version)
    lake.upsert(row("a"), row("q", part="q"))
    lake.upsert(row("a", "a2", 2))
    lake.write(operation, [row("n")])
    rest = {"insert_overwrite": {"q"}, "insert_overwrite_table": set()}.get(operation, {"a", "q"})
    assert set(lake.values()) == rest | {"n"}
    replaces = operation.startswith("insert_overwrite")
    last = lake.table.timeline().completed()[-1]
    assert last.action == ("replacecommit" if replaces else "deltacommit")
    assert all(not stat.is_log for stat in last_stats(lake))
    lake.ensure_sound()


def test_partition_delete_and_save_mode_overwrite_replace_slices_with_logs(version: int) -> None:
    lake = logged(version)
    lake.upsert(row("a"), row("q", part="q"))
    lake.upsert(row("a", "a2", 2), row("q", "q2", 2, "q"))
    lake.table.delete_partition("p")
    assert lake.values() == {"q": "q2"}
    lake.save([row("n")], "overwrite")
    assert lake.values() == {"n": "a"}
    assert lake.table.config.table_type == "MERGE_ON_READ"
    lake.ensure_sound()


def test_overwrite_puts_the_other_type_of_table_in_the_place(version: int) -> None:
    lake = logged(version, **{"hoodie.metadata.enable": False})
    lake.upsert(row("a"))
    lake.upsert(row("a", "a2", 2))
    for kind, action in (("COPY_ON_WRITE", "commit"), ("MERGE_ON_READ", "deltacommit")):
        lake.options = {**lake.options, TYPE: kind}
        lake.save([row("b", kind)], "overwrite")
        assert lake.values() == {"b": kind}
        assert lake.table.config.table_type == kind
        assert [instant.action for instant in lake.table.timeline().completed()] == [action]
        lake.ensure_sound()


def test_small_file_without_logs_is_filled_by_writing_it_anew(version: int) -> None:
    lake = logged(version, **{FILLS: 1})
    lake.upsert(row("a"), row("b"))
    done = lake.upsert(row("a", "a2", 2), row("c"), row("b", "late", 0))
    (one,) = lake.table.files()
    assert one.logs == ()
    assert one.base is not None
    assert one.base.name.instant == done.instant
    assert lake.values() == {"a": "a2", "b": "a", "c": "a"}
    lake.upsert(row("a", "a3", 3))
    lake.upsert(row("d"))
    assert len(lake.live()) == 2  # the slice with a log file is not filled
    assert lake.values() == {"a": "a3", "b": "a", "c": "a", "d": "a"}


def test_only_the_smallest_file_of_a_partition_is_filled(version: int) -> None:
    lake = logged(version)
    lake.upsert(*(row(f"a{n}") for n in range(50)))
    lake.write("bulk_insert", [row("b")])
    small = min(lake.table.files(), key=lambda one: one.size_bytes)
    lake.upsert(row("c"), **{"hoodie__merge__small__file__group__candidates__limit": 1})
    assert [stat.file_id for stat in last_stats(lake)] == [small.file_id]


def test_rows_of_a_log_carry_the_file_id_and_count_from_one(version: int) -> None:
    lake = logged(version, **{FORMAT: "avro"})
    lake.upsert(*(row(f"a{n}") for n in range(3)))
    done = lake.upsert(row("a2", "x", 2), row("a0", "y", 2))
    (block,) = blocks(lake)
    rows = read_block_rows(lake.storage, block)
    (one,) = lake.table.files()
    assert rows["_hoodie_file_name"].to_pylist() == [one.file_id] * 2
    assert rows["_hoodie_commit_seqno"].to_pylist() == [f"{done.instant}_0_1", f"{done.instant}_0_2"]
    assert rows["_hoodie_record_key"].to_pylist() == ["a0", "a2"]  # in the order of the base rows
    assert rows["_hoodie_commit_time"].to_pylist() == [done.instant] * 2
    assert rows["_hoodie_partition_path"].to_pylist() == ["p"] * 2


@pytest.mark.parametrize("version", [8, 9])
def test_blocks_say_which_base_rows_they_change(version: int) -> None:
    lake = logged(version)
    first = lake.upsert(*(row(f"a{n}") for n in range(9)))
    lake.upsert(row("a7", "x", 2), row("a1", "y", 2))
    lake.write("delete", [row("a8"), row("a3")])
    assert [parse_positions(block.header[HeaderKey.RECORD_POSITIONS]).tolist() for block in blocks(lake)] == [
        [1, 7],
        [3, 8],
    ]
    assert {block.positions_instant for block in blocks(lake)} == {first.instant}
    assert deletes(lake).keys.to_pylist() == ["a3", "a8"]


def test_blocks_without_positions_where_they_are_turned_off_or_not_known_by_readers(version: int) -> None:
    lake = logged(version, **({} if version == 6 else {"hoodie.write.record.positions": False}))
    lake.upsert(row("a"), row("b"))
    lake.upsert(row("a", "a2", 2))
    lake.write("delete", [row("b")])
    assert {key for block in blocks(lake) for key in block.header} == {HeaderKey.INSTANT_TIME, HeaderKey.SCHEMA}
    assert lake.values() == {"a": "a2"}


def test_hfile_blocks_have_no_positions(version: int) -> None:
    lake = logged(version, **{FORMAT: "hfile"})
    lake.upsert(row("b"), row("a"))
    lake.upsert(row("b", "b2", 2), row("a", "a2", 2))
    (block,) = blocks(lake)
    assert block.kind is BlockKind.HFILE_DATA
    assert HeaderKey.RECORD_POSITIONS not in block.header
    assert read_block_rows(lake.storage, block)["id"].to_pylist() == ["a", "b"]


def test_a_column_that_hfile_blocks_would_lose_is_written_as_avro(version: int) -> None:
    schema = ROWS.append(pa.field("key", pa.string()))
    lake = logged(version, schema, **{FORMAT: "hfile"})
    lake.upsert(row("a", key="mine"))
    lake.upsert(row("a", "a2", 2, key="mine still"))
    assert [block.kind for block in blocks(lake)] == [BlockKind.AVRO_DATA]
    assert lake.rows(("id", "key")) == [("a", "mine still")]


def test_names_markers_and_stats_of_log_files(version: int) -> None:
    lake = logged(version)
    first = lake.upsert(row("a"), row("b"))
    (base,) = [one.base for one in lake.table.files()]
    assert base is not None
    second = lake.upsert(row("a", "a2", 2))
    third = lake.write("delete", [row("b")])
    (one,) = lake.table.files()
    names = [log.name for log in one.logs]
    if version == 6:
        assert [(name.instant, name.version) for name in names] == [(first.instant, 1), (first.instant, 2)]
    else:
        assert [(name.instant, name.version) for name in names] == [(second.instant, 1), (third.instant, 1)]
    (stat,) = last_stats(lake)
    assert stat.path == one.logs[1].path
    assert (stat.num_writes, stat.num_deletes, stat.num_update_writes, stat.num_inserts) == (0, 1, 0, 0)
    assert stat.total_write_bytes == stat.file_size_bytes == one.logs[1].size_bytes
    assert (stat.log_version, stat.log_offset) == (names[1].version, 0)
    assert stat.prev_commit == (first.instant if version == 6 else third.instant)
    assert stat.base_file == (base.name.text if version == 6 else "")
    before = (names[0].text,) if version == 6 else ()
    assert stat.log_files == (*before, names[1].text)
    assert stat.runtime is not None
    assert lake.commits()[-1].operation_type == "DELETE"


def test_marker_is_there_before_the_log_file(version: int) -> None:
    lake = logged(version)
    lake.upsert(row("a"))
    storage = CountingStorage(lake.storage)
    kind = "APPEND" if version == 6 else "CREATE"
    table = Table(load_handle(storage, Awake()), lake.options, LocalEngine())
    table.upsert(table_of([row("a", "a2", 2)]))
    paths = [call.path for call in storage.calls if ".log." in call.path and call.op in ("create", "open_output")]
    assert len(paths) == 2
    assert paths[0].startswith(".hoodie/.temp/")
    assert paths[0].endswith(f"{paths[1]}.marker.{kind}")


def test_rows_marked_as_deleted_are_deletes_with_their_own_ordering_value(version: int) -> None:
    lake = logged(version, DELETED)
    lake.upsert(*(row(key, ts=5) for key in "abcd"))
    done = lake.upsert(
        row("a", ts=6, _hoodie_is_deleted=True),
        row("b", ts=4, _hoodie_is_deleted=True),  # older than what is stored
        row("c", ts=None, _hoodie_is_deleted=True),  # goes by time
        row("nobody", ts=9, _hoodie_is_deleted=True),
        row("d", "d2", ts=6, _hoodie_is_deleted=False),
    )
    assert (done.updates, done.deletes, done.inserts) == (1, 3, 0)
    assert lake.values() == {"b": "a", "d": "d2"}
    found = deletes(lake)
    assert found.keys.to_pylist() == ["a", "b", "c"]
    assert [values.to_pylist() for values in found.ordering] == [[6, 4, None]]
    assert found.is_default.tolist() == [False, False, True]
    assert found.partitions.to_pylist() == ["p"] * 3


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        ([dt.date(2024, 1, day) for day in (5, 6, 4)], pa.int32()),
        ([dt.datetime(2024, 1, day, tzinfo=dt.UTC) for day in (5, 6, 4)], pa.int64()),
        ([decimal.Decimal(5), decimal.Decimal(6), decimal.Decimal(4)], pa.decimal128(30, 15)),
        (["b", "c", "a"], pa.string()),
    ],
    ids=["date", "timestamp", "decimal", "text"],
)
def test_deletes_store_ordering_values_as_hudi_compares_them(
    version: int, values: list[Any], stored: pa.DataType
) -> None:
    kind = pa.array(values).type if stored != pa.decimal128(30, 15) else pa.decimal128(10, 2)
    schema = DELETED.set(DELETED.get_field_index("ts"), pa.field("ts", kind))
    lake = logged(version, schema)
    first, later, earlier = values
    lake.upsert(row("a", ts=first), row("b", ts=first), row("c", ts=first))
    gone = {"_hoodie_is_deleted": True}
    lake.upsert(row("a", ts=later, **gone), row("b", ts=earlier, **gone), row("c", ts=first, **gone))
    assert lake.values() == {"b": "a"}
    assert [column.type for column in deletes(lake).ordering] == [stored]


def test_deletes_of_a_delete_operation_go_by_time(version: int) -> None:
    lake = logged(version)
    lake.upsert(row("a", ts=5), row("b", ts=5))
    lake.write("delete", [row("a", ts=1)])
    found = deletes(lake)
    assert (found.ordering, found.is_default.tolist()) == ((), [True])
    assert lake.values() == {"b": "a"}
    lake.upsert(row("a", "again", ts=5))
    assert lake.values() == {"a": "again", "b": "a"}


def test_row_older_than_a_deleted_one_brings_that_back(version: int) -> None:
    # As Hudi's readers have it: in the log the row follows the delete, which is forgotten, and loses to the base row.
    lake = logged(version)
    lake.upsert(row("a", ts=5))
    lake.write("delete", [row("a")])
    lake.upsert(row("a", "older", ts=2))
    assert lake.values() == {"a": "a"}


@pytest.mark.parametrize("version", [8, 9])
def test_deletes_have_a_value_for_each_ordering_field(version: int) -> None:
    lake = logged(version, DELETED.append(pa.field("n", pa.int32())), **{ORDERING: "ts,n"})
    lake.upsert(row("a", n=5), row("b", n=5))
    lake.upsert(row("a", n=4, _hoodie_is_deleted=True), row("b", n=6, _hoodie_is_deleted=True))
    assert [values.to_pylist() for values in deletes(lake).ordering] == [[1, 1], [4, 6]]
    assert lake.values() == {"a": "a"}


def test_version_6_logs_cannot_hold_several_ordering_fields() -> None:
    lake = logged(6, **{ORDERING: "ts,v"})
    with pytest.raises(Unsupported, match="2 ordering fields"):
        lake.upsert(row("a"))
    assert lake.files() == {}


def test_commit_time_takes_the_later_row(version: int) -> None:
    lake = Lake(version, {TYPE: "MERGE_ON_READ", FILLS: 0, ORDERING: None}, schema=DELETED)
    lake.upsert(row("a", ts=5), row("b", ts=5))
    lake.upsert(row("a", "later", 1), row("b", ts=1, _hoodie_is_deleted=True))
    assert lake.values() == {"a": "later"}
    assert deletes(lake).is_default.tolist() == [True]


def test_blocks_and_files_are_cut_at_their_limits(version: int) -> None:
    limits = {"hoodie.logfile.data.block.max.size": 2_000, "hoodie.logfile.max.size": 3_000}
    lake = logged(version, **{**limits, FORMAT: "avro"})
    lake.upsert(*(row(f"a{n:03d}") for n in range(100)))
    lake.upsert(*(row(f"a{n:03d}", "b" * 50, 2) for n in range(99)), row("a099", ts=2))
    lake.write("delete", [row("a000")])
    assert lake.values() == {f"a{n:03d}": "b" * 50 for n in range(1, 99)} | {"a099": "a"}
    (one,) = lake.table.files()
    cut = list(one.logs[:-1])
    assert len(cut) > 2
    assert [log.name.version for log in cut] == list(range(1, len(cut) + 1))
    stats = [stat for group in lake.commits()[1].partition_to_write_stats.values() for stat in group]
    assert [stat.path for stat in stats] == [log.path for log in cut]
    assert [stat.log_version for stat in stats] == [log.name.version for log in cut]
    assert sum(stat.num_update_writes for stat in stats) == 100
    assert stats[-1].log_files is not None
    assert len(stats[-1].log_files) == len(cut)
    for log in cut:
        found = read_blocks(lake.storage, log.path, log.size_bytes)
        assert all(1 <= read_block_rows(lake.storage, block).num_rows < 50 for block in found)


def test_columns_that_come_later_are_in_new_blocks_and_null_in_old_rows(version: int) -> None:
    lake = logged(version)
    lake.upsert(row("a"), row("b"), row("c"))
    lake.upsert(row("a", "a2", 2))
    lake.schema = ROWS.append(pa.field("w", pa.int32()))
    lake.upsert(row("b", "b2", 2, w=7), row("d", w=8))
    assert lake.rows(("id", "v", "w")) == [("a", "a2", None), ("b", "b2", 7), ("c", "a", None), ("d", "a", 8)]
    wider = pa.schema([*ROWS, pa.field("w", pa.int64())])
    lake.schema = wider
    lake.upsert(row("c", "c2", 2, w=1 << 40))
    assert lake.rows(("id", "w")) == [("a", None), ("b", 7), ("c", 1 << 40), ("d", 8)]


@pytest.mark.parametrize("kind", KINDS)
def test_table_without_meta_columns(version: int, kind: str) -> None:
    lake = logged(version, **{FORMAT: kind, "hoodie.populate.meta.fields": False})
    lake.upsert(row("a"), row("b"), row("c"))
    lake.upsert(row("a", "a2", 2))
    lake.write("delete", [row("b")])
    assert lake.values() == {"a": "a2", "c": "a"}
    assert blocks(lake)[0].kind is (BlockKind.AVRO_DATA if kind == "hfile" else KINDS[kind])


def test_partition_columns_that_are_not_stored_come_from_the_path(version: int) -> None:
    lake = logged(version, **{"hoodie.datasource.write.drop.partition.columns": True})
    lake.upsert(row("a"), row("b"))
    lake.upsert(row("a", "a2", 2))
    assert "part" not in read_block_rows(lake.storage, blocks(lake)[0]).column_names
    assert lake.rows(("id", "part", "v")) == [("a", "p", "a2"), ("b", "p", "a")]


def test_a_delete_of_nothing_commits_no_file(version: int) -> None:
    lake = logged(version)
    lake.upsert(row("a"))
    done = lake.write("delete", [row("nobody")])
    assert (done.files, done.deletes) == (0, 0)
    assert lake.values() == {"a": "a"}


def test_input_that_is_spooled_and_rows_of_many_partitions(version: int) -> None:
    lake = logged(version, **{"hoodie.engine.local.max.bytes": 1})
    lake.upsert(*(row(f"a{n}", part=f"p{n % 3}") for n in range(12)))
    done = lake.upsert(*(row(f"a{n}", "b", 2, f"p{n % 3}") for n in range(12)))
    assert (done.files, done.updates) == (3, 12)
    assert lake.values() == {f"a{n}": "b" for n in range(12)}
    lake.ensure_sound()


def test_time_travel_sees_the_rows_before_a_log_was_written(version: int) -> None:
    lake = logged(version)
    first = lake.upsert(row("a"), row("b"))
    lake.upsert(row("a", "a2", 2))
    lake.write("delete", [row("b")])
    assert lake.values(as_of=first.instant) == {"a": "a", "b": "a"}
    assert lake.values(query="read_optimized") == {"a": "a", "b": "a"}
    assert lake.values() == {"a": "a2"}


def test_incremental_query_gives_the_rows_of_a_delta_commit(version: int) -> None:
    lake = logged(version)
    first = lake.upsert(row("a"), row("b"))
    lake.upsert(row("a", "a2", 2), row("c"))
    begin = first.instant if version == 6 else first.completed
    assert lake.values(query="incremental", begin=begin) == {"a": "a2", "c": "a"}


def test_default_payload_of_version_6_orders_the_log_and_overwrites_the_base_row() -> None:
    lake = Lake(6, {TYPE: "MERGE_ON_READ", FILLS: 0})
    lake.upsert(row("a", ts=9), row("b", ts=9))
    lake.upsert(row("a", "a2", 2), row("b", "b5", 5))
    assert lake.values() == {"a": "a2", "b": "b5"}
    lake.upsert(row("a", "a1", 1), row("b", "b5 again", 5))
    assert lake.values() == {"a": "a2", "b": "b5 again"}


def test_writes_beside_a_pending_compaction_go_to_its_slice(version: int) -> None:
    lake = logged(version, **{FILLS: 1, "hoodie.metadata.enable": False})
    lake.upsert(row("a"), row("b"), row("c"))
    lake.upsert(row("a", "a2", 2))
    handle = load_handle(lake.storage, SystemEnv())
    config = resolve({**lake.options, "hoodie.compact.inline.max.delta.commits": 1})
    compaction = schedule_compaction(handle, config, LocalEngine())
    assert compaction is not None
    lake.upsert(row("a", "a3", 3), row("b", "b3", 3))
    lake.write("delete", [row("c")])
    lake.upsert(row("n"))
    assert lake.values() == {"a": "a3", "b": "b3", "n": "a"}
    (one,) = [one for one in lake.table.files() if one.logs]
    names = [log.name for log in one.logs[1:]]
    if version == 6:
        assert [(name.instant, name.version) for name in names] == [(compaction.requested, n) for n in (1, 2)]
        (stat,) = [stat for group in lake.commits()[2].partition_to_write_stats.values() for stat in group]
        assert (stat.prev_commit, stat.base_file, stat.log_files) == (compaction.requested, "", (names[0].text,))
    run_compaction(handle, config, LocalEngine(), compaction.requested)
    assert lake.values() == {"a": "a3", "b": "b3", "n": "a"}
    (one,) = [one for one in lake.table.files() if one.logs]
    assert one.base_instant == compaction.requested
    assert [log.name for log in one.logs] == names
    lake.upsert(row("c", "back", 9), row("a", "a4", 9))
    assert lake.values() == {"a": "a4", "b": "b3", "c": "back", "n": "a"}
    lake.ensure_sound()


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("ordering", ["ts", None])
def test_update_of_some_columns_does_not_bring_deleted_rows_back(version: int, ordering: str | None) -> None:
    lake = logged(version)
    lake.options = {key: value for key, value in {**lake.options, ORDERING: ordering}.items() if value is not None}
    lake.upsert(row("a"), row("b"))
    lake.write("delete", [row("a", ts=2)])
    names = ["id", "part", "v"] if ordering is None else ["id", "part", "v", "ts"]
    done = lake.table.update(table_of([row("a", "up", 5), row("b", "up", 5)]).select(names))
    assert (done.updates, done.inserts) == (1, 0)
    assert lake.values() == {"b": "up"}
    lake.ensure_sound()


@pytest.mark.parametrize("version", [8, 9])
def test_update_of_some_columns_keeps_the_others(version: int) -> None:
    lake = logged(version, ROWS.append(pa.field("w", pa.int32())))
    lake.upsert(row("a", w=1), row("b", w=2), row("c", w=3))
    new = pa.array([10, 11], pa.int32())
    done = lake.table.update(pa.table({"id": ["a", "nobody"], "part": ["p", "p"], "ts": [5, 5], "w": new}))
    assert (done.updates, done.inserts) == (1, 0)
    lake.table.update(pa.table({"id": ["a", "b"], "part": ["p", "p"], "ts": [6, 0], "v": ["new", "late"]}))
    assert lake.rows(("id", "v", "w")) == [("a", "new", 10), ("b", "a", 2), ("c", "a", 3)]
    assert [block.is_partial for block in blocks(lake)] == [True, True]
    stored = read_block_rows(lake.storage, blocks(lake)[0]).column_names
    assert stored[5:] == ["ts", "w"]
    lake.upsert(row("a", "whole", 7, w=None))
    assert lake.rows(("id", "v", "w"))[0] == ("a", "whole", None)
    lake.ensure_sound()


@pytest.mark.parametrize("version", [8, 9])
def test_partial_update_schema_chooses_the_columns_of_the_rows(version: int) -> None:
    lake = logged(version, ROWS.append(pa.field("w", pa.int32())))
    lake.upsert(row("a", w=1))
    fields = ('{"name":"ts","type":["null","long"]}', '{"name":"w","type":["null","int"]}')
    schema = '{"type":"record","name":"r","fields":[' + ",".join(fields) + "]}"
    lake.upsert(row("a", "not stored", 2, w=5), **{"hoodie__write__partial__update__schema": schema})
    assert lake.rows(("v", "w")) == [("a", 5)]


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        ({"id": ["a"], "part": ["p"], "ts": [5], "x": [1]}, "cannot change the schema"),
        ({"id": ["a"], "part": ["p"]}, "no column to update"),
        ({"id": ["a"], "part": ["p"], "v": ["x"]}, "no column 'ts'"),
    ],
)
def test_update_of_some_columns_that_does_not_fit_the_table(data: dict[str, Any], cause: str) -> None:
    lake = logged(9)
    lake.upsert(row("a"))
    before = lake.files()
    if "v" not in data and "ts" not in data:
        lake.options = {**lake.options, ORDERING: None}
    with pytest.raises(Invalid, match=cause):
        lake.table.update(pa.table(data))
    assert lake.files() == before


def test_tables_that_cannot_hold_updates_of_some_columns() -> None:
    rows = pa.table({"id": ["a"], "part": ["p"], "ts": [5], "v": ["x"]})
    for lake in (logged(6), Lake(9)):
        lake.upsert(row("a"))
        with pytest.raises(Unsupported, match="cannot store updates of some columns"):
            lake.table.update(rows)


def test_failed_write_takes_its_log_files_back(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = logged(version)
    lake.upsert(row("a"), row("b", part="q"))
    before = lake.files()

    def fails(*_: object, **__: object) -> bytes:
        raise Invalid("no delete block today")

    monkeypatch.setattr("hoodie.write.log_task.encode_deletes", fails)
    with pytest.raises(Invalid, match="no delete block"):
        lake.write("delete", [row("a"), row("b", part="q")])
    assert lake.files() == before
    assert all(instant.state is State.COMPLETED for instant in lake.table.timeline().instants)
