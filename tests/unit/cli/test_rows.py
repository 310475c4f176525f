"""Rows in and out of files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from hoodie.cli.rows import open_rows, store_rows
from hoodie.errors import Invalid

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".arrow", ".feather"])
def test_stored_rows_are_read_back(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"rows{ending}"
    assert store_rows(ROWS.to_reader(), str(file)) == 3
    assert open_rows([str(file)]).read_all().equals(ROWS)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_null_is_told_from_the_empty_text_and_from_nan_in_csv_files(tmp_path: Path) -> None:
    """NULL came back as the empty text, and NaN as NULL."""
    file = tmp_path / "rows.csv"
    rows = pa.table({"n": [1, 2, 3, 4], "text": ["", None, "NULL", "a"], "x": [float("nan"), None, 1.5, float("inf")]})
    store_rows(rows.to_reader(), str(file))
    for types in (None, rows.schema):
        assert str(open_rows([str(file)], types).read_all().to_pylist()) == str(rows.to_pylist())
    file.write_text('n,text,x\n1,"",NaN\nNULL,,NA\n3,NA,1.5\n4,DE,2\n')
    assert str(open_rows([str(file)]).read_all().to_pylist()) == str(
        [
            {"n": 1, "text": "", "x": float("nan")},
            {"n": None, "text": None, "x": None},
            {"n": 3, "text": "NA", "x": 1.5},
            {"n": 4, "text": "DE", "x": 2.0},
        ]
    )


def test_texts_of_several_lines_and_times_before_1678_come_back_from_csv_files(tmp_path: Path) -> None:
    """A line within a text ended its row; zoned times that far back became texts."""
    file = tmp_path / "rows.csv"
    times = pa.array([-(2**53), 2**53 + 1], pa.timestamp("us", "UTC"))
    rows = pa.table({"text": ["a\nb,c", "\r\n"], "time": times})
    store_rows(rows.to_reader(), str(file))
    assert open_rows([str(file)], rows.schema).read_all().equals(rows)


def test_meta_columns_of_csv_files_are_texts(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("_hoodie_record_key,zip\n007,007\n")
    assert open_rows([str(file)]).read_all().to_pylist() == [{"_hoodie_record_key": "007", "zip": 7}]


@pytest.mark.parametrize("values", [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([b"\xff"])])
def test_columns_that_csv_cannot_hold_are_refused_and_no_file_is_made(tmp_path: Path, values: pa.Array) -> None:
    with pytest.raises(Invalid, match="cannot be CSV") as refused:
        store_rows(pa.table({"n": [1], "x": values}).to_reader(), str(tmp_path / "rows.csv"))
    assert "--columns" in str(refused.value.remedy)
    assert list(tmp_path.iterdir()) == []


def test_a_csv_file_with_a_column_twice_is_read_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("a,a\nx,y\n")
    assert open_rows([str(file)]).schema.names == ["a", "a"]


@pytest.mark.parametrize("ending", [".json", ".jsonl"])
def test_json_lines_are_read(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"rows{ending}"
    file.write_text('{"id": 1, "name": "a"}\n{"id": 2, "name": "b"}\n')
    assert open_rows([str(file)]).read_all().equals(ROWS.slice(0, 2))


def test_an_arrow_stream_is_read(tmp_path: Path) -> None:
    file = tmp_path / "rows.arrows"
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    assert open_rows([str(file)]).read_all().equals(ROWS)


def test_a_folder_stands_for_its_data_files(tmp_path: Path) -> None:
    for number in range(2):
        pq.write_table(ROWS, tmp_path / f"part-{number}.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-0.parquet.crc").touch()
    assert open_rows([str(tmp_path)]).read_all().num_rows == 6


def test_files_must_have_the_same_columns(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    pq.write_table(ROWS.select(["id"]), tmp_path / "b.parquet")
    with pytest.raises(Invalid, match=r"b\.parquet has other columns"):
        open_rows([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")])


@pytest.mark.parametrize("name", ["rows.xlsx", "rows"])
def test_an_unknown_ending_names_the_known_ones(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(Invalid, match=r"\.parquet"):
        open_rows([str(tmp_path / name)])
    with pytest.raises(Invalid, match=r"\.parquet"):
        store_rows(ROWS.to_reader(), str(tmp_path / name))


def test_a_missing_or_damaged_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"no file .*none\.parquet"):
        open_rows([str(tmp_path / "none.parquet")])
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(Invalid, match=r"bad\.parquet cannot be read"):
        open_rows([str(tmp_path / "bad.parquet")])
    (tmp_path / "list.json").write_text('[{"id": 1}]')
    with pytest.raises(Invalid, match="one JSON object a line"):
        open_rows([str(tmp_path / "list.json")])


def test_a_query_that_fails_leaves_no_file_and_the_old_one_in_place(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    file.write_bytes(b"old")

    def failing() -> Iterator[pa.RecordBatch]:
        yield ROWS.to_batches()[0]
        raise Invalid("half way")

    with pytest.raises(Invalid, match="half way"):
        store_rows(pa.RecordBatchReader.from_batches(ROWS.schema, failing()), str(file))
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_urls_and_missing_folders_are_refused_with_what_to_do(tmp_path: Path) -> None:
    rows = pa.table({"a": [1]})
    with pytest.raises(Invalid, match="--input is a file of this machine, not a s3:// URL") as refused:
        open_rows(["s3://key:secret@lake/x.csv"])
    assert "secret" not in str(refused.value)
    with pytest.raises(Invalid, match="--out is a file of this machine, not a https:// URL"):
        store_rows(rows.to_reader(), "https://lake/x.csv")
    with pytest.raises(Invalid, match="There is no folder"):
        store_rows(rows.to_reader(), str(tmp_path / "none" / "x.csv"))
