"""The metadata table of every golden table has the records Hudi read from it, lists the files that are there, and never
rules out a slice with a matching row.

Set `HOODIE_GOLDEN_DIR` to run the full set.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.fileview import FolderView, file_view_of
from hoodie.filters.sql import parse_row_filter
from hoodie.metadata import MetadataTable, Question, open_metadata_table
from hoodie.query import ReadOptions, ReadPlan, load_read_plan
from hoodie.query.expression_skipping import slices_that_may_match
from hoodie.slices import read_rows
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.testing.golden import GoldenTable, golden_tables
from hoodie.timeline import Timeline

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FULL = os.environ.get("HOODIE_GOLDEN_DIR")
RECORDS = "metadata_table.jsonl.gz"
SAMPLED = 41
"""Every so manyth condition is tried; more of them in the full set."""
TABLES = [
    table
    for table in golden_tables((ROOT / FULL).resolve() if FULL else HERE / "tables")
    if (table.folder / "expected" / RECORDS).exists()
]

# Hudi 0.15 reads records through a schema without the names of wrappers and takes the first wrapper of equal shape.
SAME_SHAPE = {"member7": "member1", "member8": "member5", "member9": "member2", "member10": "member2"}

PARTITION_STATS = 6
OUT_OF_ORDER = {"1.2.0/mor_compaction_by_procedure"}
"""Where a compaction completed after a delta commit that was requested later. What it says of partitions is newer, and
counts; Hudi's readers go by the request (docs/compat.md).
"""

NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?|True|False")

Unpack = Callable[[GoldenTable], Path]
Opened = Callable[[Path], TableHandle]


def metadata_of(handle: TableHandle, timeline: Timeline) -> MetadataTable:
    found = open_metadata_table(handle.storage, handle.config, timeline)
    assert found is not None
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_records_are_those_the_real_hudi_read(table: GoldenTable, unpacked: Unpack, opened: Opened) -> None:
    handle = opened(unpacked(table))
    metadata = metadata_of(handle, timeline_of(handle))
    got = [json.loads(plain(row)) for part in metadata.partitions for row in metadata.records(part).to_pylist()]
    lines = gzip.decompress((table.folder / "expected" / RECORDS).read_bytes()).decode().splitlines()
    expected = [json.loads(line) for line in lines]
    if table.release == "0.15.0":
        got, expected = [with_shapes(one) for one in got], [with_shapes(one) for one in expected]
    mine, theirs = Counter(map(in_order, got)), Counter(map(in_order, expected))
    if table.name in OUT_OF_ORDER:
        differ = [json.loads(one)["type"] for one in (mine - theirs).elements()]
        assert differ
        assert set(differ) == {PARTITION_STATS}
        mine, theirs = (Counter(one for one in found.elements() if not _of_partitions(one)) for found in (mine, theirs))
    assert list((mine - theirs).elements())[:1] == list((theirs - mine).elements())[:1] == []


def _of_partitions(line: str) -> bool:
    return json.loads(line)["type"] == PARTITION_STATS


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_files_are_those_on_storage(table: GoldenTable, unpacked: Unpack, opened: Opened) -> None:
    handle = opened(unpacked(table))
    timeline = timeline_of(handle)
    listed = file_view_of(handle.storage, timeline, metadata_of(handle, timeline)).load().slices_at()
    walked = FolderView(handle.storage, timeline).load().slices_at()
    assert [part.group_id for part in listed] == [part.group_id for part in walked]
    for mine, theirs in zip(listed, walked, strict=True):
        assert mine.base == theirs.base
        extra = {log.path for log in theirs.logs} - {log.path for log in mine.logs}
        assert {log.path for log in mine.logs} <= {log.path for log in theirs.logs}
        # In version 6 names of log files do not say who wrote them: storage shows those of failed writes, too.
        assert not extra or not timeline.profile.log_naming.has_one_write_per_file


@pytest.mark.sampled(12)
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_no_slice_with_a_matching_row_is_ruled_out(table: GoldenTable, unpacked: Unpack, opened: Opened) -> None:
    handle = opened(unpacked(table))
    timeline = timeline_of(handle)
    metadata = metadata_of(handle, timeline)
    plan = load_read_plan(handle.storage, handle.config, timeline, ReadOptions(use_metadata=False))
    rows = [pa.Table.from_batches(read_rows(handle.storage, plan.rows, file), plan.schema) for file in plan.files]
    everything = list(conditions(pa.concat_tables([plan.schema.empty_table(), *rows])))
    for sql in everything[:: 7 if FULL else SAMPLED]:
        asked = parse_row_filter(sql, plan.schema)
        question = Question(asked.condition, plan.table_schema, True, plan.rows.ids is None, plan.path_columns)
        names = columns_in_files(asked.columns, plan)
        if names is not None:
            left = slices_that_may_match(metadata, plan.files, asked.expression, names)  # type: ignore[arg-type]
            possible = {id(one) for one in left}
            for file, found in zip(plan.files, rows, strict=True):
                assert id(file) in possible or found.filter(asked.expression).num_rows == 0, (sql, file)
        kept = {id(one) for one in metadata.may_match(plan.files, question)}  # type: ignore[type-var]
        for file, found in zip(plan.files, rows, strict=True):
            assert id(file) in kept or found.filter(asked.expression).num_rows == 0, (sql, file)


def columns_in_files(columns: frozenset[str], plan: ReadPlan) -> pa.Schema | None:
    """The columns as a schema, when all of them stand in files under their names."""
    if plan.rows.ids is not None or columns & plan.path_columns:
        return None
    return pa.schema([field for field in plan.table_schema if field.name in columns])


def conditions(rows: pa.Table) -> Iterator[str]:
    """Conditions on every column that can be written as SQL, with values that occur in it."""
    for field in rows.schema:
        yield f"{field.name} IS NULL"
        yield f"{field.name} IS NOT NULL"
        distinct = rows.column(field.name).combine_chunks()
        if pa.types.is_struct(field.type):
            for child in field.type:
                yield from of_column(f"{field.name}.{child.name}", pc.struct_field(distinct, child.name))
        else:
            yield from of_column(field.name, distinct)


def of_column(name: str, values: pa.Array) -> Iterator[str]:
    types = pa.types
    plain_type = types.is_integer(values.type) or types.is_decimal(values.type) or types.is_boolean(values.type)
    quoted = types.is_string(values.type) or types.is_date(values.type) or types.is_timestamp(values.type)
    if not (plain_type or quoted or types.is_floating(values.type)):
        return
    texts = sorted({str(value) for value in values.to_pylist() if value is not None})[::3]
    is_plain = [not {"'", "\\"} & set(text) if quoted else NUMBER.fullmatch(text) is not None for text in texts]
    literals = [f"'{text}'" if quoted else text for text, fits in zip(texts, is_plain, strict=True) if fits]
    for literal in literals[:3]:
        for operator in ("=", "!=", "<", ">=", "<=>"):
            yield f"{name} {operator} {literal}"
        yield f"NOT ({name} > {literal})"
        if types.is_string(values.type):
            yield f"{name} LIKE '{literal[1:-1][:2]}%'"
    if len(literals) > 1:
        yield f"{name} IN ({', '.join(literals[:5])})"
        yield f"{name} BETWEEN {literals[0]} AND {literals[-1]} OR {name} IS NULL"


def plain(row: dict[str, Any]) -> str:
    """A record as JSON with bytes in base64, without NULL members."""
    return json.dumps(without_null(row), default=str)


def without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_null(one) for name, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [without_null(one) for one in value]
    return {"b64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def with_shapes(record: dict[str, Any]) -> dict[str, Any]:
    """The record with wrappers of equal shape taken for one, and decimals left out, which are bytes to 0.15."""
    stats = record.get("ColumnStatsMetadata") or {}
    for bound in ("minValue", "maxValue"):
        wrapped = stats.get(bound)
        if wrapped:
            (member, value), *_ = wrapped.items()
            is_bytes = SAME_SHAPE.get(member, member) == "member5"
            stats[bound] = {SAME_SHAPE.get(member, member): None if is_bytes else value}
    return record


def in_order(record: dict[str, Any]) -> str:
    if "filesystemMetadata" in record:
        record = {**record, "filesystemMetadata": sorted(record["filesystemMetadata"])}
    return json.dumps(record, sort_keys=True)
