"""The types of key, partition and ordering columns stay: input is cast where no value changes, else refused."""

from __future__ import annotations

import logging
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.testing.lake import Lake

SCHEMA = pa.schema(
    [("id", pa.int64()), ("part", pa.int32()), ("ts", pa.int64()), ("v", pa.string()), ("n", pa.int64())]
)


def rows(ids: list[Any], v: str = "a", **types: pa.DataType) -> pa.Table:
    """One row for each id, with columns of other types than the table's."""
    values: dict[str, list[Any]] = {
        "id": ids,
        "part": [1] * len(ids),
        "ts": [10] * len(ids),
        "v": [v] * len(ids),
        "n": [7] * len(ids),
    }
    table = pa.table({field.name: pa.array(values[field.name], field.type) for field in SCHEMA if field.name != "id"})
    table = table.add_column(0, "id", pa.array(ids))
    for name, data_type in types.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table.column(name).cast(data_type))
    return table


@pytest.fixture
def lake(version: int) -> Lake:
    made = Lake(version, schema=SCHEMA)
    made.write("upsert", rows([1, 2, 3]))
    return made


def held(lake: Lake) -> list[tuple[Any, ...]]:
    return lake.rows(("id", "part", "ts", "v"))


@pytest.mark.parametrize("name", ["id", "part", "ts"])
@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite", "delete"])
def test_whole_numbers_that_came_as_floating_ones_are_the_numbers_they_were(
    lake: Lake, name: str, operation: str
) -> None:
    lake.write(operation, rows([1, 2], "b", **{name: pa.float64()}))
    changed = [] if operation == "delete" else [(1, 1, 10, "b"), (2, 1, 10, "b")]
    assert held(lake) == changed + ([] if operation == "insert_overwrite" else [(3, 1, 10, "a")])
    assert lake.table.schema.field(name).type == SCHEMA.field(name).type
    assert len(lake.live()) == 1
    lake.ensure_sound()


def test_a_fraction_is_no_key(lake: Lake) -> None:
    with pytest.raises(Invalid, match="Column `id`"):
        lake.write("upsert", rows([1.5]))
    assert len(held(lake)) == 3


@pytest.mark.parametrize(("name", "harm"), [("id", "spelled"), ("part", "two folders"), ("ts", "ordered otherwise")])
def test_text_is_refused_where_the_table_has_numbers(lake: Lake, name: str, harm: str) -> None:
    everything = {"hoodie.write.schema.promotions": "all"}
    for options in ({}, everything):
        with pytest.raises(Invalid, match=harm):
            lake.write("upsert", rows([1], **{name: pa.string()}), options)
    assert len(held(lake)) == 3


def test_int_columns_may_become_long(version: int) -> None:
    schema = SCHEMA.set(0, pa.field("id", pa.int32())).set(2, pa.field("ts", pa.int32()))
    lake = Lake(version, schema=schema)
    lake.write("upsert", rows([1, 2], id=pa.int32(), ts=pa.int32()))
    lake.write("upsert", rows([1, 2**40], "b"))
    assert held(lake) == [(1, 1, 10, "b"), (1 << 40, 1, 10, "b"), (2, 1, 10, "a")]
    assert lake.table.schema.field("id").type == pa.int64()


def test_other_columns_change_to_text_by_an_option_alone_and_the_log_says_so(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Invalid, match="hoodie.write.schema.promotions=all"):
        lake.write("upsert", rows([1], n=pa.string()))
    caplog.set_level(logging.WARNING, "hoodie")
    lake.write("upsert", rows([1], n=pa.string()), {"hoodie.write.schema.promotions": "all"})
    assert lake.rows(("id", "n")) == [(1, "7"), (2, "7"), (3, "7")]
    assert [record.message for record in caplog.records if "promoted" in record.message] == [
        "table lake: promoted n int64 to string"
    ]


def test_long_columns_take_floating_numbers_that_are_whole(lake: Lake) -> None:
    lake.write("upsert", rows([1], n=pa.float64()))
    assert lake.table.schema.field("n").type == pa.int64()
    fraction = rows([1]).set_column(4, "n", pa.array([0.5]))
    with pytest.raises(Invalid, match="Column `n`"):
        lake.write("upsert", fraction)


def test_double_columns_take_whole_numbers_that_they_hold_exactly(version: int) -> None:
    lake = Lake(version, schema=SCHEMA.set(4, pa.field("n", pa.float64())))
    lake.write("upsert", rows([1], n=pa.float64()))
    lake.write("upsert", rows([2]))
    assert lake.rows(("id", "n")) == [(1, 7.0), (2, 7.0)]
    with pytest.raises(Invalid, match="Column `n` is double"):
        lake.write("upsert", rows([3]).set_column(4, "n", pa.array([2**53 + 1])))


@pytest.mark.parametrize("given", [pa.array([0.125]), pa.array(["0.125"]), pa.array(["0.125"]).dictionary_encode()])
@pytest.mark.parametrize("name", ["id", "part", "ts", "n"])
def test_a_fraction_is_refused_where_a_decimal_has_fewer_places(version: int, name: str, given: pa.Array) -> None:
    """0.125 was rounded to 0.13, and replaced the row of that key."""
    schema = SCHEMA.set(SCHEMA.get_field_index(name), pa.field(name, pa.decimal128(9, 2)))
    lake = Lake(version, schema=schema)
    at = schema.get_field_index(name)
    lake.write("upsert", rows([1]).set_column(at, name, pa.array([Decimal("0.13")], pa.decimal128(9, 2))))
    before = lake.files()
    for operation in ("upsert", "insert", "bulk_insert", "delete"):
        if operation == "delete" and name not in ("id", "part"):
            continue
        with pytest.raises(Invalid, match=f"Column `{name}` .* more than 2 decimal places") as caught:
            lake.write(operation, rows([1], "b").set_column(at, name, given))
        assert "Round the column" in str(caught.value.remedy)
    assert lake.files() == before
    whole = pa.array(["0.130"]) if pa.types.is_string(given.type) else pa.array([0.13])
    lake.write("upsert", rows([1], "b").set_column(at, name, whole))
    assert lake.rows((name, "v")) == [(Decimal("0.13"), "b")]


@pytest.mark.parametrize(
    ("path", "made"),
    [
        ("x", lambda number: pa.array([number])),
        ("x", lambda number: pa.array([number]).dictionary_encode()),
        ("x.a", lambda number: pa.array([{"a": number}])),
        ("x.element", lambda number: pa.array([[number]])),
        ("x.element.a", lambda number: pa.array([[{"a": number}]])),
        ("x.value", lambda number: pa.array([[("k", number)]], pa.map_(pa.string(), pa.scalar(number).type))),
    ],
)
def test_whole_numbers_within_others_are_refused_where_doubles_do_not_hold_them(
    version: int, path: str, made: Callable[[Any], pa.Array]
) -> None:
    """2**53 + 1 became 2**53 where it stood in a struct, a list, a map or a dictionary."""
    lake = Lake(version, schema=SCHEMA)
    lake.write("upsert", rows([1]).append_column("x", made(0.5)))
    with pytest.raises(Invalid, match=f"Column `{path}` is double"):
        lake.write("upsert", rows([2]).append_column("x", made(2**53 + 1)))
    lake.write("upsert", rows([2]).append_column("x", made(2**53)))
    assert lake.rows(("id", "x")) == [(1, made(0.5)[0].as_py()), (2, made(float(2**53))[0].as_py())]
