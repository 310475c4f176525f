"""Filters of Python data sources as SQL text, and tasks of about equal size."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import EqualNullSafe, EqualTo, GreaterThan, In, IsNull, Not, StringStartsWith

from hoodie.filters.sql import parse_row_filter
from hoodie.slices import SliceRead
from hoodie.spark.filters import texts_of
from hoodie.spark.worker_frame import packed
from hoodie.spec import parse_base_file_name
from hoodie.view import BaseFile

ROWS = pa.table(
    {
        "a": pa.array([1, 2, None], pa.int32()),
        "s": pa.array([{"a": "x"}, {"a": "it's \\"}, None]),
        "d": pa.array([datetime.date(1500, 1, 1), datetime.date(2024, 1, 1), None]),
        "t": pa.array([datetime.datetime(1500, 1, 1), datetime.datetime(2024, 1, 1), None], pa.timestamp("us", "UTC")),
        "m": pa.array([Decimal("1.10"), Decimal("-2.20"), None], pa.decimal128(10, 2)),
    }
)
NOON = datetime.datetime(2000, 1, 1, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("one", "kept"),
    [
        (EqualTo(("a",), 1), [0]),
        (Not(EqualTo(("a",), 1)), [1]),
        (EqualNullSafe(("a",), 2), [1]),
        (GreaterThan(("t",), NOON), [1]),
        (GreaterThan(("d",), NOON.date()), [1]),
        (GreaterThan(("m",), Decimal("-1E+0")), [0]),
        (In(("s", "a"), ("it's \\", "y")), [1]),
        (IsNull(("a",)), [2]),
        (StringStartsWith(("s", "a"), "it's"), [1]),
    ],
)
def test_a_filter_keeps_the_rows_it_means(one: Any, kept: list[int]) -> None:
    (text,) = texts_of([one])
    rows = ROWS.append_column("row", pa.array([0, 1, 2]))
    assert rows.filter(parse_row_filter(text, ROWS.schema).expression).column("row").to_pylist() == kept


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"\x00", None])
def test_values_without_an_exact_text_make_no_filter(value: Any) -> None:
    assert texts_of([EqualTo(("a",), value), In(("a",), (value,))]) == ()


def _slice(number: int, size_bytes: int) -> SliceRead:
    name = f"0000000{number}-0000-0000-0000-000000000000-0_1-2-3_20240101000000000.parquet"
    return SliceRead("", BaseFile(name, parse_base_file_name(name), size_bytes))


@pytest.mark.parametrize(
    ("megabytes", "cores", "expected"),
    [([], 2, []), ([1, 1, 1], 4, [3]), ([8, 8], 2, [8, 8]), ([64, 30, 30, 4], 2, [64, 64]), ([300, 10], 1, [300, 10])],
)
def test_files_are_packed_to_equal_size_with_work_for_every_core(
    megabytes: list[int], cores: int, expected: list[int]
) -> None:
    files = [_slice(number, size << 20) for number, size in enumerate(megabytes)]
    packs = packed(files, cores, 128 << 20)
    sizes = [len(pack) if expected == [3] else sum(file.size_bytes for file in pack) >> 20 for pack in packs]
    assert sorted(sizes, reverse=True) == expected
    assert sorted(file.path for pack in packs for file in pack) == sorted(file.path for file in files)
