"""Statistics of row groups as Arrow tells them, by our own reading of the footer; nothing known where it is odd."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie.errors import Corrupt
from hoodie.records import iter_batches
from hoodie.records.group_stats import ColumnStats, group_stats
from hoodie.records.page_index import FileFooter, read_file_footer
from hoodie.records.stated_bounds import parts_that_may_match, stated_bounds
from hoodie.records.thrift import BINARY, DOUBLE, I32, I64, LIST, Field, Listed, Struct, encode_struct, parse_struct
from hoodie.storage import MemoryStorage

GOLDEN = Path(__file__).parents[2] / "golden" / "records"
STATISTICS, LOW, NULLS = 12, 6, 3
SIZE_STATISTICS, LEVELS = 16, 3
NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "long": (pa.int64(), [-5, None, 1 << 40]),
    "int": (pa.int32(), [-5, None, 7]),
    "byte": (pa.int8(), [-5, None, 7]),
    "flag": (pa.bool_(), [True, None, False]),
    "double": (pa.float64(), [-1.5, None, 1e300]),
    "float": (pa.float32(), [-1.5, 0.5, 2.0]),
    "text": (pa.string(), ["ä", None, "\U0001f600"]),
    "bytes": (pa.binary(), [b"\xff", b"", None]),
    "fixed": (pa.binary(3), [b"abc", b"\xff\0\0", None]),
    "day": (pa.date32(), [date(1969, 12, 31), date(2024, 5, 6), None]),
    "micros": (pa.timestamp("us", "UTC"), [NOON, None, datetime(1960, 1, 1, tzinfo=UTC)]),
    "millis": (pa.timestamp("ms"), [NOON.replace(tzinfo=None), None, None]),
    "clock": (pa.time64("us"), [time(1, 2, 3, 4), None, time(0)]),
    "short_clock": (pa.time32("ms"), [time(1, 2, 3), None, time(0)]),
    "price": (pa.decimal128(10, 2), [Decimal("-1.25"), None, Decimal("99999999.99")]),
    "long_price": (pa.decimal128(38, 10), [Decimal("-1.25"), None, Decimal("9999999999999999999999999999.1234567891")]),
    "nothing": (pa.int64(), [None, None, None]),
}
EVERY = pa.table({name: pa.array(values, to) for name, (to, values) in TYPES.items()})


def stored(rows: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    return sink.getvalue()


def footer_of(data: bytes) -> FileFooter:
    footer = read_file_footer(lambda start, length: data[start : start + length], len(data), None)
    assert footer is not None
    return footer


def arrow_stats(data: bytes, group: int) -> dict[str, ColumnStats]:
    """What Arrow says of flat columns."""
    row_group = pq.read_metadata(pa.BufferReader(data)).row_group(group)
    found = {}
    for chunk in map(row_group.column, range(row_group.num_columns)):
        stats = chunk.statistics
        if stats is not None and "." not in chunk.path_in_schema:
            low, high = (stats.min, stats.max) if stats.has_min_max else (None, None)
            nulls = stats.null_count if stats.has_null_count else None
            found[chunk.path_in_schema] = ColumnStats(row_group.num_rows, nulls, low, high)
    return found


@pytest.mark.parametrize("options", [{}, {"store_decimal_as_integer": True}, {"data_page_version": "2.0"}], ids=str)
def test_every_type_is_told_as_arrow_tells_it(options: dict[str, Any]) -> None:
    data = stored(EVERY, row_group_size=2, **options)
    for group in range(2):
        found = group_stats(footer_of(data), group, EVERY.schema)
        assert found == arrow_stats(data, group)
        assert set(found) == set(TYPES)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.parquet")), ids=lambda path: path.stem)
def test_statistics_of_hudis_files_are_told_as_arrow_tells_them(path: Path) -> None:
    data = path.read_bytes()
    footer, schema = footer_of(data), pq.read_schema(pa.BufferReader(data))
    for group in range(len(footer.groups)):
        found, expected = group_stats(footer, group, schema), arrow_stats(data, group)
        assert set(found) == set(expected)
        for name, stats in found.items():
            if stats.low is None:  # not told of INT96, nor what is written in the older fields only
                assert (stats.rows, stats.nulls) == (expected[name].rows, expected[name].nulls)
            else:
                assert stats == expected[name]


@pytest.mark.parametrize("name", ["price", "long_price", "long"])
def test_bounds_of_no_bytes_are_not_told(name: str) -> None:
    assert changed(of_statistics(LOW, Field(BINARY, b"")), name) == {}


def changed(change: Callable[[Struct], None], name: str = "long") -> dict[str, ColumnStats]:
    """What is told of a column when `ColumnMetaData` says something else."""
    footer = footer_of(stored(EVERY))
    change(footer.groups[0][1].value.values[footer.flat[name]][3].value)
    return group_stats(footer, 0, pa.schema([EVERY.schema.field(name)]))


def of_statistics(number: int, field: Field) -> Callable[[Struct], None]:
    return lambda meta: meta[STATISTICS].value.update({number: field})


@pytest.mark.parametrize(
    "change",
    [
        lambda meta: meta.pop(STATISTICS),
        lambda meta: meta.update({STATISTICS: Field(I32, 5)}),
        lambda meta: meta.update({3: Field(LIST, Listed(BINARY, [b"another"]))}),
        of_statistics(NULLS, Field(I64, 4)),
        of_statistics(NULLS, Field(I64, -1)),
        of_statistics(NULLS, Field(DOUBLE, math.nan)),
        of_statistics(LOW, Field(BINARY, b"\0" * 7)),
        of_statistics(NULLS, Field(DOUBLE, 1.0)),
        of_statistics(LOW, Field(I32, 1)),
    ],
)
def test_nothing_is_told_of_a_column_whose_footer_is_odd(change: Callable[[Struct], None]) -> None:
    assert changed(change) == {}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("long", lambda meta: meta[STATISTICS].value.pop(LOW)),
        ("long", of_statistics(LOW, Field(BINARY, b"\xff" * 7 + b"\x7f"))),  # more than the greatest
        ("double", of_statistics(LOW, Field(BINARY, b"\xff" * 8))),  # NaN
        ("long", lambda meta: meta.update({1: Field(I32, 3)})),  # INT96
        ("long", lambda meta: meta.update({1: Field(I32, 99)})),
    ],
)
def test_bounds_that_are_none_are_not_told(name: str, change: Callable[[Struct], None]) -> None:
    assert changed(change, name) == {name: ColumnStats(3, 1, None, None)}


def read(data: bytes, condition: Any, schema: pa.Schema, **options: Any) -> int:
    storage = MemoryStorage("group-stats")
    try:
        storage.put("f.parquet", data)
        return sum(
            one.num_rows for one in iter_batches(storage, "f.parquet", filter=condition, schema=schema, **options)
        )
    finally:
        storage.forget()


def with_short_histogram(data: bytes) -> bytes:
    """The file with one number too few in the histogram of a column's levels: Arrow refuses to read that column, and
    ends the process when it is asked for its statistics.
    """
    length = int.from_bytes(data[-8:-4], "little")
    footer = parse_struct(data[-8 - length : -8])
    chunk = footer[4].value.values[0][1].value.values[0][3].value
    chunk[SIZE_STATISTICS].value[LEVELS].value.values.pop()
    made = encode_struct(footer)
    return data[: -8 - length] + made + len(made).to_bytes(4, "little") + data[-4:]


def test_a_filter_does_not_end_the_process_over_a_footer_that_arrow_cannot_look_at() -> None:
    """Found by fuzzing (seed 28081 of damaged base files)."""
    rows = pa.table({"n": pa.array([1, 2, 3], pa.int64())})
    data = with_short_histogram(stored(rows))
    assert group_stats(footer_of(data), 0, rows.schema) == {"n": ColumnStats(3, 0, 1, 3)}
    assert read(data, pc.field("n") == 9, rows.schema) == 0
    with pytest.raises(Corrupt, match="histogram"):
        read(data, None, rows.schema)


@pytest.mark.parametrize(
    ("condition", "groups"),
    [
        (pc.field("n") > 150, {1}),
        (pc.field("n") < 0, set()),
        (~(pc.field("n") > 150), {0}),
        (pc.field("n").is_null(), {0, 2}),
        (pc.field("n").is_valid(), {0, 1}),
        ((pc.field("n") == 5) | (pc.field("other") == 1), {0, 1, 2}),
    ],
)
def test_parts_are_ruled_out_by_what_is_stated(condition: pc.Expression, groups: set[int]) -> None:
    columns = pa.schema({"n": pa.int64(), "other": pa.int64()})
    parts = [
        [stated_bounds("n", pa.scalar(0), pa.scalar(100), has_nulls=True)],
        [stated_bounds("n", pa.scalar(151), pa.scalar(200), has_nulls=False)],
        [pc.field("n").is_null()],
    ]
    assert parts_that_may_match(condition, columns, parts) == groups


def test_nan_is_found_where_bounds_do_not_tell_of_it() -> None:
    rows = pa.table({"x": [1.0, math.nan, 2.0]})
    assert read(stored(rows), ~(pc.field("x") <= 5), rows.schema) == 1
