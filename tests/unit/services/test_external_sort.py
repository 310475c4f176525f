"""Rows that do not fit in memory come in the order in which they would come if they did."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.services.clustering.row_order import ByColumns
from hoodie.services.clustering.sorted_rows import SortedRows
from hoodie.spec import Curve, CurveMethod, SortOrder

VALUES = {
    "i": (pa.int64(), st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)),
    "f": (pa.float64(), st.sampled_from([0.0, -0.0, float("nan"), float("inf"), -1.5]) | st.floats()),
    "s": (pa.string(), st.sampled_from(["", "a", "ab", "abcdefgh", "abcdefghi"]) | st.text(max_size=12)),
    "b": (pa.bool_(), st.booleans()),
    "d": (pa.date32(), st.dates(date(1900, 1, 1), date(2100, 1, 1))),
    "n": (pa.decimal128(12, 2), st.integers(-(10**6), 10**6).map(lambda number: Decimal(number) / 100)),
}
SCHEMA = pa.schema([("place", pa.int32()), *((name, kind) for name, (kind, _) in VALUES.items())])
ORDERS = st.builds(
    lambda names, curve, method, sample: ByColumns(SortOrder(tuple(names), curve, method, sample)),
    st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3, unique=True),
    st.sampled_from(Curve),
    st.sampled_from(CurveMethod),
    st.integers(1, 40),
)


@st.composite
def rows(draw):
    """Up to some thousand rows of few or of many different values, some NULL, some columns with one value only."""
    count = draw(st.integers(1, 3_000))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = [pa.array(np.arange(count, dtype=np.int32))]
    for kind, values in VALUES.values():
        pool = draw(st.lists(st.none() | values, min_size=1, max_size=40))
        columns.append(pa.array(pool, kind).take(pa.array(chance.integers(0, len(pool), count))))
    whole = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    cuts = sorted({0, count, *draw(st.lists(st.integers(0, count), max_size=5))})
    return [whole.slice(a, b - a) for a, b in pairwise(cuts)]


def in_order(batches, order, limit):
    with SortedRows(SCHEMA, order, limit, None) as held:
        for batch in batches:
            held.add(batch)
        return pa.Table.from_batches(held.batches(), SCHEMA)


@pytest.mark.deep
@settings(max_examples=60, deadline=None)
@given(batches=rows(), order=ORDERS, limit=st.sampled_from([1, 500, 5_000, 40_000]))
def test_a_tiny_limit_changes_no_place(batches, order, limit):
    found, wanted = in_order(batches, order, limit), in_order(batches, order, 1 << 40)
    assert found.column("place").to_pylist() == wanted.column("place").to_pylist()
    given_rows = pa.Table.from_batches(batches).sort_by("place")
    assert str(found.sort_by("place").to_pylist()) == str(given_rows.to_pylist())  # NaN is itself


def test_words_have_names_that_no_column_has():
    schema = pa.schema([(name, pa.int64()) for name in ("place", "_word_0", "word_0", "_word_1")])
    chance = np.random.default_rng(2)
    columns = [pa.array(np.arange(2000)), *(pa.array(chance.integers(0, 99, 2000)) for _ in range(3))]
    rows_given = pa.RecordBatch.from_arrays(columns, schema=schema)
    order = ByColumns(SortOrder(("_word_0", "_word_1"), Curve.Z_ORDER, CurveMethod.RANK, 40))

    def places(limit):
        with SortedRows(schema, order, limit, None) as held:
            for start in range(0, 2000, 100):
                held.add(rows_given.slice(start, 100))
            return pa.Table.from_batches(held.batches(), schema).column("place").to_pylist()

    assert places(5_000) == places(1 << 40)
