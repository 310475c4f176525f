"""What becomes of stored rows, and in which columns they differ then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.write.changed_rows import ChangedRows

NAN = float("nan")
ITEM = pa.struct([("n", pa.int64()), ("f", pa.float64())])


@pytest.mark.parametrize(
    ("kind", "before", "after", "changed"),
    [
        (pa.int64(), 1, 1, False),
        (pa.int64(), None, None, False),
        (pa.int64(), None, 0, True),
        (pa.string(), "", None, True),
        (pa.string(), "é", "é", False),
        (pa.decimal128(10, 2), 1, 2, True),
        (pa.float64(), 0.0, -0.0, True),
        (pa.float32(), 0.0, -0.0, True),
        (pa.float64(), NAN, NAN, False),
        (pa.float64(), NAN, None, True),
        (pa.list_(pa.int64()), [1, None], [1, None], False),
        (pa.list_(pa.int64()), [], None, True),
        (pa.map_(pa.string(), pa.int64()), [("a", 1)], [("a", 2)], True),
        (pa.struct([("n", pa.int64())]), {"n": None}, None, True),
        (pa.struct([("n", pa.int64())]), {"n": 3}, {"n": 3}, False),
        # Zeros of other signs are equal to Arrow inside of lists, too: nobody looks.
        (ITEM, {"n": 1, "f": 0.0}, {"n": 1, "f": -0.0}, True),
        (pa.list_(pa.float64()), [0.0], [-0.0], True),
        (pa.map_(pa.string(), pa.float32()), [("a", 0.0)], [("a", -0.0)], True),
    ],
)
def test_a_column_has_changed_where_one_of_its_bits_has(
    kind: pa.DataType, before: Any, after: Any, changed: bool
) -> None:
    stored = pa.table({"x": pa.array([None, before, before], kind), "y": [1, 2, 3]})
    fresh = pa.table({"x": pa.array([after], kind), "y": [3]})
    change = ChangedRows(stored, np.array([2]), fresh, np.array([], np.int64))
    assert change.changed_columns([]) == (["x"] if changed else [])
    assert change.changed_columns(["x"]) == []


def test_rows_are_replaced_and_go() -> None:
    stored = pa.table({"x": pa.chunked_array([["a", "b"], ["c", "d"]]), "y": [1, 2, 3, 4]})
    change = ChangedRows(stored, np.array([0, 3]), pa.table({"x": ["A", "D"], "y": [10, 40]}), np.array([1]))
    assert change.rows(["y", "x"]).to_pydict() == {"y": [10, 3, 40], "x": ["A", "c", "D"]}
    nothing = ChangedRows(stored, np.array([], np.int64), stored.slice(0, 0), np.array([], np.int64))
    assert nothing.rows(["x"]).to_pydict() == {"x": ["a", "b", "c", "d"]}
    assert nothing.changed_columns([]) == []
