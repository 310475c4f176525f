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
from hoodie.services.clustering.row_sample import FEW_ROWS, RowSample
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


LONG = pa.schema([("text", pa.string()), ("number", pa.int64())])
MIB = 1 << 20


def long_texts(count, size, *, ascending=False):
    """Batches of different texts of so many characters, some of them in each batch."""
    numbers = np.arange(count) if ascending else np.random.default_rng(5).permutation(count)
    per_batch = max(1, MIB // 4 // size)
    for start in range(0, count, per_batch):
        some = numbers[start : start + per_batch]
        texts = pa.array([f"{number:09d}" * (size // 9) for number in some])
        yield pa.RecordBatch.from_arrays([texts, pa.array(some)], schema=LONG)


@pytest.mark.parametrize("ascending", [False, True], ids=["in any order", "in order"])
@pytest.mark.parametrize("size", [900, 9_000, 30_000])
def test_long_values_take_no_more_memory_than_the_limit_has_for_them(size, ascending):
    """Samples of the files that rows went to held most of the rows: 190 MiB of 300, with a limit of 16."""
    before, limit, count = pa.total_allocated_bytes(), 2 * MIB, 30 * MIB // size
    seen, highest = [], 0
    with SortedRows(LONG, ByColumns(SortOrder(("text",))), limit, None) as held:
        for batch in long_texts(count, size, ascending=ascending):
            held.add(batch)
            del batch
        added = pa.total_allocated_bytes() - before
        for batch in held.batches():
            seen += batch.column("number").to_pylist()
            highest = max(highest, pa.total_allocated_bytes() - before)
    assert seen == list(range(count))
    assert added < limit
    assert highest < 4 * limit  # what is sorted ahead, and twice what is being sorted


@given(
    sizes=st.lists(st.integers(0, 400), min_size=1, max_size=300),
    most=st.integers(1, 64),
    limit_bytes=st.integers(0, 4_000),
    cuts=st.lists(st.integers(0, 300), max_size=4),
)
def test_a_sample_is_even_and_takes_no_more_than_it_may(sizes, most, limit_bytes, cuts):
    table = pa.table({"place": pa.array(range(len(sizes))), "text": ["x" * size for size in sizes]})
    sample = RowSample(table.schema, most, is_cut=False, limit_bytes=limit_bytes)
    for start, end in pairwise(sorted({0, len(sizes), *(min(cut, len(sizes)) for cut in cuts)})):
        for batch in table.slice(start, end - start).combine_chunks().to_batches():
            sample.add(batch)
    found = sample.rows
    places = found.column("place").to_pylist()
    step = places[1] if len(places) > 1 else max(1, len(sizes))
    assert places == list(range(0, len(sizes), step))
    assert len(places) <= most
    assert found.nbytes <= limit_bytes or len(places) <= FEW_ROWS
    assert len(places) >= min(most // 2, len(sizes), FEW_ROWS // 2)
