"""Claims of docs/compat.md that no other test makes, each on versions 6, 8 and 9."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hoodie.errors import Conflict, Invalid
from hoodie.locks import held_lock
from hoodie.table import Table
from hoodie.testing.lake import Lake, row, table_of

WRITE = "hoodie.datasource.write."
PAYLOADS = "org.apache.hudi.common.model."


def test_an_ordering_field_means_event_time_from_version_8_on_and_the_later_write_in_version_6(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a", "newer", 5))
    lake.upsert(row("a", "older", 1))
    assert lake.values() == {"a": "older" if version == 6 else "newer"}
    lake.upsert(row("a", "first", 9), row("a", "second", 8))
    assert lake.values() == {"a": "first"}


@pytest.mark.parametrize("payload", ["DefaultHoodieRecordPayload", "EventTimeAvroPayload"])
def test_payloads_of_event_time_keep_the_newer_row(version: int, payload: str) -> None:
    lake = Lake(version, {WRITE + "payload.class": PAYLOADS + payload})
    lake.upsert(row("a", "newer", 5))
    lake.upsert(row("a", "older", 1))
    assert lake.values() == {"a": "newer"}


def test_the_overwriting_payload_takes_the_later_write(version: int) -> None:
    lake = Lake(version, {WRITE + "payload.class": PAYLOADS + "OverwriteWithLatestAvroPayload"})
    lake.upsert(row("a", "newer", 5))
    lake.upsert(row("a", "older", 1))
    assert lake.values() == {"a": "older"}


def test_commit_time_ordering_takes_the_later_write_and_the_later_row(version: int) -> None:
    options: dict[str, Any] = {"hoodie.table.ordering.fields": None}
    if version > 6:
        options = {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}
    lake = Lake(version, options)
    lake.upsert(row("a", "newer", 5))
    lake.upsert(row("a", "first", 9), row("a", "second", 1))
    assert lake.values() == {"a": "second"}


def test_several_ordering_fields_are_compared_one_after_the_other(version: int) -> None:
    schema = table_of([]).schema.append(pa.field("u", pa.int64()))
    options = {"hoodie.table.ordering.fields": "ts,u", WRITE + "payload.class": PAYLOADS + "DefaultHoodieRecordPayload"}
    lake = Lake(version, options, schema=schema)
    lake.upsert(row("a", "one", 1, u=5))
    lake.upsert(row("a", "two", 1, u=4))
    assert lake.values() == {"a": "one"}
    lake.upsert(row("a", "three", 1, u=6), row("a", "four", 0, u=9))
    assert lake.values() == {"a": "three"}


def test_global_delete_keys_have_the_field_in_front(version: int) -> None:
    generator = {WRITE + "keygenerator.class": "org.apache.hudi.keygen.GlobalDeleteKeyGenerator"}
    lake = Lake(version, {WRITE + "partitionpath.field": None, **generator})
    lake.upsert(row("a"), row("b"))
    lake.write("delete", [row("a")])
    assert lake.rows(["_hoodie_record_key"]) == [("id:b",)]


@pytest.mark.parametrize("version", [8, 9])
def test_slash_separated_dates_are_stored_with_the_table(version: int) -> None:
    lake = Lake(version, {WRITE + "slash.separated.date.partitioning": "true"})
    lake.upsert(row("a", part="2024-01-02"))
    Table.open(lake.uri).upsert(table_of([row("b", part="2024-01-03")]))
    assert lake.rows(["id", "_hoodie_partition_path"]) == [("a", "2024/01/02"), ("b", "2024/01/03")]


def test_timestamps_have_one_key_in_all_operations(version: int) -> None:
    moment = pa.array([datetime(2024, 1, 2, 3, 4, 5, 123456, UTC)], pa.timestamp("us", "UTC"))
    rows = table_of([row("a")]).set_column(0, "id", moment)
    lake = Lake(version, schema=rows.schema)
    lake.write("bulk_insert", rows)
    lake.write("upsert", rows)
    assert lake.rows(["_hoodie_record_key"]) == [("1704164645123456",)]


def test_overwrite_by_the_same_kind_of_table_is_one_commit_and_keeps_the_past(version: int) -> None:
    lake = Lake(version)
    first = lake.upsert(row("a"), row("b", part="q"))
    lake.save([row("c")], "overwrite")
    assert lake.values() == {"c": "a"}
    assert [one.action for one in lake.table.timeline().completed()] == ["commit", "replacecommit"]
    assert lake.rows(as_of=first.instant) == [("a", "a"), ("b", "a")]


def test_overwrite_by_another_kind_of_table_starts_anew(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"))
    other = Lake(version, {WRITE + "recordkey.field": "v"}, uri=lake.uri)
    other.save([row("b", "key")], "overwrite")
    assert other.rows(["id", "_hoodie_record_key"]) == [("b", "key")]
    assert [one.action for one in other.table.timeline().completed()] == ["commit"]
    assert other.table.validate() == []


def test_a_second_writer_conflicts_and_changes_nothing(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"))
    before = lake.files()
    with held_lock(lake.storage, "a test"), pytest.raises(Conflict, match="Another writer"):
        lake.upsert(row("b"))
    assert lake.files() == before


def test_options_that_contradict_the_table_are_refused(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"))
    with pytest.raises(Invalid, match=r"recordkey\.field"):
        Lake(version, {WRITE + "recordkey.field": "v"}, uri=lake.uri).upsert(row("b"))


@pytest.mark.parametrize("part", ["../x", "/x", "a\0b", "a\nb", ".hoodie"])
def test_partition_values_that_would_leave_the_table_are_refused(part: str) -> None:
    lake = Lake()
    lake.upsert(row("a"))
    before = lake.files()
    with pytest.raises(Invalid):
        lake.upsert(row("b", part=part))
    assert lake.files() == before


@pytest.mark.parametrize("kind", ["batch", "reader", "pandas", "polars"])
def test_rows_may_come_in_many_forms(kind: str) -> None:
    rows = table_of([row("a"), row("b")])
    forms = {
        "batch": lambda: rows.to_batches()[0],
        "reader": rows.to_reader,
        "pandas": lambda: pd.DataFrame(rows.to_pydict()),
        "polars": lambda: pl.DataFrame(rows.to_pydict()),
    }
    lake = Lake()
    lake.write("upsert", rows.slice(0, 1))
    lake.table.upsert(forms[kind]())
    assert lake.values() == {"a": "a", "b": "a"}
