"""Footers and page indexes are read once for a local file, and again for one that was written anew."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie.records import iter_batches, page_index
from hoodie.records.condition import Comparison
from hoodie.storage import open_storage

ROWS = 30_000


def write(path: Path, prefix: str) -> None:
    keys = pa.array([f"{prefix}-{number:08d}" for number in range(ROWS)])
    rows = pa.table({"key": keys, "number": pa.array(range(ROWS))})
    options = {"write_page_index": True, "data_page_size": 8192, "max_rows_per_page": 500, "use_dictionary": False}
    pq.write_table(rows, path, compression="gzip", **options)


def look_up(folder: Path, key: str) -> list[int]:
    keys = pa.array([key])
    storage = open_storage(str(folder))
    condition = Comparison("key", "in", keys)
    found = iter_batches(
        storage, "a.parquet", filter=pc.field("key").isin(keys), filter_columns=["key"], condition=condition
    )
    return [number for batch in found for number in batch.column("number").to_pylist()]


def test_a_file_is_parsed_once_and_a_new_one_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    parse = page_index.parse_struct

    def counting(data: bytes, last: int = 0) -> object:
        parsed.append(len(data))
        return parse(data, last)

    monkeypatch.setattr(page_index, "parse_struct", counting)
    write(tmp_path / "a.parquet", "one")
    assert look_up(tmp_path, "one-00012345") == [12345]
    first = len(parsed)
    assert first > 0
    assert look_up(tmp_path, "one-00000007") == [7]
    assert len(parsed) == first
    write(tmp_path / "b.parquet", "two")
    os.replace(tmp_path / "b.parquet", tmp_path / "a.parquet")
    assert look_up(tmp_path, "one-00000007") == []
    assert look_up(tmp_path, "two-00000007") == [7]
    assert len(parsed) > first
