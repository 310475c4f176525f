"""Value ranges of columns: from values, from footers, from log files, and as records of either version."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.logs import BlockKind, HeaderKey, encode_avro_content, encode_block, encode_parquet_content
from hoodie.metadata.partitions import RecordType
from hoodie.metadata.stat_values import ranges_of
from hoodie.metadata_writer import file_ranges
from hoodie.metadata_writer.column_range import ColumnRange, as_type, join_ranges, range_of_values
from hoodie.metadata_writer.file_ranges import base_file_ranges, log_file_ranges
from hoodie.metadata_writer.stats_rows import StatsRow, is_storable, stats_rows
from hoodie.records import align, to_avro
from hoodie.storage import open_storage
from hoodie.testing.lake import Lake, row

WIDE = pa.schema(
    [
        ("flag", pa.bool_()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("double", pa.float64()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("money", pa.decimal128(12, 3)),
        ("deep", pa.struct([("n", pa.int32())])),
        ("list", pa.list_(pa.int32())),
    ]
)
ROWS = pa.Table.from_pylist(
    [
        {
            "flag": number % 2 == 0,
            "int": number - 3,
            "long": 10**12 * (number - 3),
            "double": number / 2,
            "text": None if number == 4 else f"t{number}é",
            "bytes": bytes([number * 20]),
            "day": dt.date(1969, 12, 30) + dt.timedelta(days=number),
            "at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=number),
            "money": Decimal(number - 3) / 8,
            "deep": None if number == 0 else {"n": number},
            "list": [number],
        }
        for number in range(7)
    ],
    WIDE,
)
COLUMNS = [*(name for name in WIDE.names if name not in ("deep", "list")), "deep.n"]
BOUNDS: dict[str, tuple[Any, Any]] = {
    "flag": (False, True),
    "int": (-3, 3),
    "long": (-3 * 10**12, 3 * 10**12),
    "double": (-0.0, 3.0),
    "text": ("t0é", "t6é"),
    "bytes": (b"\0", b"\x78"),
    "day": (-2, 4),
    "at": (1704067200000000, 1704067200000006),
    "money": (-375, 375),
    "deep.n": (1, 6),
}
NULLS = {"text": 1, "deep.n": 1}


def bounds_of(found: list[ColumnRange]) -> dict[str, tuple[Any, Any]]:
    return {one.column: (one.low, one.high) for one in found}


@pytest.mark.parametrize("group_rows", [3, 100])
def test_footers_say_the_ranges_of_all_row_groups(group_rows: int) -> None:
    storage = open_storage("memory://ranges-footer")
    sink = pa.BufferOutputStream()
    pq.write_table(ROWS, sink, row_group_size=group_rows)
    storage.put("a.parquet", sink.getvalue().to_pybytes())
    found = base_file_ranges(storage, "a.parquet", [*COLUMNS, "list", "nowhere"])
    assert bounds_of(found) == BOUNDS
    assert all(one.rows == 7 and one.nulls == NULLS.get(one.column, 0) for one in found)
    assert all(one.size_bytes > 0 and one.plain_bytes > 0 for one in found)


def test_a_column_without_statistics_is_read() -> None:
    storage = open_storage("memory://ranges-read")
    sink = pa.BufferOutputStream()
    pq.write_table(ROWS, sink, write_statistics=["int"])
    storage.put("a.parquet", sink.getvalue().to_pybytes())
    assert bounds_of(base_file_ranges(storage, "a.parquet", COLUMNS)) == BOUNDS


def test_nan_is_above_every_number_and_alone_without_a_bound_below_it() -> None:
    some = range_of_values("x", pa.array([1.5, math.nan, None, -2.0]))
    assert (some.low, some.nulls, some.rows) == (-2.0, 1, 4)
    assert some.high == math.inf
    joined = join_ranges([some, range_of_values("x", pa.array([9.0]))])
    assert joined.high == math.inf


@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_a_log_file_has_the_ranges_of_its_rows(form: str) -> None:
    storage = open_storage(f"memory://ranges-log-{form}")
    schema = to_avro(WIDE, "test")
    encode = encode_avro_content if form == "avro" else encode_parquet_content
    kind = BlockKind.AVRO_DATA if form == "avro" else BlockKind.PARQUET_DATA
    header = {HeaderKey.INSTANT_TIME: "1", HeaderKey.SCHEMA: schema}
    content = [encode_block(kind, header, encode(part, schema)) for part in (ROWS.slice(0, 4), ROWS.slice(4))]
    storage.put("log", b"".join(content))
    found = log_file_ranges(storage, "log", sum(map(len, content)), COLUMNS, WIDE)
    assert bounds_of(found) == BOUNDS
    assert all(one.rows == 7 and one.size_bytes == 0 for one in found)


def test_a_range_that_is_not_known_spoils_what_it_is_joined_with() -> None:
    known = range_of_values("x", pa.array([1, 2]))
    unknown = ColumnRange("x", pa.int64(), None, None, 3, 1)
    assert not join_ranges([known, unknown]).is_known
    assert join_ranges([known, ColumnRange("x", pa.int64(), None, None, 3, 3)]).high == 2


def test_a_range_follows_its_column_to_a_wider_type() -> None:
    assert as_type(range_of_values("x", pa.array([1, 2], pa.int32())), pa.float64()).high == 2.0
    assert as_type(range_of_values("x", pa.array([Decimal("1.5")])), pa.decimal128(10, 3)).low == 1500
    assert not as_type(range_of_values("x", pa.array([1, 2])), pa.string()).is_known


@pytest.mark.parametrize(
    ("values", "wide"),
    [
        (pa.array([-65.4, 0.1, 3e38], pa.float32()), pa.float64()),
        (pa.array([-1e-45, -0.0, math.inf], pa.float32()), pa.float64()),
        (pa.array([-(2**53) - 1, 2**53 + 1]), pa.float64()),
        (pa.array([-16_777_217, 16_777_219], pa.int32()), pa.float32()),
    ],
)
def test_a_range_in_a_wider_type_is_that_of_what_rows_and_statistics_show(values: pa.Array, wide: pa.DataType) -> None:
    """A range of floats that became doubles was that of their binary values: sound statistics were called wrong."""
    found = range_of_values("x", values)
    shown = range_of_values("x", align(pa.table({"x": values}), pa.schema([("x", wide)])).column("x"))
    assert as_type(found, wide) == shown
    record = stats_rows([StatsRow("x", "f", found)], RecordType.COLUMN_STATS, "V2").column("ColumnStatsMetadata")
    told = ranges_of(record.combine_chunks(), wide, in_doubt=True)
    assert (told.low[0].as_py(), told.high[0].as_py()) == (shown.low, shown.high)


def test_blocks_of_a_log_file_may_have_a_column_in_types_that_grew() -> None:
    """Hudi appends to log files of version 6. The range was that of the binary values, in the first type."""
    storage, content = open_storage("memory://ranges-grown"), []
    for values in (pa.array([0.1], pa.float32()), pa.array([0.30000000000000004], pa.float64())):
        rows = pa.table({"x": values})
        schema = to_avro(rows.schema, "test")
        header = {HeaderKey.INSTANT_TIME: "1", HeaderKey.SCHEMA: schema}
        content.append(encode_block(BlockKind.PARQUET_DATA, header, encode_parquet_content(rows, schema)))
    storage.put("log", b"".join(content))
    (found,) = log_file_ranges(storage, "log", sum(map(len, content)), ["x"], pa.schema([("x", pa.float64())]))
    assert (found.data_type, found.low, found.high, found.rows) == (pa.float64(), 0.1, 0.30000000000000004, 2)


def test_each_version_wraps_bounds_in_its_own_way() -> None:
    ranges = [range_of_values(name, ROWS.column(name)) for name in ("day", "at", "money", "text")]
    rows = [StatsRow(one.column, "f", one) for one in ranges]
    old = stats_rows(rows, RecordType.COLUMN_STATS, "V1").column("ColumnStatsMetadata").to_pylist()
    new = stats_rows(rows, RecordType.COLUMN_STATS, "V2").column("ColumnStatsMetadata").to_pylist()
    assert [member(one["minValue"]) for one in old] == [
        ("member7", -2),
        ("member2", 1704067200000000),
        ("member8", Decimal("-0.375000000000000")),
        ("member6", "t0é"),
    ]
    assert "valueType" not in old[0]
    assert [member(one["minValue"]) for one in new] == [
        ("member1", -2),
        ("member2", 1704067200000000),
        ("member5", b"\xfe\x89"),
        ("member6", "t0é"),
    ]
    assert [tuple(one["valueType"].values()) for one in new] == [(12, None), (16, None), (10, "12,3"), (7, None)]


def test_old_statistics_leave_out_what_hudi_leaves_out() -> None:
    assert not is_storable(pa.decimal128(10, 2), "V1", with_bytes=False)
    assert is_storable(pa.decimal128(10, 2), "V1", with_bytes=True)
    assert not is_storable(pa.decimal128(38, 10), "V1", with_bytes=True)
    assert is_storable(pa.decimal128(38, 10), "V2", with_bytes=False)
    assert not is_storable(pa.binary(), "V1", with_bytes=False)


def member(wrapped: dict[str, Any]) -> tuple[str, Any]:
    return next((name, one["value"]) for name, one in wrapped.items() if one is not None)


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize(("ends", "is_true"), [((1, 1), True), ((2, 1), False), ((1, 0), False)], ids=str)
def test_bounds_that_are_exact_are_true_where_a_footer_has_wider_ones(
    version: int, ends: tuple[int, int], is_true: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long texts have shorter bounds in footers. An index may have the texts themselves, and nothing between them."""
    lake = Lake(version, {"hoodie.metadata.index.column.stats.enable": "true"})
    low, high = "b" * 5000 + str(ends[0]), "b" * 5000 + str(ends[1])
    said = file_ranges._said_of_columns

    def told(*given: Any) -> Iterator[ColumnRange]:
        yield from (replace(one, low=low, high=high) if one.column == "v" else one for one in said(*given))

    with monkeypatch.context() as patched:
        patched.setattr(file_ranges, "_said_of_columns", told)
        lake.upsert(row("a", "b" * 5000 + "1"))
    troubles = [str(trouble) for trouble in lake.table.validate(deep=True)]
    assert (troubles == []) is is_true
    assert is_true or all("'v'" in trouble for trouble in troubles)
