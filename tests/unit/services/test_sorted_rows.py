"""Rows on their way through a sort: what is held of them at any moment."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hoodie.services.clustering.row_order import ByColumns
from hoodie.services.clustering.sorted_rows import SortedRows
from hoodie.spec import SortOrder
from hoodie.testing.memory import at_most_held

SCHEMA = pa.schema([("k", pa.string()), ("a", pa.int64()), ("s", pa.string())])
ROWS = 1 << 14
LIMIT = 8 << 20
BATCHES = 64


def batches():
    """64 MiB, eight times what may be held, in batches of their own memory."""
    chance = np.random.default_rng(1)
    keys, text = pa.array([f"{n:020}" for n in range(ROWS)]), pa.array(["x" * 24] * ROWS)
    for _ in range(BATCHES):
        columns = [pa.concat_arrays([keys, keys.slice(0, 0)]), pa.array(chance.integers(0, 10**9, ROWS)), text]
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA).take(pa.array(np.arange(ROWS)))


@pytest.mark.parametrize("order", [None, ByColumns(SortOrder(("a",)))], ids=["as they come", "sorted"])
def test_rows_far_beyond_the_limit_are_put_in_order_in_a_few_times_the_limit(order, tmp_path):
    pool = pa.default_memory_pool()
    before, last, seen = pool.bytes_allocated(), -1, 0
    highest = 0
    with at_most_held(160 << 20), SortedRows(SCHEMA, order, LIMIT, str(tmp_path)) as held:
        for batch in batches():
            held.add(batch)
            highest = max(highest, pool.bytes_allocated() - before)
        for batch in held.batches():
            seen += batch.num_rows
            highest = max(highest, pool.bytes_allocated() - before)
            if order is not None:
                values = batch.column("a").to_numpy()
                assert last <= values[0]
                assert (np.diff(values) >= 0).all()
                last = values[-1]
    assert seen == ROWS * BATCHES
    assert highest < 6 * LIMIT
    assert list(tmp_path.iterdir()) == []
