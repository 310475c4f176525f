"""Rows of data blocks: the same table from Avro, Parquet and HFile blocks, written and read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import Corrupt, HudiError, Invalid
from hoodie.logs import (
    BlockKind,
    HeaderKey,
    LogBlock,
    encode_avro_content,
    encode_block,
    encode_hfile_content,
    encode_parquet_content,
    open_block_hfile,
    read_block_rows,
    read_blocks,
)
from hoodie.logs.content_input import WHOLE_BYTES
from hoodie.records import from_avro, to_avro
from hoodie.spec import iter_records
from hoodie.storage import MemoryStorage

PATH = "p/.f-0_1.log.1_0-0-0"

ROWS = pa.table(
    {
        "key": pa.array(["b", "a", "c"]),
        "number": pa.array([1, None, 3], pa.int32()),
        "price": pa.array([Decimal("1.50"), None, Decimal("-7.25")], pa.decimal128(10, 2)),
        "day": pa.array([date(2024, 1, 2), None, date(1969, 12, 31)]),
        "moment": pa.array([0, 1, None], pa.timestamp("us", tz="UTC")),
        "tags": pa.array([["x", None], [], None], pa.list_(pa.field("element", pa.string()))),
        "sizes": pa.array(
            [[("s", 1.5)], None, []],
            pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", pa.float64())),
        ),
        "inner": pa.array([{"flag": True}, None, {"flag": None}], pa.struct([("flag", pa.bool_())])),
    }
)
SCHEMA = to_avro(ROWS.schema, "t")

Encode = Callable[[pa.Table, str], bytes]
FORMS = {
    BlockKind.AVRO_DATA: encode_avro_content,
    BlockKind.CDC_DATA: encode_avro_content,
    BlockKind.PARQUET_DATA: encode_parquet_content,
    BlockKind.HFILE_DATA: encode_hfile_content,
}


class Counting:
    """A storage whose ranged reads are counted."""

    def __init__(self, inner: MemoryStorage) -> None:
        self.inner = inner
        self.bytes: list[int] = []

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self.bytes.append(length)
        return self.inner.read_range(path, start, length)


@pytest.fixture(params=FORMS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> BlockKind:
    found: BlockKind = request.param
    return found


def stored(storage: MemoryStorage, kind: BlockKind, content: bytes, schema: str = SCHEMA) -> LogBlock:
    """The block with this content, in a file after another block."""
    header = {HeaderKey.INSTANT_TIME: "1", HeaderKey.SCHEMA: schema}
    data = encode_block(BlockKind.COMMAND, {}, b"") + encode_block(kind, header, content)
    storage.put(PATH, data)
    return read_blocks(storage, PATH, len(data))[1]


def in_order(rows: pa.Table, kind: BlockKind) -> pa.Table:
    """Rows as a block of the kind holds them: HFiles are sorted by key."""
    return rows.sort_by("key") if kind is BlockKind.HFILE_DATA else rows


def test_rows_that_were_written_are_read(storage: MemoryStorage, kind: BlockKind) -> None:
    block = stored(storage, kind, FORMS[kind](ROWS, SCHEMA))
    rows = read_block_rows(storage, block)
    assert rows.schema.equals(from_avro(SCHEMA))
    assert rows.to_pylist() == in_order(ROWS, kind).to_pylist()


def test_block_without_rows_has_its_columns(storage: MemoryStorage, kind: BlockKind) -> None:
    block = stored(storage, kind, FORMS[kind](ROWS.slice(0, 0), SCHEMA))
    rows = read_block_rows(storage, block)
    assert rows.num_rows == 0
    assert rows.schema.equals(from_avro(SCHEMA))


@pytest.mark.parametrize("columns", [["day", "key"], ["inner", "not there"], []])
def test_only_columns_asked_for_come_in_the_order_of_the_schema(
    storage: MemoryStorage, kind: BlockKind, columns: list[str]
) -> None:
    block = stored(storage, kind, FORMS[kind](ROWS, SCHEMA))
    rows = read_block_rows(storage, block, columns=columns)
    expected = [name for name in ROWS.column_names if name in columns]
    assert rows.column_names == expected
    assert rows.num_rows == 3
    assert rows.to_pylist() == in_order(ROWS, kind).select(expected).to_pylist()


def test_content_that_is_cut_off_is_corrupt_and_names_file_and_place(storage: MemoryStorage, kind: BlockKind) -> None:
    content = FORMS[kind](ROWS, SCHEMA)
    block = stored(storage, kind, content[:-3])
    with pytest.raises(Corrupt) as caught:
        read_block_rows(storage, block)
    assert caught.value.facts["path"] == PATH
    assert caught.value.facts["offset"] >= block.content_start  # type: ignore[operator]


def test_bad_schema_is_corrupt(storage: MemoryStorage, kind: BlockKind) -> None:
    block = stored(storage, kind, FORMS[kind](ROWS, SCHEMA), schema='{"type":"record"}')
    with pytest.raises(Corrupt, match="schema") as caught:
        read_block_rows(storage, block)
    assert caught.value.facts["path"] == PATH
    assert caught.value.facts["offset"] == block.content_start


def test_avro_content_is_that_of_avros_own_writer() -> None:
    schema = fastavro.parse_schema(json.loads(SCHEMA))
    expected = []
    for row in ROWS.to_pylist():
        sizes = None if row["sizes"] is None else dict(row["sizes"])
        value = io.BytesIO()
        fastavro.schemaless_writer(value, schema, {**row, "sizes": sizes})
        expected.append(value.getvalue())
    assert list(iter_records(encode_avro_content(ROWS, SCHEMA), "f", 0)) == expected


def test_parquet_with_other_layouts_comes_in_the_types_of_the_schema(storage: MemoryStorage) -> None:
    sink = io.BytesIO()
    old = ROWS.select(["tags", "key", "number"]).set_column(2, "number", ROWS["number"].cast(pa.int8()))
    pq.write_table(old, sink, use_compliant_nested_type=False)
    block = stored(storage, BlockKind.PARQUET_DATA, sink.getvalue())
    rows = read_block_rows(storage, block)
    assert rows.schema.equals(from_avro(SCHEMA))
    assert rows.select(["key", "number", "tags"]).to_pylist() == ROWS.select(["key", "number", "tags"]).to_pylist()
    assert rows["price"].null_count == 3


def test_parquet_that_contradicts_the_schema_is_corrupt(storage: MemoryStorage) -> None:
    sink = io.BytesIO()
    pq.write_table(ROWS.set_column(1, "number", pa.array(["x", "y", "z"])), sink)
    block = stored(storage, BlockKind.PARQUET_DATA, sink.getvalue())
    with pytest.raises(Corrupt, match="does not hold what its schema says"):
        read_block_rows(storage, block)


def test_few_columns_of_a_large_parquet_block_cost_few_bytes(storage: MemoryStorage) -> None:
    count = 200_000
    chance = np.random.default_rng(1)
    wide = pa.table({name: chance.random(count) for name in "abcdefgh"} | {"key": pa.array(np.arange(count))})
    schema = to_avro(wide.schema, "t")
    block = stored(storage, BlockKind.PARQUET_DATA, encode_parquet_content(wide, schema), schema)
    assert block.content_bytes > 2 * WHOLE_BYTES
    reads = Counting(storage)
    rows = read_block_rows(reads, block, columns=["c"])
    assert rows["c"].equals(wide["c"])
    assert sum(reads.bytes) < block.content_bytes / 4
    reads = Counting(storage)
    assert read_block_rows(reads, block).equals(wide)
    assert len(reads.bytes) == 1


def test_hfile_of_a_block_is_looked_up(storage: MemoryStorage) -> None:
    block = stored(storage, BlockKind.HFILE_DATA, encode_hfile_content(ROWS, SCHEMA))
    found = open_block_hfile(storage, block).lookup([b"c", b"x"])
    assert found.keys.to_pylist() == [b"c"]


def test_hfile_may_have_another_key_than_the_field_of_that_name(storage: MemoryStorage) -> None:
    rows = pa.table({"name": ["a", "b"], "key": pa.array([1, 2])})
    schema = to_avro(rows.schema, "t")
    block = stored(storage, BlockKind.HFILE_DATA, encode_hfile_content(rows, schema, "name"), schema)
    assert read_block_rows(storage, block).to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("kind_without_rows", [BlockKind.COMMAND, BlockKind.DELETE, BlockKind.CORRUPT])
def test_blocks_of_other_kinds_hold_no_rows(storage: MemoryStorage, kind_without_rows: BlockKind) -> None:
    block = LogBlock(PATH, 0, 100, kind_without_rows)
    with pytest.raises(Invalid, match="holds no rows"):
        read_block_rows(storage, block)
    with pytest.raises(Invalid, match="holds no HFile"):
        open_block_hfile(storage, block)


def test_small_file_is_read_once(storage: MemoryStorage, kind: BlockKind) -> None:
    block = stored(storage, kind, FORMS[kind](ROWS, SCHEMA))
    reads = Counting(storage)
    assert read_block_rows(reads, block).num_rows == 3
    assert reads.bytes == []


def test_file_that_shrank_is_corrupt(storage: MemoryStorage, kind: BlockKind) -> None:
    block = replace(stored(storage, kind, FORMS[kind](ROWS, SCHEMA)), content=None)
    storage.put(PATH, storage.read(PATH)[: block.content_start + 10])
    with pytest.raises(HudiError) as caught:
        read_block_rows(storage, block)
    assert isinstance(caught.value, Corrupt)


def test_content_beyond_two_gib_is_refused_before_it_is_read(storage: MemoryStorage) -> None:
    header = {HeaderKey.SCHEMA: SCHEMA}
    block = LogBlock(PATH, 0, 1 << 32, BlockKind.AVRO_DATA, header, 100, 1 << 31)
    with pytest.raises(Corrupt, match="2 GiB"):
        read_block_rows(storage, block)
