"""Log files of golden tables: blocks are where an outline made by other code has them, contents are what Avro's and
Parquet's own readers find, and what was read is written again with the same bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.logs import (
    BlockKind,
    Deletes,
    HeaderKey,
    LogBlock,
    encode_avro_content,
    encode_block,
    encode_deletes,
    encode_positions,
    open_block_hfile,
    read_block_rows,
    read_blocks,
    read_content,
    read_deletes,
    read_positions,
)
from hoodie.logs.delete_schema import DELETE_LIST_SCHEMA
from hoodie.spec import iter_records
from hoodie.storage import LocalStorage, Storage
from hoodie.testing.golden import GoldenTable, golden_tables

pytestmark = pytest.mark.sampled(4)

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FULL = os.environ.get("HOODIE_GOLDEN_DIR")
TABLES = tuple(
    table
    for table in golden_tables((ROOT / FULL).resolve() if FULL else HERE / "tables")
    if (table.folder / "expected" / "log_blocks.json.gz").exists()
)

Unpack = Callable[[GoldenTable], Path]

every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


def outline(table: GoldenTable) -> dict[str, list[dict[str, Any]]]:
    """Blocks of each log file as they were found when the table was made."""
    packed = (table.folder / "expected" / "log_blocks.json.gz").read_bytes()
    found: dict[str, list[dict[str, Any]]] = json.loads(gzip.decompress(packed))
    return found


def blocks_of(storage: Storage, path: str) -> tuple[LogBlock, ...]:
    return read_blocks(storage, path, storage.head(path).size_bytes)


def all_blocks(table: GoldenTable, storage: Storage) -> Iterator[LogBlock]:
    """Blocks of all log files that are not damaged."""
    for path in outline(table):
        yield from (block for block in blocks_of(storage, path) if block.kind is not BlockKind.CORRUPT)


def outlined(block: LogBlock) -> dict[str, Any]:
    """The block in the words of the outline."""
    if block.kind is BlockKind.CORRUPT:
        return {"offset": block.start, "bytes": block.size_bytes}
    header: dict[str, Any] = {key.name: text for key, text in block.header.items()}
    if "SCHEMA" in header:
        header["SCHEMA"] = {"fields": [field["name"] for field in json.loads(header["SCHEMA"])["fields"]]}
    return {
        "offset": block.start,
        "block_size": block.size_bytes - 14,
        "type": block.kind.name,
        "content_bytes": block.content_bytes,
        "header": header,
    }


@every_table
def test_blocks_are_those_of_the_outline(table: GoldenTable, unpacked: Unpack) -> None:
    storage = LocalStorage(str(unpacked(table)))
    for path, expected in outline(table).items():
        got = [outlined(block) for block in blocks_of(storage, path)]
        for mine, theirs in zip(got, expected, strict=True):
            if "header" in mine and "SCHEMA" not in theirs["header"]:  # left out of outlines of the metadata table
                mine["header"].pop("SCHEMA", None)
            assert mine == {key: theirs[key] for key in mine}, path


@every_table
def test_blocks_are_written_again_with_the_same_bytes(table: GoldenTable, unpacked: Unpack) -> None:
    storage = LocalStorage(str(unpacked(table)))
    for block in all_blocks(table, storage):
        content = read_content(storage, block)
        stored = storage.read_range(block.path, block.start, block.size_bytes)
        assert encode_block(block.kind, block.header, content) == stored
        if block.kind in (BlockKind.AVRO_DATA, BlockKind.CDC_DATA):
            assert encode_avro_content(read_block_rows(storage, block), block.schema) == content
        if block.kind is BlockKind.DELETE:
            assert encode_deletes(read_deletes(storage, block)) == content


@every_table
def test_record_positions_are_one_for_each_row_and_written_the_same(table: GoldenTable, unpacked: Unpack) -> None:
    storage = LocalStorage(str(unpacked(table)))
    for block in all_blocks(table, storage):
        positions = read_positions(block)
        if positions is not None:
            rows = read_deletes(storage, block) if block.kind is BlockKind.DELETE else read_block_rows(storage, block)
            assert len(positions) == len(rows)
            assert encode_positions(positions) == block.header[HeaderKey.RECORD_POSITIONS]


@every_table
def test_rows_are_those_that_the_formats_own_readers_find(table: GoldenTable, unpacked: Unpack) -> None:
    storage = LocalStorage(str(unpacked(table)))
    for block in all_blocks(table, storage):
        if block.kind is BlockKind.DELETE:
            assert deletes_found(read_deletes(storage, block)) == deletes_expected(read_content(storage, block))
        elif block.kind is BlockKind.PARQUET_DATA:
            expected = pq.read_table(io.BytesIO(read_content(storage, block)))
            assert plain(read_block_rows(storage, block).to_pylist()) == plain(expected.to_pylist())
        elif block.kind is not BlockKind.COMMAND:
            got = read_block_rows(storage, block).to_pylist()
            assert plain(got) == [plain(row) for row in avro_rows(storage, block)]


@every_table
def test_chosen_columns_are_those_of_the_whole_rows(table: GoldenTable, unpacked: Unpack) -> None:
    storage = LocalStorage(str(unpacked(table)))
    for block in all_blocks(table, storage):
        if block.kind.is_data:
            rows = read_block_rows(storage, block)
            expected = rows.select(rows.column_names[1::3])
            got = read_block_rows(storage, block, columns=expected.column_names)
            assert got.schema.equals(expected.schema)
            assert plain(got.to_pylist()) == plain(expected.to_pylist())


def avro_rows(storage: Storage, block: LogBlock) -> Iterator[Any]:
    """Rows of an Avro or HFile block as fastavro reads them."""
    schema = fastavro.parse_schema(json.loads(block.schema))
    if block.kind is not BlockKind.HFILE_DATA:
        for record in iter_records(read_content(storage, block), block.path, block.content_start):
            yield fastavro.schemaless_reader(io.BytesIO(record), schema)
        return
    for part in open_block_hfile(storage, block).scan():
        for key, value in zip(part.keys.to_pylist(), part.values.to_pylist(), strict=True):
            row: Any = fastavro.schemaless_reader(io.BytesIO(value), schema)
            yield {**row, "key": key.decode()}


def plain(value: Any) -> Any:
    """Values in one spelling, so that what two readers give can be compared: maps as lists of pairs, unions of records
    without their members, times as numbers.
    """
    if isinstance(value, dict):
        if value and all(name.startswith("member") for name in value):
            return next((plain(one) for one in value.values() if one is not None), None)
        return sorted((name, plain(one)) for name, one in value.items())
    if isinstance(value, list):
        pairs = bool(value) and all(isinstance(one, tuple) and len(one) == 2 for one in value)
        return sorted((name, plain(one)) for name, one in value) if pairs else [plain(one) for one in value]
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, date):
        return value.toordinal()
    if isinstance(value, float):
        return struct.pack(">d", value)
    return value


def deletes_found(deletes: Deletes) -> list[tuple[Any, ...]]:
    columns = [pa.nulls(len(deletes)), *deletes.ordering][-1 if len(deletes.ordering) < 2 else 1 :]
    values = zip(*(column.to_pylist() for column in columns), strict=True)
    return list(zip(deletes.keys.to_pylist(), deletes.partitions.to_pylist(), values, strict=True))


def deletes_expected(content: bytes) -> list[tuple[Any, ...]]:
    schema = fastavro.parse_schema(json.loads(DELETE_LIST_SCHEMA))
    read: Any = fastavro.schemaless_reader(io.BytesIO(content[8:]), schema, None, return_record_name=True)
    return [
        (record["recordKey"], record["partitionPath"], ordering_values(record["orderingVal"]))
        for record in read["deleteRecordList"]
    ]


def ordering_values(wrapped: Any) -> tuple[Any, ...]:
    """Values of one delete; None for the default."""
    if wrapped is None:
        return (None,)
    name, record = wrapped
    if name.endswith("ArrayWrapper"):
        return tuple(one and one[1]["value"] for one in record["wrappedValues"])
    return (None if name.endswith("IntWrapper") and record["value"] == 0 else record["value"],)
