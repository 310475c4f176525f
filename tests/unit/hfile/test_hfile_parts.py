"""Codecs, numbers, indexes and trailers by themselves: what they take and what they refuse."""

from __future__ import annotations

import bz2
import struct
import zlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import Corrupt, Unsupported
from hoodie.hfile import Codec, encode_hfile
from hoodie.hfile.block_index import BlockIndex, blocks_with_keys, blocks_with_prefixes, ensure_in_order
from hoodie.hfile.codec import codec_of, decompress
from hoodie.hfile.cursor import Cursor, encode_hadoop_vint, encode_protobuf_varint
from hoodie.hfile.file_info import encode_file_info, ensure_plain_entries, parse_file_info

CONTENT = b"the quick brown fox " * 100


def _framed(*frames: tuple[int, list[bytes]]) -> bytes:
    return b"".join(
        struct.pack(">i", size) + b"".join(struct.pack(">i", len(chunk)) + chunk for chunk in chunks)
        for size, chunks in frames
    )


def _packed(codec: Codec) -> bytes:
    half = len(CONTENT) // 2
    match codec:
        case Codec.GZ:
            return zlib.compress(CONTENT, wbits=31)
        case Codec.NONE:
            return CONTENT
        case Codec.BZIP2:
            return bz2.compress(CONTENT)
        case Codec.ZSTD:
            return bytes(pa.compress(CONTENT, "zstd", asbytes=True))
        case _:
            name = {Codec.SNAPPY: "snappy", Codec.LZ4: "lz4_raw"}[codec]
            chunks = [pa.compress(part, name, asbytes=True) for part in (CONTENT[:half], CONTENT[half:])]
            return _framed((len(CONTENT), chunks), (half, chunks[:1]), (half, chunks[1:]))


READABLE = [Codec.GZ, Codec.NONE, Codec.BZIP2, Codec.ZSTD, Codec.SNAPPY, Codec.LZ4]


def _expected(codec: Codec) -> bytes:
    return CONTENT * 2 if codec in (Codec.SNAPPY, Codec.LZ4) else CONTENT


@pytest.mark.parametrize("codec", READABLE)
def test_codec_gives_exactly_the_bytes_that_were_compressed(codec: Codec) -> None:
    expected = _expected(codec)
    assert decompress(codec, memoryview(_packed(codec)), len(expected)) == expected


@pytest.mark.parametrize("codec", READABLE)
@pytest.mark.parametrize("error", [-1, 1, 1000])
def test_codec_refuses_content_of_another_size(codec: Codec, error: int) -> None:
    with pytest.raises(ValueError):
        decompress(codec, memoryview(_packed(codec)), len(_expected(codec)) + error)


@pytest.mark.parametrize("codec", [codec for codec in READABLE if codec is not Codec.NONE])
def test_codec_refuses_what_is_cut_short(codec: Codec) -> None:
    packed = _packed(codec)
    for length in {0, 1, 3, 4, 5, 9, len(packed) // 2, len(packed) - 1}:
        with pytest.raises(ValueError):
            decompress(codec, memoryview(packed)[:length], len(_expected(codec)))


def test_gzip_bomb_ends_one_byte_after_the_promised_size() -> None:
    bomb = zlib.compress(bytes(100_000_000), wbits=31)
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        decompress(Codec.GZ, memoryview(bomb), 1000)


@pytest.mark.parametrize(("number", "said"), [(0, "LZO"), (7, "codec number 7"), (-1, "codec number -1")])
def test_codec_without_decoder_is_unsupported(number: int, said: str) -> None:
    with pytest.raises(Unsupported, match=said):
        codec_of(number, "a.hfile")


@given(st.integers(0, 2**63 - 1))
def test_numbers_of_variable_length_come_back(number: int) -> None:
    assert Cursor(encode_hadoop_vint(number), "p", 0).hadoop_vint() == number
    assert Cursor(encode_protobuf_varint(number), "p", 0).protobuf_varint() == number


def test_negative_numbers_of_variable_length() -> None:
    assert Cursor(b"\x90", "p", 0).hadoop_vint() == -112
    assert Cursor(b"\x87\x7f", "p", 0).hadoop_vint() == -128
    assert Cursor(encode_protobuf_varint(-1), "p", 0).protobuf_varint() == 2**64 - 1


def test_number_without_end_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="64 bits"):
        Cursor(b"\xff" * 20, "p", 7).protobuf_varint()


