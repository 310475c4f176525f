"""A plan with less in it reads what the same query would have read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.filters.sql import parse_row_filter
from hoodie.query import run_read
from hoodie.query.narrow import narrowed

ROWS = pa.table({"id": ["a", "b", "c"], "city": ["sf", "sf", "la"], "fare": [1.0, 2.0, 3.0], "ts": [1, 1, 1]})
KEYS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    table = hoodie.Table.create(str(tmp_path / "rides"), schema=ROWS.schema, options=KEYS)
    table.upsert(ROWS)
    return table


@pytest.mark.parametrize("condition", ["city = 'la'", "fare > 1.5", "city = 'sf' and fare > 1.5", "city = 'x'", None])
@pytest.mark.parametrize("columns", [("fare",), ("ts", "id"), ("city",)])
def test_rows_are_those_of_the_narrower_query(
    table: hoodie.Table, condition: str | None, columns: tuple[str, ...]
) -> None:
    plan = table.read_plan()
    asked = None if condition is None else parse_row_filter(condition, plan.schema)
    less = narrowed(plan, columns, asked)
    got = run_read(less, table.storage, LocalEngine()).read_all()
    assert got.equals(table.scan(columns, condition).read_all())


def test_files_of_other_partitions_are_left_out(table: hoodie.Table) -> None:
    plan = table.read_plan()
    less = narrowed(plan, ("id",), parse_row_filter("city = 'la'", plan.schema))
    assert [file.partition for file in less.files] == ["la"]
    assert less.skipped_files == 1


def test_a_condition_joins_the_one_that_is_there(table: hoodie.Table) -> None:
    plan = table.read_plan(filter="fare > 1.5")
    less = narrowed(plan, ("id",), parse_row_filter("city = 'sf'", plan.schema))
    assert run_read(less, table.storage, LocalEngine()).read_all().to_pydict() == {"id": ["b"]}


def test_an_unknown_column_is_named(table: hoodie.Table) -> None:
    with pytest.raises(Invalid, match="no_such"):
        narrowed(table.read_plan(), ("no_such",))
