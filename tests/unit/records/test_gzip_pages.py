"""Pages without their gzip: the same values, and None for whatever is not known or damaged."""

from __future__ import annotations

import io
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.records.gzip_pages import packed_pages
from hoodie.records.thrift import BINARY, I32, LIST, STRUCT, Field, Listed, encode_struct, parse_struct_at
from hoodie.spec.gunzip import gunzip

ROWS = pa.table({"n": pa.array(range(1000), pa.int64())})
TEXT = b"keys that lie together " * 40


def pages_of(**options: object) -> bytes:
    """The pages of the only column of a small file."""
    sink = io.BytesIO()
    pq.write_table(ROWS, sink, **{"compression": "gzip", "data_page_size": 1000, "write_batch_size": 100} | options)
    column = pq.ParquetFile(sink).metadata.row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    return sink.getvalue()[start : start + column.total_compressed_size]


@pytest.mark.parametrize(
    "options", [{"use_dictionary": True}, {"use_dictionary": False}, {"write_page_checksum": True}]
)
def test_headers_tell_the_new_size_and_no_checksum(options: dict[str, object]) -> None:
    packed = packed_pages(memoryview(pages_of(**options)))
    assert packed
    for page in packed:
        made = bytearray(page.size_bytes)
        page.unpack_into(memoryview(made))
        header, end = parse_struct_at(bytes(made), 0)
        assert end == len(page.header)
        assert header[2].value == header[3].value == page.content_bytes == len(made) - end
        assert 4 not in header


@pytest.mark.parametrize("pages", [pages_of(data_page_version="2.0"), b"\x15", b"\xff"])
def test_other_pages_are_left_to_arrow(pages: bytes) -> None:
    assert packed_pages(memoryview(pages)) is None


def test_pages_of_plain_values_say_how_many() -> None:
    plain = packed_pages(memoryview(pages_of(use_dictionary=False)))
    assert plain is not None
    assert sum(page.plain_values for page in plain) == ROWS.num_rows
    coded = packed_pages(memoryview(pages_of(use_dictionary=True)))
    assert coded is not None
    assert {page.plain_values for page in coded} == {0}


@pytest.mark.parametrize(
    "odd",
    [
        Field(BINARY, b"abc"),
        Field(LIST, Listed(I32, [1, 0])),
        Field(STRUCT, {}),
        Field(STRUCT, {1: Field(BINARY, b"abc"), 2: Field(I32, 0)}),
        Field(STRUCT, {1: Field(I32, 1), 2: Field(LIST, Listed(I32, []))}),
    ],
)
def test_odd_headers_have_no_plain_values(odd: Field) -> None:
    stream = zlib.compress(TEXT, wbits=31)
    sizes = {1: Field(I32, 0), 2: Field(I32, len(TEXT)), 3: Field(I32, len(stream))}
    packed = packed_pages(memoryview(encode_struct(sizes | {5: odd}) + stream))
    assert packed is not None
    assert [page.plain_values for page in packed] == [0]


def test_a_cut_is_seen() -> None:
    pages = pages_of(use_dictionary=False)
    whole = packed_pages(memoryview(pages))
    assert whole is not None
    for length in range(1, len(pages)):
        packed = packed_pages(memoryview(pages)[:length])
        assert packed is None or (len(packed) < len(whole) and packed == whole[: len(packed)])


def test_every_damage_of_a_stream_is_seen_or_harmless() -> None:
    stream = zlib.compress(TEXT, wbits=31)
    assert gunzip(stream, len(TEXT)) == TEXT
    refused = 0
    for bit in range(8 * len(stream)):
        damaged = bytearray(stream)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            assert gunzip(bytes(damaged), len(TEXT)) == TEXT
        except ValueError:
            refused += 1
    assert refused > 8 * (len(stream) - 10)


@pytest.mark.parametrize("size", [0, len(TEXT) - 1, len(TEXT) + 1])
def test_another_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError):
        gunzip(zlib.compress(TEXT, wbits=31), size)
