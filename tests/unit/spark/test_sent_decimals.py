"""Decimals that travel between Spark and its workers as longs."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie.spark.worker import with_schema

KIND = pa.decimal128(18, 2)
MOST = Decimal("9999999999999999.99")
VALUES = [Decimal("1.25"), None, Decimal("-0.01"), MOST, -MOST, None]
LONGS = pa.array([None if value is None else int(value.scaleb(2)) for value in VALUES], pa.int64())


def through(column: pa.Array, kind: pa.DataType) -> pa.Array:
    batch = pa.RecordBatch.from_arrays([column], names=["sent"])
    (made,) = with_schema([batch], pa.schema([pa.field("x", kind)]))
    made.validate(full=True)
    return made.column(0)


@pytest.mark.parametrize("start", range(len(VALUES)))
def test_longs_become_the_decimals_they_are_the_digits_of_at_any_offset(start: int) -> None:
    assert through(LONGS.slice(start), KIND).to_pylist() == VALUES[start:]


def test_longs_without_nulls_and_no_longs_at_all_become_decimals() -> None:
    assert through(LONGS.drop_null(), KIND).to_pylist() == [value for value in VALUES if value is not None]
    assert through(LONGS.slice(0, 0), KIND).to_pylist() == []


@pytest.mark.parametrize("start", range(len(VALUES)))
def test_decimals_become_their_digits_and_come_back(start: int) -> None:
    decimals = pa.array(VALUES, KIND).slice(start)
    assert through(through(decimals, pa.int64()), KIND).to_pylist() == VALUES[start:]
