"""Tables without record key fields: rows are named by the key they got, which rows read from the table carry."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.errors import Invalid
from hoodie.table import Table, as_source, write

OPTIONS = {
    "hoodie.table.name": "auto",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.index.bloom.num_entries": "100",
}


@pytest.fixture
def path(tmp_path: Path, version: int) -> str:
    path = str(tmp_path / "table")
    rows = pa.table({"x": pa.array([1, 2, 3], pa.int64()), "part": ["a", "a", "b"]})
    write(as_source(rows), path, {**OPTIONS, "hoodie.write.table.version": str(version)}, "append")
    return path


def held(path: str) -> dict[str, int]:
    rows = Table.open(path).scan(columns=["_hoodie_record_key", "x"]).read_all()
    return dict(zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True))


def picked(path: str, x: int) -> pa.Table:
    return Table.open(path).scan(filter=f"x = {x}").read_all()


def test_rows_read_from_the_table_update_it_when_appended(path: str) -> None:
    before = held(path)
    rows = picked(path, 2)
    changed = rows.set_column(rows.schema.get_field_index("x"), "x", pc.multiply(rows.column("x"), 10))
    write(as_source(changed), path, OPTIONS, "append")
    assert held(path) == {key: 20 if x == 2 else x for key, x in before.items()}


def test_rows_read_from_the_table_can_be_deleted(path: str) -> None:
    before = held(path)
    write(as_source(picked(path, 1)), path, {**OPTIONS, "hoodie.datasource.write.operation": "delete"}, "append")
    assert held(path) == {key: x for key, x in before.items() if x != 1}


def test_rows_without_keys_are_inserted(path: str) -> None:
    write(as_source(pa.table({"x": pa.array([2], pa.int64()), "part": ["a"]})), path, OPTIONS, "append")
    assert sorted(held(path).values()) == [1, 2, 2, 3]


def test_upsert_of_rows_without_keys_is_refused(path: str) -> None:
    before = held(path)
    with pytest.raises(Invalid, match="no record key fields"):
        Table.open(path).upsert(pa.table({"x": pa.array([2], pa.int64()), "part": ["a"]}))
    assert held(path) == before


def test_a_missing_key_among_carried_ones_is_refused(path: str) -> None:
    rows = picked(path, 2)
    lost = rows.set_column(2, "_hoodie_record_key", pa.nulls(1, pa.string()))
    with pytest.raises(Invalid, match="_hoodie_record_key"):
        Table.open(path, options=OPTIONS).upsert(lost)
    assert sorted(held(path).values()) == [1, 2, 3]
