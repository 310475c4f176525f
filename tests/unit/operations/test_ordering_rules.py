"""Which of two rows with one key stays: within one input, and against what is stored."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.errors import Invalid, Unsupported
from hoodie.spec import keys
from hoodie.table import Table
from hoodie.testing.lake import ROWS, Lake, row, table_of

MODE = "hoodie.write.record.merge.mode"
PAYLOAD = "hoodie.datasource.write.payload.class"
ORDERING = "hoodie.table.ordering.fields"
COMBINE = "hoodie.combine.before.upsert"
MODEL = "org.apache.hudi.common.model."
EVENT_TIME = {8: {}, 9: {}, 6: {PAYLOAD: f"{MODEL}DefaultHoodieRecordPayload"}}
COMMIT_TIME = {MODE: "COMMIT_TIME_ORDERING"}


def event_time(version: int, **more: str | None) -> Lake:
    return Lake(version, {**EVENT_TIME[version], **more})


def test_event_time_keeps_the_larger_ordering_value(version: int) -> None:
    lake = event_time(version)
    lake.upsert(row("a", "low", 1), row("a", "high", 5), row("a", "mid", 3))
    assert lake.values() == {"a": "high"}
    lake.upsert(row("a", "late", 4), row("b", "new", 1))
    assert lake.values() == {"a": "high", "b": "new"}
    lake.upsert(row("a", "newer", 6))
    assert lake.values() == {"a": "newer", "b": "new"}


def test_equal_ordering_values_go_to_the_later_row(version: int) -> None:
    lake = event_time(version)
    lake.upsert(row("a", "first"), row("a", "second"))
    assert lake.values() == {"a": "second"}
    lake.upsert(row("a", "third"))
    assert lake.values() == {"a": "third"}


def test_row_that_loses_changes_nothing_in_the_stored_one(version: int) -> None:
    lake = event_time(version)
    first = lake.upsert(row("a", ts=5))
    done = lake.upsert(row("a", "late", 4))
    assert (done.updates, done.deletes, done.inserts) == (0, 0, 0)
    assert lake.rows(("v", "_hoodie_commit_time")) == [("a", first.instant)]


def test_several_ordering_fields_compare_one_after_the_other(version: int) -> None:
    schema = ROWS.append(pa.field("n", pa.int32()))
    lake = Lake(version, {**EVENT_TIME[version], ORDERING: "ts,n"}, schema=schema)
    lake.upsert(row("a", "1-9", 1, n=9), row("a", "2-1", 2, n=1), row("b", "1-2", 1, n=2), row("b", "1-1", 1, n=1))
    assert lake.values() == {"a": "2-1", "b": "1-2"}
    lake.upsert(row("a", "2-0", 2, n=0), row("b", "1-3", 1, n=3))
    assert lake.values() == {"a": "2-1", "b": "1-3"}


def test_ordering_field_may_be_inside_a_struct(version: int) -> None:
    schema = pa.schema([*ROWS, pa.field("meta", pa.struct([pa.field("seq", pa.int64())]))])
    lake = Lake(
        version, {**EVENT_TIME[version], ORDERING: "meta.seq", "hoodie.index.type": "GLOBAL_BLOOM"}, schema=schema
    )
    lake.upsert(row("a", "2", meta={"seq": 2}), row("a", "1", meta={"seq": 1}))
    assert lake.values() == {"a": "2"}
    lake.upsert(row("a", "0", meta={"seq": 0}))
    lake.upsert(row("a", "moved late", part="q", meta={"seq": 1}))
    assert lake.rows(("part", "v")) == [("p", "2")]
    lake.upsert(row("a", "moved", part="q", meta={"seq": 3}))
    assert lake.rows(("part", "v")) == [("q", "moved")]


def test_null_is_the_smallest_ordering_value(version: int) -> None:
    lake = event_time(version)
    lake.upsert(row("a", "null", None), row("b", "null", None), row("c", "one", 1), row("c", "null", None))
    lake.upsert(row("a", "one", 1), row("b", "null2", None), row("c", "null", None))
    assert lake.values() == {"a": "one", "b": "null2", "c": "one"}


@pytest.mark.parametrize("version", [8, 9])
def test_commit_time_takes_the_later_row_whatever_its_ordering_value(version: int) -> None:
    # As seen on Hudi 1.2.0: the ordering field counts neither in the input nor against stored rows.
    lake = Lake(version, COMMIT_TIME)
    lake.upsert(row("a", "five", 5), row("a", "three", 3))
    assert lake.values() == {"a": "three"}
    lake.upsert(row("a", "nine", 9), row("a", "zero", 0))
    assert lake.values() == {"a": "zero"}


def test_table_without_ordering_goes_by_commit_time(version: int) -> None:
    lake = Lake(version, {ORDERING: None})
    lake.upsert(row("a", "1", 9), row("a", "2", 1))
    lake.upsert(row("a", "3", 0))
    assert lake.values() == {"a": "3"}
    assert lake.table.config.merge_mode == "COMMIT_TIME_ORDERING"


def test_version_6_default_payload_orders_the_input_and_overwrites_what_is_stored() -> None:
    lake = Lake(6)
    lake.upsert(row("a", "five", 5), row("a", "three", 3))
    assert lake.values() == {"a": "five"}
    lake.upsert(row("a", "one", 1))
    assert lake.values() == {"a": "one"}


def test_version_6_payload_and_ordering_are_those_of_each_write() -> None:
    lake = Lake(6, {ORDERING: None})
    lake.upsert(row("a", "five", 5))
    lake.upsert(row("a", "three", 3), row("a", "two", 2), **{ORDERING: "ts"})
    assert lake.values() == {"a": "three"}
    lake.upsert(row("a", "one", 1), **{ORDERING: "ts", PAYLOAD: f"{MODEL}DefaultHoodieRecordPayload"})
    assert lake.values() == {"a": "three"}


@pytest.mark.parametrize("version", [8, 9])
def test_payload_classes_mean_merge_modes(version: int) -> None:
    latest = Lake(version, {PAYLOAD: f"{MODEL}OverwriteWithLatestAvroPayload"})
    latest.upsert(row("a", "5", 5))
    latest.upsert(row("a", "1", 1))
    ordered = Lake(version, {PAYLOAD: f"{MODEL}EventTimeAvroPayload"})
    ordered.upsert(row("a", "5", 5))
    ordered.upsert(row("a", "1", 1))
    assert (latest.values(), ordered.values()) == ({"a": "1"}, {"a": "5"})


@pytest.mark.parametrize("option", [{MODE: "CUSTOM"}, {PAYLOAD: "com.example.Mine"}])
def test_rules_that_cannot_run_here_are_refused(version: int, option: dict[str, str]) -> None:
    lake = Lake(version, option)
    with pytest.raises(Unsupported):
        lake.upsert(row("a"))
    assert lake.files() == {}


@pytest.mark.parametrize(
    ("version", "stored"),
    [
        (6, {keys.PAYLOAD_CLASS: f"{MODEL}PartialUpdateAvroPayload"}),
        (6, {keys.PAYLOAD_CLASS: "com.example.Mine"}),
        (8, {keys.MERGE_MODE: "CUSTOM", keys.PAYLOAD_CLASS: "com.example.Mine"}),
        (9, {keys.MERGE_MODE: "CUSTOM", keys.PAYLOAD_CLASS: "com.example.Mine"}),
        (9, {keys.PARTIAL_UPDATE_MODE: "IGNORE_DEFAULTS"}),
        (9, {keys.PARTIAL_UPDATE_MODE: "FILL_UNAVAILABLE"}),
    ],
)
def test_tables_with_rules_that_cannot_run_here_are_read_and_not_written(version: int, stored: dict[str, str]) -> None:
    lake = Lake(version)
    lake.upsert(row("a"))
    said = lake.storage.read(keys.PROPERTIES_FILE).decode()
    kept = [line for line in said.splitlines() if line.partition("=")[0] not in stored]
    changed = "\n".join([*kept, *(f"{key}={value}" for key, value in stored.items()), ""])
    lake.storage.put(keys.PROPERTIES_FILE, changed.encode())
    before = lake.files()
    plain = {key: value for key, value in lake.options.items() if not key.startswith("hoodie.table.ordering")}
    for operation in ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite"):
        with pytest.raises(Unsupported, match="merges rows with"):
            Table.open(lake.uri, options=plain).write(operation, table_of([row("a", "b", 2)]))
        assert lake.files() == before
    assert lake.values() == {"a": "a"}


def test_mode_that_contradicts_the_table_is_refused() -> None:
    lake = event_time(9)
    lake.upsert(row("a"))
    before = lake.files()
    with pytest.raises(Invalid, match="merge.mode.*COMMIT_TIME_ORDERING.*EVENT_TIME_ORDERING"):
        lake.upsert(row("a"), **COMMIT_TIME)
    assert lake.files() == before


# --- without combining


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_without_combining_new_twins_stay_and_stored_rows_get_one_update(version: int, index: str) -> None:
    lake = Lake(version, {**EVENT_TIME[version], COMBINE: "false", "hoodie.index.type": index})
    lake.upsert(row("a", "0", 0), row("b", "1"), row("b", "2"))
    assert lake.rows() == [("a", "0"), ("b", "1"), ("b", "2")]
    done = lake.upsert(row("a", "high", 5), row("a", "low", 3), row("c", "1"), row("c", "2"))
    assert (done.updates, done.inserts) == (1, 2)
    assert lake.rows() == [("a", "high"), ("b", "1"), ("b", "2"), ("c", "1"), ("c", "2")]


def test_delete_may_name_a_key_twice(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"), row("b"))
    done = lake.write("delete", [row("a"), row("a")], {"hoodie.combine.before.delete": "false"})
    assert (done.deletes, lake.values()) == (1, {"b": "a"})


@pytest.mark.parametrize(
    "kind", [pa.int32(), pa.float64(), pa.string(), pa.date32(), pa.timestamp("us"), pa.decimal128(12, 2)]
)
def test_ordering_values_of_any_kind(kind: pa.DataType) -> None:
    schema = ROWS.set(2, pa.field("ts", kind))
    values = {pa.string(): ["10", "9"], pa.float64(): [1.5, 2.5]}.get(kind) or pa.array([1, 2]).cast(
        pa.int64() if pa.types.is_timestamp(kind) else pa.int32()
    ).cast(kind, safe=False).to_pylist()
    low, high = values
    lake = Lake(9, schema=schema)
    lake.upsert(row("a", "high", high), row("a", "low", low))
    lake.upsert(row("a", "late", low))
    assert lake.values() == {"a": "high"}
    lake.upsert(row("a", "again", high))
    assert lake.values() == {"a": "again"}
