"""Ranks by a sample, and the numbers they go by, stand in the order of values, whatever these are."""

from __future__ import annotations

import string
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.services.clustering.positions import dense_ranks, places_by
from hoodie.services.clustering.row_order import ByColumns
from hoodie.services.clustering.row_sample import RowSample
from hoodie.services.clustering.sampled_ranks import SAMPLED_ROWS, SampledRanks, cut_texts, sampling_step
from hoodie.services.clustering.sorted_rows import SortedRows
from hoodie.services.clustering.value_numbers import numbered_values
from hoodie.spec import Curve, CurveMethod, SortOrder

TEXT = st.sampled_from(
    ["", "a", "a\0", "https://a.org/x", "https://a.org/xyzxyzxyz", "https://a.org/xyzxyzxz", "i", "ä"]
)
VALUES = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "float32": (pa.float32(), st.floats(width=32)),
    "float64": (pa.float64(), st.sampled_from([0.0, -0.0]) | st.floats()),
    "bool": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us", "UTC"), st.integers(-(2**60), 2**60)),
    "time": (pa.time32("ms"), st.integers(0, 86_399_999)),
    "string": (pa.string(), TEXT | st.text(max_size=80)),
    "large": (pa.large_string(), TEXT),
    "binary": (pa.binary(), st.binary(max_size=20)),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), TEXT),
    "decimal": (pa.decimal128(12, 2), st.integers(-(10**9), 10**9).map(lambda n: Decimal(n) / 100)),
}


@st.composite
def columns(draw):
    """A column in one or two chunks, and a part of it that is a sample."""
    kind, values = VALUES[draw(st.sampled_from(list(VALUES)))]
    given_values = draw(st.lists(st.none() | values, max_size=40))
    cut = draw(st.integers(0, len(given_values)))
    chunks = [pa.array([None, *given_values[:cut]], kind).slice(1), pa.array(given_values[cut:], kind)]
    return pa.chunked_array(chunks), draw(st.integers(1, 5))


def in_order(numbers, column):
    """Whether numbers stand in the order of values: they may be the same where values are not."""
    ranks = dense_ranks(column, "c")
    places = np.argsort(ranks, kind="stable")
    found = np.asarray(numbers)[places]
    return bool((found[1:] >= found[:-1]).all())


@given(columns())
def test_numbers_and_ranks_stand_in_the_order_of_values(drawn):
    column, step = drawn
    sample = column.take(pa.array(np.arange(0, len(column), step)))
    ranks = SampledRanks(cut_texts(sample), "c")
    found = ranks.of(column)
    assert in_order(found, column)
    assert found.max(initial=0) <= ranks.most
    assert (found == 0).tolist() == column.is_null().to_pylist()
    numbered = numbered_values(sample)
    if numbered is not None:
        below, not_above = numbered.counted(column)
        assert in_order(below, column)
        assert in_order(not_above, column)


def test_a_rank_counts_the_rows_of_the_sample_below():
    sample = pa.chunked_array([pa.array([30, None, 10, 10, 20])])
    ranks = SampledRanks(sample, "c")
    assert ranks.of(pa.chunked_array([pa.array([None, 5, 10, 15, 20, 25, 30, 99])])).tolist() == [
        0,
        2,
        2,
        4,
        4,
        5,
        5,
        5,
    ]
    assert ranks.most == 5


@pytest.mark.parametrize("shared", ["", "https://example.org/a/long/way/down/", "https://example.org/" + "x" * 70])
def test_texts_are_told_apart_behind_what_all_begin_with(shared):
    chance = np.random.default_rng(3)
    texts = [shared + "".join(chance.choice(list(string.ascii_lowercase), 20)) for _ in range(4096)]
    column = pa.chunked_array([pa.array(texts)])
    found = SampledRanks(cut_texts(column.slice(0, 1024)), "c").of(column)
    assert len(np.unique(found)) > (1000 if len(shared) < 64 else 0)


def test_texts_that_share_much_in_many_ways_are_told_apart_too():
    """Two thirds of them begin alike, and eight bytes behind what all begin with say little."""
    texts = [f"https://{host}.example.org/page/{n:05}" for n in range(3000) for host in ("a", "b", "c")]
    column = pa.chunked_array([pa.array(texts)])
    found = SampledRanks(cut_texts(column), "c").of(column)
    assert len(np.unique(found)) > 4000
    assert in_order(found, column)


def test_a_sample_is_evenly_spaced_however_rows_come():
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    rows = pa.RecordBatch.from_arrays([pa.array(range(1000)), pa.array(["x" * 99] * 1000)], schema=schema)
    for cuts in ([0, 1000], [0, 1, 2, 500, 501, 1000], list(range(0, 1001, 10))):
        sample = RowSample(schema, 100, is_cut=True)
        for first, end in pairwise(cuts):
            sample.add(rows.slice(first, end - first))
        assert sample.rows.column("n").to_pylist() == list(range(0, 1000, 16))
        assert sample.rows.column("s").to_pylist() == [b"x" * 64] * 63
    assert [sampling_step(rows, 100) for rows in (0, 1, 100, 101, 200, 201, 1000)] == [1, 1, 1, 2, 2, 4, 16]


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 3)), max_size=30), st.integers(1, 64))
def test_places_are_those_of_a_stable_sort(rows, bits):
    numbers = [np.array([first % 2**bits for first, _ in rows], np.uint64), np.array([b for _, b in rows], np.uint64)]
    assert places_by(numbers).tolist() == np.lexsort(numbers[::-1]).tolist()


@pytest.mark.parametrize("curve", [Curve.Z_ORDER, Curve.HILBERT])
@pytest.mark.parametrize("method", [CurveMethod.RANK, CurveMethod.SAMPLE])
def test_more_rows_than_a_sample_has_come_in_one_order_in_memory_and_by_way_of_the_disk(curve, method, tmp_path):
    rows = 2 * SAMPLED_ROWS + 77
    chance = np.random.default_rng(5)
    text = pa.array([f"visit-{n:06}" for n in range(1000)]).take(pa.array(chance.integers(0, 1000, rows)))
    number = pa.array(chance.integers(0, 50_000, rows), mask=chance.random(rows) < 0.1)
    schema = pa.schema([("place", pa.int64()), ("t", pa.string()), ("n", pa.int64())])
    table = pa.Table.from_arrays([pa.array(np.arange(rows)), text, number], schema=schema)
    order = ByColumns(SortOrder(("t", "n"), curve, method, 10_000))
    found = []
    for limit in (1 << 40, 1 << 20):
        with SortedRows(schema, order, limit, str(tmp_path)) as held:
            for batch in table.to_batches(max_chunksize=10_000):
                held.add(batch)
            found.append(pa.Table.from_batches(held.batches(), schema).column("place").to_numpy())
    assert (found[0] == found[1]).all()
    assert (np.sort(found[0]) == np.arange(rows)).all()