def _index(*keys: bytes) -> BlockIndex:
    return BlockIndex(keys, tuple(range(0, 100 * len(keys), 100)), (100,) * len(keys))


@pytest.mark.parametrize(
    ("keys", "blocks"),
    [
        ([b"a"], []),
        ([b"b"], [0]),
        ([b"bb"], [0]),
        ([b"c"], [0, 1]),
        ([b"c", b"ca", b"cb"], [0, 1]),
        ([b"a", b"b", b"z"], [0, 2]),
        ([b"d", b"dd"], [1, 2]),
        ([], []),
    ],
)
def test_blocks_with_keys(keys: list[bytes], blocks: list[int]) -> None:
    assert blocks_with_keys(pa.array(keys, pa.binary()))(_index(b"b", b"c", b"d")) == blocks


def test_equal_index_keys_are_all_asked() -> None:
    assert blocks_with_keys(pa.array([b"c"], pa.binary()))(_index(b"b", b"c", b"c", b"d")) == [0, 1, 2]


@pytest.mark.parametrize(
    ("prefixes", "blocks"),
    [
        ([b""], [0, 1, 2]),
        ([b"a"], []),
        ([b"b"], [0]),
        ([b"c"], [0, 1]),
        ([b"c1"], [1]),
        ([b"\xff"], [2]),
        ([b"b", b"b1", b"d"], [0, 1, 2]),
    ],
)
def test_blocks_with_prefixes(prefixes: list[bytes], blocks: list[int]) -> None:
    assert blocks_with_prefixes(prefixes)(_index(b"b", b"c", b"d")) == blocks


@pytest.mark.parametrize(("offsets", "sizes"), [((0, 50), (60, 60)), ((0, 100), (60, 60)), ((-1, 50), (33, 33))])
def test_index_with_blocks_out_of_place_is_corrupt(offsets: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    with pytest.raises(Corrupt, match="an index names a block"):
        ensure_in_order(BlockIndex((b"a", b"b"), offsets, sizes), 150, "p", 0)


def test_file_info_comes_back_and_later_pairs_win() -> None:
    pairs = {"b": b"1", "a": bytes(300), "": b""}
    assert parse_file_info(encode_file_info(pairs), "p", 0) == pairs


@pytest.mark.parametrize("content", [b"", b"PBUF", b"PBUG\0", b"PBUF\x05ab", b"PBUF\x02\x08\x01", b"PBUF\x01\x0b"])
def test_damaged_file_info_is_corrupt(content: bytes) -> None:
    with pytest.raises(Corrupt):
        parse_file_info(content, "p", 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KEY_VALUE_VERSION", b"\0\0\0\2"),
        ("MAX_MEMSTORE_TS_KEY", b"\0\0\0\0\0\0\0\1"),
        ("DATA_BLOCK_ENCODING", b"PREFIX"),
        ("hfile.MAX_TAGS_LEN", b"\0\0\0\0"),
    ],
)
def test_entries_of_a_form_hudi_does_not_write_are_unsupported(name: str, value: bytes) -> None:
    plain = {"KEY_VALUE_VERSION": b"\0\0\0\1", "MAX_MEMSTORE_TS_KEY": bytes(8)}
    ensure_plain_entries(plain, "p")
    with pytest.raises(Unsupported, match=name):
        ensure_plain_entries({**plain, name: value}, "p")


@pytest.mark.parametrize(
    ("at", "new", "error"),
    [
        (-1, b"\x02", Unsupported),  # major version
        (-4096, b"X", Corrupt),
        (-4088, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", Corrupt),  # length of the message
        (-4086, b"\x7f", Corrupt),  # offset of the file info
    ],
)
def test_damaged_trailer_says_so(at: int, new: bytes, error: type[Exception], opened: Any) -> None:
    data = bytearray(encode_hfile(pa.array(["a"]), pa.array([b"b"])))
    data[len(data) + at : len(data) + at + len(new)] = new
    with pytest.raises(error):
        opened(bytes(data))
