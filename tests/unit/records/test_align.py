"""Casting rows to another schema: the values Hudi would make of them."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.records import align, storable

NESTED = pa.struct(
    [("a", pa.int32()), ("l", pa.list_(pa.struct([("x", pa.int32()), ("m", pa.map_(pa.string(), pa.int32()))])))]
)
ROWS: list[Any] = [
    {"a": 1, "l": [{"x": 1, "m": [("k", 1), ("n", None)]}, None, {"x": None, "m": None}]},
    None,
    {"a": None, "l": None},
    {"a": 4, "l": []},
    {"a": 5, "l": [{"x": 9, "m": []}]},
]


def as_type(values: pa.Array, to: pa.DataType) -> pa.Array:
    return align(pa.RecordBatch.from_arrays([values], ["c"]), pa.schema([("c", to)])).column(0)


def aligned(values: list[Any], given: pa.DataType, to: pa.DataType) -> list[Any]:
    result = as_type(pa.array(values, given), to)
    result.validate(full=True)
    assert result.type == to
    return list(result.to_pylist())


def test_rows_that_fit_already_are_the_same_object() -> None:
    rows = pa.table({"a": [1]})
    assert align(rows, rows.schema) is rows


def test_columns_are_found_by_name_filled_and_left_out() -> None:
    rows = pa.record_batch({"b": [1, 2], "gone": ["x", "y"], "a": ["p", "q"]})
    to = pa.schema([("a", pa.string()), ("n", pa.list_(pa.int32())), ("b", pa.int64())])
    assert align(rows, to).to_pylist() == [{"a": "p", "n": None, "b": 1}, {"a": "q", "n": None, "b": 2}]
    assert align(rows, pa.schema([])).num_rows == 2
    assert align(pa.table(rows.to_pydict()), pa.schema([])).num_rows == 2


@pytest.mark.parametrize(
    ("given", "values", "to", "expected"),
    [
        (pa.float32(), [1.1, 0.1, None, 16777216.0], pa.float64(), [1.1, 0.1, None, 16777216.0]),
        (pa.float32(), [float("inf")], pa.float64(), [float("inf")]),
        (pa.int32(), [-5, None], pa.int64(), [-5, None]),
        (pa.int64(), [2**53 + 1], pa.float64(), [float(2**53)]),
        (pa.int32(), [7], pa.string(), ["7"]),
        (pa.float64(), [1.0, 1e10, 1.5e-5, 0.1], pa.string(), ["1.0", "1.0E10", "1.5E-5", "0.1"]),
        (pa.date32(), [date(2019, 4, 14)], pa.string(), ["2019-04-14"]),
        (pa.decimal128(10, 2), [Decimal("-1.00")], pa.string(), ["-1.00"]),
        (pa.string(), ["é"], pa.binary(), ["é".encode()]),
        (pa.binary(), ["é".encode()], pa.string(), ["é"]),
        (pa.string(), ["2020-01-02"], pa.date32(), [date(2020, 1, 2)]),
        (pa.int32(), [7], pa.decimal128(10, 2), [Decimal("7.00")]),
        (pa.decimal128(10, 2), [Decimal("1.25")], pa.decimal128(12, 4), [Decimal("1.2500")]),
        (
            pa.float64(),
            [1.005, 2.345, 2.335, -2.345, 1e-5, 1e-300, None],
            pa.decimal128(10, 2),
            [Decimal(text) for text in ("1.01", "2.35", "2.34", "-2.35", "0.00", "0.00")] + [None],
        ),
        (
            pa.string(),
            ["1.005", "12", "1e3"],
            pa.decimal128(10, 2),
            [Decimal("1.01"), Decimal("12.00"), Decimal("1000.00")],
        ),
        (pa.null(), [None], pa.list_(pa.int32()), [None]),
        (pa.dictionary(pa.int8(), pa.string()), ["x", None, "x"], pa.string(), ["x", None, "x"]),
        (pa.large_list(pa.int8()), [[1], None, []], pa.list_(pa.int32()), [[1], None, []]),
        (pa.list_(pa.int32(), 2), [[1, 2], [3, 4]], pa.list_(pa.int64()), [[1, 2], [3, 4]]),
        (pa.string_view(), ["a", None], pa.string(), ["a", None]),
        (pa.timestamp("ns"), [1_234_567], pa.timestamp("us"), None),
    ],
)
def test_values_become_what_hudi_makes_of_them(
    given: pa.DataType, values: list[Any], to: pa.DataType, expected: Any
) -> None:
    found = aligned(values, given, to)
    if expected is not None:
        assert found == expected


@pytest.mark.parametrize(
    ("given", "values", "to"),
    [
        (pa.string(), ["abc"], pa.decimal128(10, 2)),
        (pa.string(), ["2020-13-01"], pa.date32()),
        (pa.float64(), [123456789.0], pa.decimal128(10, 2)),
        (pa.float64(), [float("nan")], pa.decimal128(10, 2)),
        (pa.int64(), [2**40], pa.int32()),
        (pa.binary(), [b"\xff"], pa.string()),
        (pa.timestamp("us", "UTC"), [1001], pa.timestamp("ms", "UTC")),
        (pa.struct([("x", pa.int32())]), [{"x": 1}], pa.int32()),
    ],
)
def test_values_that_do_not_fit_are_refused_by_column(given: pa.DataType, values: list[Any], to: pa.DataType) -> None:
    with pytest.raises(Invalid, match="`c`") as raised:
        aligned(values, given, to)
    assert raised.value.facts["column"] == "c"


def test_nested_values_survive_promotion_new_fields_and_slicing() -> None:
    to = pa.struct(
        [
            ("new", pa.string()),
            (
                "l",
                pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.int64())), ("y", pa.bool_()), ("x", pa.float64())])),
            ),
            ("a", pa.int64()),
        ]
    )

    def expected(row: Any) -> Any:
        if row is None:
            return None
        items = row["l"] and [item and {"m": item["m"], "y": None, "x": item["x"]} for item in row["l"]]
        return {"new": None, "l": [] if row["l"] == [] else items, "a": row["a"]}

    values = pa.array(ROWS, NESTED)
    for start in range(len(ROWS)):
        for length in range(len(ROWS) - start + 1):
            part = as_type(values.slice(start, length), to)
            part.validate(full=True)
            assert part.to_pylist() == [expected(row) for row in ROWS[start : start + length]]


def test_children_named_by_other_writers_get_the_stored_names() -> None:
    given = pa.list_(
        pa.field(
            "array", pa.struct([pa.field("x", pa.list_(pa.field("array", pa.int32(), nullable=False)))]), nullable=False
        )
    )
    rows = pa.table({"l": pa.array([[{"x": [1]}], None], given)})
    found = align(rows, storable(rows.schema))
    assert found.schema.field("l").type.value_field.name == "element"
    assert found.to_pylist() == rows.to_pylist()


def test_required_columns_must_have_values() -> None:
    to = pa.schema([pa.field("a", pa.int32(), nullable=False)])
    with pytest.raises(Invalid, match="`a` is required, but 1 rows"):
        align(pa.table({"a": pa.array([1, None], pa.int32())}), to)
    with pytest.raises(Invalid, match="`a` is required"):
        align(pa.table({"b": [1]}), to)


def test_required_fields_inside_null_structs_need_no_value() -> None:
    to = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    assert aligned([{"x": 1}, None], pa.struct([("x", pa.int32())]), to) == [{"x": 1}, None]
    with pytest.raises(Invalid, match=r"`c\.x`"):
        aligned([{"x": None}], pa.struct([("x", pa.int32())]), to)


@pytest.mark.parametrize("view", [pa.list_view, pa.large_list_view])
def test_views_of_lists_become_lists(view: Any) -> None:
    """Arrow's own cast of them empties lists, or writes where it must not."""
    chance = random.Random(20261128)

    def drawn(depth: int) -> Any:
        if depth == 0:
            return chance.choice([None, "a", "bc"])
        return None if chance.random() < 0.2 else [drawn(depth - 1) for _ in range(chance.randint(0, 4))]

    for depth in (1, 2) * 100:
        given, wanted = pa.string_view(), pa.string()
        for _ in range(depth):
            given, wanted = view(given), pa.list_(wanted)
        values, cut = [drawn(depth) for _ in range(chance.randint(1, 8))], chance.randint(0, 3)
        rows = pa.table({"c": pa.array(values, given).slice(cut)})
        column = align(rows, storable(pa.schema([("c", given)]))).column(0)
        column.validate(full=True)
        assert column.to_pylist() == values[cut:]


