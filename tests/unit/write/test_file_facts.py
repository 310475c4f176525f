"""What the task that writes a file says of it for the indexes is exactly what reading the file gives."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from hoodie.logs import (
    BlockKind,
    HeaderKey,
    encode_avro_content,
    encode_block,
    encode_hfile_content,
    encode_parquet_content,
)
from hoodie.metadata_writer.column_range import ColumnRange
from hoodie.metadata_writer.file_facts import IndexNeeds, base_file_facts, encoded_ranges, log_file_facts
from hoodie.metadata_writer.file_ranges import base_file_ranges, log_file_ranges, typed_range
from hoodie.metadata_writer.indexes import bloom_filters, column_stats
from hoodie.records import BaseFileOptions, BaseFileWriter, read_footer, to_avro, with_meta
from hoodie.storage import MemoryStorage, Storage, open_storage
from hoodie.testing.index_records import ensure_true
from hoodie.testing.lake import ROWS, Lake, row, table_of

COLUMNS: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "flag": (pa.bool_(), lambda chance: chance.random() < 0.5),
    "int": (pa.int32(), lambda chance: chance.randint(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), lambda chance: chance.randint(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), lambda chance: chance.choice([0.0, -0.0, 1.5, -2.25, math.inf])),
    "double": (pa.float64(), lambda chance: chance.choice([0.0, -0.0, 1e300, -math.inf, 5e-324])),
    "nan": (pa.float64(), lambda chance: chance.choice([math.nan, -0.0, 7.0])),
    "text": (pa.string(), lambda chance: "".join(chance.choices("aé\U0001f600~\0", k=chance.randint(0, 6)))),
    "long_text": (pa.string(), lambda chance: chance.choice("ab") * chance.choice([1, 5_000])),
    "bytes": (pa.binary(), lambda chance: chance.randbytes(chance.randint(0, 4))),
    "day": (pa.date32(), lambda chance: dt.date(1969, 6, 1) + dt.timedelta(days=chance.randint(0, 400))),
    "at": (
        pa.timestamp("us", "UTC"),
        lambda chance: dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=chance.randint(-9, 9)),
    ),
    "money": (pa.decimal128(12, 3), lambda chance: Decimal(chance.randint(-(10**9), 10**9)) / 8),
    "small_money": (pa.decimal128(4, 1), lambda chance: Decimal(chance.randint(-99, 99)) / 10),
    "deep": (
        pa.struct([("n", pa.int32()), ("more", pa.struct([("x", pa.float64())]))]),
        lambda chance: {"n": chance.randint(-3, 3), "more": None if chance.random() < 0.3 else {"x": -0.0}},
    ),
    "list": (pa.list_(pa.int32()), lambda chance: [1, 2]),
}
"""Types by column, with a value of each."""

SCHEMA = pa.schema([(name, data_type) for name, (data_type, _) in COLUMNS.items()])
INDEXED = (*(name for name in SCHEMA.names if name not in ("deep", "list")), "deep.n", "deep.more.x", "nowhere", "list")
_NAMES = count()
MERGE = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}


def table(seed: int, rows: int, nulls: float) -> pa.Table:
    chance = random.Random(seed)
    return pa.table(
        {
            name: pa.array([None if chance.random() < nulls else value(chance) for _ in range(rows)], data_type)
            for name, (data_type, value) in COLUMNS.items()
        }
    )


def same(said: Sequence[ColumnRange] | None, read: Sequence[ColumnRange]) -> None:
    """Compares by text: NaN is NaN, and zeros have signs."""
    assert said is not None
    assert [repr(one) for one in said] == [repr(one) for one in read]


def written(rows: pa.Table, options: BaseFileOptions) -> tuple[Storage, BaseFileWriter]:
    storage = MemoryStorage(f"facts-{next(_NAMES)}")
    writer = BaseFileWriter(storage, "a.parquet", SCHEMA, options)
    with writer:
        for at in range(0, max(1, rows.num_rows), 40):
            writer.write(rows.slice(at, 40))
    return storage, writer


@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("group_bytes", [1 << 25, 4_000], ids=["one row group", "several"])
@pytest.mark.parametrize("seed", range(6))
def test_a_written_base_file_has_the_ranges_that_reading_it_gives(seed: int, group_bytes: int, nulls: float) -> None:
    storage, writer = written(table(seed, seed * 37, nulls), BaseFileOptions(bloom=None, row_group_bytes=group_bytes))
    assert writer.footer() == read_footer(storage, "a.parquet")
    asked = set()
    for column in INDEXED:
        said = base_file_facts(IndexNeeds((column,)), writer.footer()).ranges
        if said is None:
            asked.add(column)
        else:
            same(said, base_file_ranges(storage, "a.parquet", [column]))
    assert asked <= {"nan", "long_text", "float", "double", "deep.more.x"}


def test_what_a_footer_does_not_say_is_left_to_who_reads_the_file() -> None:
    rows = table(1, 50, 0.0)
    _, writer = written(rows, BaseFileOptions(bloom=None))
    assert base_file_facts(IndexNeeds(("int", "nan")), writer.footer()).ranges is None


def test_a_written_base_file_has_the_filter_that_reading_it_gives() -> None:
    storage = MemoryStorage(f"facts-{next(_NAMES)}")
    rows = pa.table({name: pa.array(["x", "y"]) for name in with_meta(pa.schema([])).names})
    with BaseFileWriter(storage, "a.parquet", with_meta(pa.schema([])).remove_metadata()) as writer:
        writer.write(rows.cast(with_meta(pa.schema([]))))
    read = read_footer(storage, "a.parquet")
    assert writer.footer() == read
    facts = base_file_facts(IndexNeeds(filters=True), writer.footer())
    assert facts.bloom == (read.bloom_type or "SIMPLE", read.bloom_text)
    assert facts.ranges == ()


@pytest.mark.parametrize("kind", [BlockKind.AVRO_DATA, BlockKind.PARQUET_DATA, BlockKind.HFILE_DATA])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_written_log_file_has_the_ranges_that_reading_it_gives(seed: int, nulls: float, kind: BlockKind) -> None:
    rows = table(seed, 30, nulls)
    rows = rows.append_column("key", pa.array([f"{at:04d}" for at in range(30)]))
    schema = to_avro(rows.schema, "test")
    encode = {
        BlockKind.AVRO_DATA: encode_avro_content,
        BlockKind.PARQUET_DATA: encode_parquet_content,
        BlockKind.HFILE_DATA: encode_hfile_content,
    }[kind]
    header = {HeaderKey.INSTANT_TIME: "1", HeaderKey.SCHEMA: schema}
    blocks = [encode_block(kind, header, encode(rows.slice(at, 15), schema)) for at in (0, 15)]
    blocks.append(encode_block(BlockKind.DELETE, {HeaderKey.INSTANT_TIME: "1"}, b"no data"))
    storage = open_storage(f"memory://facts-{next(_NAMES)}")
    storage.put("log", b"".join(blocks))
    needs = IndexNeeds(INDEXED)
    facts = log_file_facts(needs, [one for data in blocks for one in encoded_ranges(data, "log", INDEXED)])
    assert facts.ranges is not None
    read = log_file_ranges(storage, "log", sum(map(len, blocks)), INDEXED, SCHEMA)
    same([typed_range(one, SCHEMA) for one in facts.ranges], read)


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("form", ["avro", "parquet", "hfile"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_an_index_by_what_tasks_say_is_as_one_that_reads_files(version: int, form: str, kind: str) -> None:
    options = {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.logfile.data.block.format": form,
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.partition.stats.enable": "true" if version > 6 else None,
        "hoodie.metadata.index.bloom.filter.enable": "true",
    }
    wide = table(3, 6, 0.2)
    lake = Lake(version, options, schema=pa.schema([*ROWS, *wide.schema]))
    for ts in (1, 2, 3):
        rows = table_of([row(f"k{at}", ts=ts, part=f"p{at % 2}") for at in range(ts, ts + 6)])
        lake.write("upsert", pa.table([*rows.columns, *table(ts, 6, 0.2).columns], lake.schema))
    if kind == "MERGE_ON_READ":
        lake.table.services.compact()
    lake.ensure_sound()


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_compaction_tells_the_indexes_what_is_in_its_files(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(version, {**MERGE, "hoodie.compact.inline": "false"})
    for ts in (1, 2):
        lake.upsert(*(row(f"k{at}", ts=ts, part=f"p{at % 2}") for at in range(6)))
    monkeypatch.setattr(column_stats, "base_file_ranges", None)
    monkeypatch.setattr(bloom_filters, "read_footer", None)
    assert lake.table.services.compact() is not None
    monkeypatch.undo()
    ensure_true(lake)
