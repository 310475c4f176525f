"""Which files may hold a value, by ranges that are known in part."""

import math
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie.metadata import Ranges
from hoodie.records.condition import Comparison


def ranges(data_type, *rows):
    low, high, count, nulls = zip(*rows, strict=True)
    return Ranges(
        pa.array(low, data_type), pa.array(high, data_type), pa.array(count, pa.int64()), pa.array(nulls, pa.int64())
    )


INTS = ranges(pa.int32(), (1, 5, 9, 0), (6, 6, 9, 0), (None, None, 9, 9), (None, None, None, None), (7, None, 9, 1))


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("=", [3], [1, 0, 0, 1, 0]),
        ("=", [8], [0, 0, 0, 1, 1]),
        ("!=", [6], [1, 0, 0, 1, 1]),
        ("<", [6], [1, 0, 0, 1, 0]),
        ("<=", [6], [1, 1, 0, 1, 0]),
        (">", [5], [0, 1, 0, 1, 1]),
        (">=", [5], [1, 1, 0, 1, 1]),
        ("in", [0, 6], [0, 1, 0, 1, 0]),
        ("in", list(range(100, 200)), [0, 0, 0, 1, 1]),
        ("in", [], [0, 0, 0, 0, 0]),
        ("=", [None], [0, 0, 0, 0, 0]),
        ("is null", [], [0, 0, 1, 1, 1]),
        ("is not null", [], [1, 1, 0, 1, 1]),
    ],
)
def test_unknown_is_possible_and_known_decides(operator, values, expected):
    assert INTS.may_pass(Comparison("c", operator, pa.array(values, pa.int32()))).astype(int).tolist() == expected


def test_upper_bound_of_floats_is_not_believed_since_nan_is_greater():
    floats = ranges(pa.float64(), (1.0, 2.0, 9, 0))
    for operator in (">", ">=", "!="):
        assert floats.may_pass(Comparison("c", operator, pa.array([2.0]))).tolist() == [True]
    assert floats.may_pass(Comparison("c", "<", pa.array([1.0]))).tolist() == [False]
    assert floats.may_pass(Comparison("c", "=", pa.array([3.0]))).tolist() == [False]
    assert floats.may_pass(Comparison("c", "=", pa.array([math.nan]))).tolist() == [True]


@pytest.mark.parametrize(
    ("data_type", "low", "high", "inside", "outside"),
    [
        (pa.string(), "b", "d", "c", "e"),
        (pa.date32(), date(2024, 1, 1), date(2024, 1, 9), date(2024, 1, 5), date(2024, 2, 1)),
        (pa.decimal128(10, 2), Decimal("1.00"), Decimal("2.00"), Decimal("1.50"), Decimal("2.01")),
        (pa.bool_(), False, False, False, True),
    ],
)
def test_types_compare(data_type, low, high, inside, outside):
    one = ranges(data_type, (low, high, 9, 0))
    assert one.may_pass(Comparison("c", "=", pa.array([inside], data_type))).tolist() == [True]
    assert one.may_pass(Comparison("c", "=", pa.array([outside], data_type))).tolist() == [False]


def test_prefix_of_a_text_is_compared_with_the_beginning_of_bounds():
    texts = ranges(pa.string(), ("abc", "abd", 9, 0), ("b", "c", 9, 0), ("a", "z", 9, 0))
    assert texts.may_pass(Comparison("c", "starts with", pa.array(["ab"]))).tolist() == [True, False, True]
    assert texts.may_pass(Comparison("c", "starts with", pa.array(["abd1"]))).tolist() == [False, False, True]


def test_values_that_do_not_compare_rule_nothing_out():
    assert INTS.may_pass(Comparison("c", "=", pa.array(["x"]))).tolist() == [True, True, False, True, True]