def test_views_of_lists_may_overlap_and_lie_in_any_order() -> None:
    items = pa.array([1, 2, 3, 4])
    lists = pa.ListViewArray.from_arrays(pa.array([2, 0, 1], pa.int32()), pa.array([2, 3, 0], pa.int32()), items)
    column = align(pa.table({"c": lists}), storable(pa.schema([("c", lists.type)]))).column(0)
    assert column.to_pylist() == [[3, 4], [1, 2, 3], []]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view(), pa.large_string()])
def test_dictionaries_of_views_are_taken(kind: pa.DataType) -> None:
    """As Polars gives its categories."""
    values = pa.array(["x", None, "y"], pa.string()).cast(kind)
    named = pa.DictionaryArray.from_arrays(pa.array([2, None, 0, 1], pa.uint32()), values)
    rows = pa.table({"c": named, "in": pa.StructArray.from_arrays([named], ["k"])})
    found = align(rows, storable(rows.schema)).column(0).to_pylist()
    assert found == [values[2].as_py(), None, values[0].as_py(), None]


def test_values_of_a_dictionary_that_no_row_has_need_not_fit() -> None:
    """pandas keeps the categories of rows that were filtered out; items between views of lists are nobody's either."""
    named = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array([1, 2**40]))
    assert align(pa.table({"c": named}), pa.schema([("c", pa.int32())])).column(0).to_pylist() == [1, 1]
    items = pa.array([1, 2**40, 3])
    lists = pa.ListViewArray.from_arrays(pa.array([0, 2], pa.int32()), pa.array([1, 1], pa.int32()), items)
    wanted = storable(pa.schema([("c", pa.list_(pa.int32()))]))
    assert align(pa.table({"c": lists}), wanted).column(0).to_pylist() == [[1], [3]]
