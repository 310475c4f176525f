"""Orders of rows: linear against a plain sort, curves against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import Unsupported
from hoodie.services.clustering.positions import dense_ranks, sorted_positions
from hoodie.services.clustering.row_order import ByColumns
from hoodie.spec import Curve, SortOrder

GRID = 8


def column(values, kind=None):
    return pa.chunked_array([pa.array(values, kind)])


def order_of(curve, *columns):
    return ByColumns(SortOrder(tuple(f"c{n}" for n in range(len(columns))), curve)).positions(columns).tolist()


@given(st.lists(st.tuples(st.none() | st.integers(-3, 3), st.none() | st.sampled_from(["", "a", "aa", "b", "ä"]))))
def test_linear_order_is_that_of_a_sort_with_nulls_first(rows):
    found = order_of(Curve.LINEAR, column([a for a, _ in rows], pa.int64()), column([b for _, b in rows], pa.string()))

    def key(place):
        number, text = rows[place]
        return (number is not None, number or 0, text is not None, (text or "").encode())

    assert found == sorted(range(len(rows)), key=key)


@given(st.lists(st.none() | st.floats(width=32)))
def test_floats_go_by_value_with_null_first_and_nan_last(values):
    found = order_of(Curve.LINEAR, column(values, pa.float32()))

    def key(place):
        value = values[place]
        return (
            value is not None,
            value is not None and math.isnan(value),
            value if value and not math.isnan(value) else 0.0,
        )

    assert found == sorted(range(len(values)), key=key)


@pytest.mark.parametrize(
    "kind", [pa.bool_(), pa.date32(), pa.timestamp("us", "UTC"), pa.decimal128(12, 2), pa.binary()]
)
def test_other_types_have_their_order(kind):
    values = pa.array([1, 0, None, 1], pa.int32())
    as_kind = {
        pa.bool_(): lambda: values.cast(pa.bool_()),
        pa.binary(): lambda: pa.array([b"b", b"a", None, b"b"]),
    }.get(kind, lambda: values.cast(pa.int64() if pa.types.is_timestamp(kind) else pa.int32()).cast(kind))()
    assert order_of(Curve.LINEAR, pa.chunked_array([as_kind])) == [2, 1, 0, 3]


def grid():
    return column([n // GRID for n in range(GRID * GRID)]), column([n % GRID for n in range(GRID * GRID)])


def test_z_order_interleaves_bits():
    x, y = grid()
    found = [(n // GRID, n % GRID) for n in order_of(Curve.Z_ORDER, x, y)]
    assert found[:8] == [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
    assert sorted(found) == [(a, b) for a in range(GRID) for b in range(GRID)]


@pytest.mark.parametrize("dimensions", [2, 3])
def test_each_step_on_a_hilbert_curve_goes_to_a_neighbour(dimensions):
    side = 4
    places = np.indices((side,) * dimensions).reshape(dimensions, -1)
    columns = [column(axis) for axis in places]
    found = places[:, order_of(Curve.HILBERT, *columns)]
    assert np.abs(np.diff(found, axis=1)).sum(axis=0).tolist() == [1] * (side**dimensions - 1)


@pytest.mark.parametrize("curve", list(Curve))
def test_a_skewed_column_weighs_as_much_as_an_even_one(curve):
    rng = np.random.default_rng(1)
    even, skewed = rng.integers(0, 1000, 4096), np.exp(rng.normal(0, 8, 4096))
    order = np.array(order_of(curve, column(even), column(skewed)))
    parts = np.array_split(order, 16)
    quarter = np.quantile(skewed, 0.25)
    touched = sum(skewed[part].min() <= quarter for part in parts)
    assert touched <= (16 if curve is Curve.LINEAR else 8)


def test_a_single_column_on_a_curve_is_sorted():
    assert order_of(Curve.HILBERT, column([3, 1, None, 2])) == [2, 1, 3, 0]


def test_what_has_no_order_is_refused():
    with pytest.raises(Unsupported, match="cannot be sorted by column c0"):
        order_of(Curve.LINEAR, column([[1], [2]], pa.list_(pa.int64())))


TEXTS = st.lists(st.sampled_from(["", "a", "a\0", "b", "user-0000", "é"]), max_size=5).map("".join)
KINDS = {
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.binary(): TEXTS.map(str.encode),
    pa.dictionary(pa.int32(), pa.string()): TEXTS,
    pa.uint64(): st.sampled_from([0, 1, 2**64 - 1]),
    pa.int64(): st.sampled_from([0, -1, 2**63 - 1, -(2**63)]),
    pa.date32(): st.integers(-3, 3),
}


@given(st.data())
def test_ranks_and_places_are_those_of_a_sort_of_the_values(data):
    """Eight bytes of a text, or the number that NULL has as well, do not say all."""
    kind = data.draw(st.sampled_from(list(KINDS)))
    pool = data.draw(st.lists(st.none() | KINDS[kind], min_size=1, max_size=8))
    values = data.draw(st.lists(st.sampled_from(pool), max_size=30))
    cut = len(values) // 3
    given_column = pa.chunked_array([pa.array(values[:cut], kind), pa.array(values[cut:], kind)])

    def key(value):
        return (value is not None, (value.encode() if isinstance(value, str) else value) if value is not None else 0)

    places = sorted(range(len(values)), key=lambda place: key(values[place]))
    order = sorted({key(value) for value in values if value is not None})
    assert sorted_positions([given_column], ["c"]).tolist() == places
    assert dense_ranks(given_column, "c").tolist() == [
        0 if value is None else 1 + order.index(key(value)) for value in values
    ]
