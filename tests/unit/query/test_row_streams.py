"""What a scan hands out: a stream other libraries understand."""

from __future__ import annotations

import sys
from contextlib import suppress

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.query import Rows
from hoodie.testing.lake import Lake

TABLE = pa.table({"id": ["a", "b", "c"], "v": [1, 2, 3]})


def rows() -> Rows:
    return Rows(TABLE.to_reader(max_chunksize=2))


def test_it_is_read_like_a_record_batch_reader() -> None:
    assert rows().schema == TABLE.schema
    assert [batch.num_rows for batch in rows()] == [2, 1]
    assert rows().read_all() == TABLE
    one = rows()
    assert next(one).num_rows == one.read_next_batch().num_rows + 1
    with pytest.raises(StopIteration):
        one.read_next_batch()


def test_other_libraries_take_it_as_a_stream() -> None:
    assert pa.table(rows()) == TABLE
    assert pa.RecordBatchReader.from_stream(rows()).read_all() == TABLE


def test_pandas_and_python_values() -> None:
    pytest.importorskip("pandas")
    assert rows().to_pandas()["v"].tolist() == [1, 2, 3]
    assert rows().to_pylist()[0] == {"id": "a", "v": 1}
    assert [batch.num_rows for batch in rows().to_batches()] == [2, 1]
    assert rows().to_arrow() == TABLE


def test_polars() -> None:
    pytest.importorskip("polars")
    assert rows().to_polars()["v"].sum() == 6


def test_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = rows().to_duckdb()
    assert relation.aggregate("sum(v)").fetchall() == relation.aggregate("sum(v)").fetchall() == [(6,)]
    connection = duckdb.connect()
    assert rows().to_duckdb(connection).filter("v > 1").fetchall() == [("b", 2), ("c", 3)]


READS = {
    "read_all": Rows.read_all,
    "to_arrow": Rows.to_arrow,
    "to_batches": Rows.to_batches,
    "to_pylist": Rows.to_pylist,
    "to_pandas": Rows.to_pandas,
    "to_polars": Rows.to_polars,
    "to_duckdb": Rows.to_duckdb,
    "iteration": list,
    "Arrow stream": pa.table,
    "batch by batch": lambda one: [one.read_next_batch() for _ in range(3)],
}


@pytest.mark.parametrize("first", READS)
@pytest.mark.parametrize("second", [name for name in READS if name != "batch by batch"])
def test_reading_twice_is_an_error_instead_of_no_rows(first: str, second: str) -> None:
    one = rows()
    with suppress(StopIteration):
        READS[first](one)
    with pytest.raises(Invalid, match="have been read.*read_all"):
        READS[second](one)


def test_every_way_to_all_rows_is_among_them() -> None:
    public = {name for name in vars(Rows) if not name.startswith("_")}
    assert public - READS.keys() == {"schema", "reader", "peek", "read_next_batch", "close"}


def test_rows_that_are_left_are_given_after_some_were_taken() -> None:
    one = rows()
    for batch in one:
        assert batch.num_rows == 2
        break
    assert one.read_all() == TABLE.slice(2)


@pytest.mark.parametrize("name", ["polars", "duckdb"])
def test_library_that_is_not_there_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(Invalid, match=f"{name} is not installed"):
        getattr(rows(), f"to_{name}")()


def test_closing_ends_it() -> None:
    with rows() as open_rows:
        assert open_rows.read_next_batch().num_rows == 2
    assert open_rows.read_all() == TABLE.slice(0, 0)


def test_it_shows_its_columns_and_reads_nothing_for_it() -> None:
    assert repr(rows()).splitlines()[1:] == ["  id: string", "  v: int64"]


def test_notebooks_show_the_first_rows_which_are_still_to_come() -> None:
    one = rows()
    shown = one._repr_html_()
    assert "<th>id</th>" in shown
    assert "<td>a</td>" in shown
    assert one.read_all() == TABLE
    assert "No rows left" in one._repr_html_()
    assert "&lt;b&gt;" in Rows(pa.table({"<b>": ["<i>"]}).to_reader())._repr_html_()


def test_scan_reports_progress_and_rows_can_be_written_back() -> None:
    lake = Lake()
    lake.upsert(*({"id": f"{part}-{n}", "part": part, "v": str(n), "ts": 1} for part in ("p0", "p1") for n in range(3)))
    said: list[tuple[int, int]] = []
    found = lake.table.scan(progress=lambda done, total: said.append((done, total)))
    assert said == []
    assert found.read_all().num_rows == 6
    assert said[0][0] == 0
    assert said[-1][0] == said[-1][1] > 0
    lake.table.upsert(lake.table.scan())
    assert len(lake.values()) == 6


def test_notebooks_show_tables_timelines_and_commits() -> None:
    lake = Lake()
    done = lake.upsert({"id": "a", "part": "p0", "v": "1", "ts": 1})
    table = lake.table
    assert "Hudi table lake" in table._repr_html_()
    assert done.instant in table._repr_html_()
    assert done.instant in table.timeline()._repr_html_()
    assert "<td>1</td>" in done._repr_html_()
