"""Tables whose base files are ORC are read as others are."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from hoodie.testing.hand_table import HandTable, at

ROWS = [{"id": "a", "part": "p", "qty": 1}, {"id": "b", "part": "p", "qty": None}, {"id": "c", "part": "p", "qty": 3}]


@pytest.fixture(name="table")
def _table(profile) -> HandTable:
    """A table with two commits, the first of a file group that the second rewrote; all base files are ORC."""
    table = HandTable(profile)
    table.commit(at(1), {("p", "f"): ROWS[:2]})
    table.commit(at(2), {("p", "f"): [{**ROWS[0], "_hoodie_commit_time": at(1)}, ROWS[1], ROWS[2]]})
    for file in [one for one in table.storage.list("") if one.path.endswith(".parquet")]:
        buffer = io.BytesIO()
        orc.write_table(pq.read_table(io.BytesIO(table.storage.read(file.path))), buffer)
        table.storage.put(file.path.replace(".parquet", ".orc"), buffer.getvalue())
        table.storage.delete(file.path)
    return table


def test_the_snapshot_has_the_newest_rows(table, rows):
    got = rows(table)
    assert got.schema.field("qty").type == pa.int64()
    assert got.select(["id", "part", "qty"]).to_pylist() == ROWS


def test_the_past_has_its_own_rows(table, rows):
    assert rows(table, as_of=at(1)).column("id").to_pylist() == ["a", "b"]


def test_columns_and_filters_reach_orc_files(table, rows):
    assert rows(table, columns=("qty",), filter="id >= 'b'").to_pylist() == [{"qty": None}, {"qty": 3}]
    assert rows(table, columns=(), filter=None).num_rows == 3
