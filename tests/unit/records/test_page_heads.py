"""Pages are found by their heads in files of every writer; what a damaged head claims is not taken from memory."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import Corrupt
from hoodie.records import base_file, iter_batches, read_columns
from hoodie.records.failures import reading
from hoodie.records.page_heads import StoredChunk, pages_fit, stored_chunks
from hoodie.records.page_index import read_file_footer
from hoodie.records.thrift import BINARY, I32, STRUCT, Field, Struct, encode_struct, parse_struct_at
from hoodie.storage import LocalStorage
from hoodie.testing.memory import at_most_held

GOLDEN = Path(__file__).parents[2] / "golden" / "records"
FILES = sorted(GOLDEN.glob("*.parquet"))
MOST = 2**31 - 1
"""The largest size a head can tell."""
DICTIONARY_PAGE = 2
FEW_BYTES = 128 << 20
ROWS = pa.table({"n": pa.array(range(5000), pa.int64()), "s": [f"value {at % 700}" for at in range(5000)]})
LARGE = pa.table({"n": pa.array(np.random.default_rng(5).integers(0, 1 << 62, 2_500_000))})


def file_of(rows: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink, **{"data_page_size": 4000, "write_batch_size": 500, "row_group_size": 1 << 23} | options)
    return sink.getvalue()


def chunks_of(data: bytes, *columns: str) -> list[StoredChunk]:
    footer = read_file_footer(lambda start, length: data[start : start + length], len(data))
    assert footer is not None
    found = [stored_chunks(footer, group, columns or footer.names) for group in range(len(footer.groups))]
    assert None not in found
    return [chunk for chunks in found for chunk in chunks or ()]


def fit(data: bytes, chunk: StoredChunk) -> bool:
    return pages_fit(pa.BufferReader(data), chunk)


def with_first_head(data: bytes, change: Struct) -> bytes:
    """The file with other fields in the head of its first page, and all sizes and places in the footer as they were:
    the bytes a longer head needs are taken from the page's content.
    """
    start = chunks_of(data)[0].start
    head, length = parse_struct_at(data, start)
    changed = encode_struct(head | change)
    return data[:start] + changed + data[start + length + len(changed) - length :]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_pages_of_hudis_files_fill_their_chunks(path: Path) -> None:
    data = path.read_bytes()
    assert chunks_of(data)
    assert all(fit(data, chunk) for chunk in chunks_of(data))


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "gzip"},
        {"compression": "none", "use_dictionary": False},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"compression": "snappy", "write_page_checksum": True, "row_group_size": 1234},
    ],
)
def test_pages_of_arrows_files_fill_their_chunks(options: dict[str, Any]) -> None:
    data = file_of(ROWS, **options)
    assert all(fit(data, chunk) for chunk in chunks_of(data))


def test_heads_may_hold_long_bounds() -> None:
    data = file_of(pa.table({"s": ["x" * 3000, "y" * 3000]}), compression="none", write_statistics=True)
    head, length = parse_struct_at(data, chunks_of(data)[0].start)
    assert fit(data, chunks_of(data)[0])
    padded = encode_struct(head | {5: Field(STRUCT, {9: Field(BINARY, b"z" * 3000)})})
    assert len(padded) > 256
    assert fit(padded + data[4 + length :][: head[3].value], StoredChunk(0, len(padded) + head[3].value))


def test_only_the_chunks_of_the_named_columns_are_told() -> None:
    rows = pa.table({"a": [{"x": 1, "y": [2]}], "ab": [1], "b": [1]})
    data = file_of(rows)
    assert len(chunks_of(data, "a")) == 2
    assert len(chunks_of(data, "ab", "b")) == 2
    assert chunks_of(data, "nobody") == []


@pytest.mark.parametrize("stored", [-1, 0, 1, MOST])
def test_a_page_of_another_size_does_not_fit(stored: int) -> None:
    data = with_first_head(file_of(ROWS, compression="none"), {3: Field(I32, stored)})
    assert not fit(data, chunks_of(data)[0])


def test_a_chunk_outside_of_the_file_is_no_place_to_look_at() -> None:
    data = file_of(ROWS)
    footer = read_file_footer(lambda start, length: data[start : start + length], len(data))
    assert footer is not None
    meta = footer.chunks(0)[0][3].value
    for start in (-1, 1 << 63):
        meta[9] = Field(meta[9].kind, start)
        meta.pop(11, None)
        assert stored_chunks(footer, 0, [ROWS.schema.names[0]]) is None


@pytest.mark.parametrize("head", [b"\x15", b"\xff" * 40, bytes(40)])
def test_bytes_that_are_no_head_do_not_fit(head: bytes) -> None:
    assert not fit(head, StoredChunk(0, len(head)))


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
@pytest.mark.parametrize("rows", [ROWS, LARGE], ids=["small", "large"])
def test_memory_is_not_taken_for_the_bytes_a_head_claims(rows: pa.Table, compression: str, tmp_path: Path) -> None:
    data = file_of(rows, compression=compression, data_page_size=1 << 20, write_batch_size=100_000)
    storage = LocalStorage(str(tmp_path))
    storage.put("whole.parquet", data)
    with at_most_held(FEW_BYTES):
        assert sum(batch.num_rows for batch in iter_batches(storage, "whole.parquet")) == rows.num_rows
    ensure_refused_in_few_bytes(storage, with_first_head(data, {3: Field(I32, MOST)}))


@pytest.mark.parametrize("change", [{2: Field(I32, MOST)}, {7: Field(STRUCT, {1: Field(I32, MOST), 2: Field(I32, 0)})}])
def test_memory_is_not_taken_for_the_content_a_head_claims(change: Struct, tmp_path: Path) -> None:
    """The bytes of a page unpacked, and the values of a dictionary."""
    rows = pa.table({"s": [f"value {at % 700}" for at in range(5000)]})
    data = file_of(rows, compression="gzip")
    assert parse_struct_at(data, chunks_of(data)[0].start)[0][1].value == DICTIONARY_PAGE
    ensure_refused_in_few_bytes(LocalStorage(str(tmp_path)), with_first_head(data, change))


def ensure_refused_in_few_bytes(storage: LocalStorage, data: bytes) -> None:
    storage.put("f.parquet", data)
    with at_most_held(FEW_BYTES):
        with pytest.raises(Corrupt):
            list(iter_batches(storage, "f.parquet"))
        with pytest.raises(Corrupt):
            read_columns(storage, "f.parquet")


def test_only_large_groups_are_buffered_and_only_where_their_pages_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    original = base_file._parquet_file

    def opening(*given: Any, buffer_bytes: int = 0, **named: Any) -> Any:
        opened.append(buffer_bytes)
        return original(*given, buffer_bytes=buffer_bytes, **named)

    monkeypatch.setattr(base_file, "_parquet_file", opening)
    storage = LocalStorage(str(tmp_path))
    for name, rows, buffers in (("small", ROWS, [0]), ("large", LARGE, [0, 256 * 1024])):
        opened.clear()
        storage.put(name, file_of(rows, compression="none"))
        assert sum(batch.num_rows for batch in iter_batches(storage, name)) == rows.num_rows
        assert opened == buffers
    opened.clear()
    storage.put("odd", with_first_head(file_of(LARGE, compression="none"), {3: Field(I32, 1)}))
    with pytest.raises(Corrupt):
        list(iter_batches(storage, "odd"))
    assert opened == [0]


def test_the_footer_of_a_wide_file_is_not_looked_at_to_read_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(str(tmp_path))
    monkeypatch.setattr(base_file, "_SMALL_GROUP_BYTES", 10)
    monkeypatch.setattr(base_file, "read_file_footer", None)
    storage.put("wide", file_of(pa.table({f"c{at}": [at] for at in range(401)})))
    assert sum(batch.num_columns for batch in iter_batches(storage, "wide")) == 401


def test_memory_there_is_not_is_told_with_the_file_and_both_remedies() -> None:
    with pytest.raises(Corrupt, match=r"p/f\.parquet .* more memory") as caught, reading("p/f.parquet"):
        raise pa.ArrowMemoryError("malloc of size 34359738304 failed")
    assert caught.value.facts["path"] == "p/f.parquet"
    assert "damaged" in str(caught.value.remedy)
    assert "give the process more memory" in str(caught.value.remedy)
