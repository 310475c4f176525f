"""What files are made of, byte by byte where other readers depend on it."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.hfile import BloomMeta, Codec, HFile, HFileOptions, encode_hfile

SUFFIX = bytes.fromhex("00 7fffffffffffffff 04")


def test_a_file_with_one_entry_has_the_bytes_of_the_format_page(opened: Callable[[bytes], HFile]) -> None:
    data = encode_hfile(pa.array(["k1"]), pa.array([b"v"]), options=HFileOptions(codec=Codec.NONE))
    entry = struct.pack(">iih", 14, 1, 2) + b"k1" + SUFFIX + b"v" + b"\0"
    assert data[:33] == struct.pack(">8siiqBii", b"DATABLK*", len(entry) + 4, len(entry), -1, 0, 1 << 30, 33 + 24)
    assert data[33:61] == entry + bytes(4)
    index = struct.pack(">qiB", 0, 61, 14) + struct.pack(">h", 2) + b"k1" + SUFFIX
    assert data[61:69] == b"IDXROOT2"
    assert data[94:121] == index
    assert data[121 + 4 :][:8] == b"IDXROOT2"
    trailer = data[-4096:]
    assert trailer[:8] == b'TRABLK"$'
    assert trailer[-4:] == bytes.fromhex("03000003")
    assert opened(data).trailer.load_on_open_offset == 61


def test_example_of_the_format_page_is_true() -> None:
    page = (Path(__file__).parents[3] / "docs" / "format" / "hfile.md").read_text(encoding="utf-8")
    example = page[page.index("## Example") : page.index("## Differences")]
    data = encode_hfile(pa.array(["k1"]), pa.array([b"v"]), options=HFileOptions(codec=Codec.NONE))
    assert f"{len(data)} bytes" in example
    lines = re.findall(r"^(\d+) +((?:[0-9a-f]{2} {1,2})*[0-9a-f]{2}\b)", example, re.MULTILINE)
    assert len(lines) == 18
    for offset, digits in lines:
        expected = bytes.fromhex(digits)
        assert data[int(offset) : int(offset) + len(expected)] == expected, offset


def test_block_content_is_a_gzip_member(opened: Callable[[bytes], HFile]) -> None:
    data = encode_hfile(pa.array(["k1"]), pa.array([b"v" * 100]))
    size = opened(data)._root.sizes[0]
    assert data[33:36] == b"\x1f\x8b\x08"
    assert len(zlib.decompress(data[33 : size - 4], 31)) == 123


def test_every_block_has_one_checksum_so_that_no_reader_loses_entries() -> None:
    data = encode_hfile(
        pa.array(["a"]), pa.array([bytes(10_000_000)]), options=HFileOptions(codec=Codec.NONE, block_bytes=1024)
    )
    rest, content, _, _, per_checksum, end = struct.unpack_from(">iiqBii", data, 8)
    assert per_checksum >= end
    assert rest + 33 - end == 4
    assert content == end - 33


def test_blocks_are_cut_before_they_exceed_the_size_and_know_the_one_before(opened: Callable[[bytes], HFile]) -> None:
    keys = pa.array([f"{number:04d}" for number in range(100)])
    values = pa.array([bytes(75)] * 100)  # 100 bytes an entry
    data = encode_hfile(keys, values, options=HFileOptions(codec=Codec.NONE, block_bytes=1024))
    index = opened(data)._root
    assert [key.decode() for key in index.keys] == [f"{number:04d}" for number in range(0, 100, 10)]
    before = [struct.unpack_from(">q", data, offset + 16)[0] for offset in index.offsets]
    assert before == [-1, *index.offsets[:-1]]


def test_input_is_sorted_by_unsigned_bytes(opened: Callable[[bytes], HFile], pairs: Any) -> None:
    keys = [b"\xff", b"", b"b", b"\x80", b"a\0", b"a"]
    data = encode_hfile(pa.array(keys, pa.binary()), pa.array(keys, pa.binary()))
    assert pairs(opened(data).scan()) == [(key, key) for key in sorted(keys)]


def test_equal_keys_are_refused_unless_allowed_and_stay_in_one_block(
    opened: Callable[[bytes], HFile], pairs: Any
) -> None:
    keys = pa.array(["b", "a", "b", "b"])
    values = pa.array([bytes([number]) * 600 for number in range(4)])
    with pytest.raises(Invalid, match=r"b'b' occurs more than once"):
        encode_hfile(keys, values)
    options = HFileOptions(block_bytes=1024, allow_duplicates=True)
    file = opened(encode_hfile(keys, values, options=options))
    assert [value[:1] for _, value in pairs(file.scan())] == [b"\1", b"\0", b"\2", b"\3"]
    assert len(file._root) == 2


def test_info_says_what_the_file_holds(opened: Callable[[bytes], HFile]) -> None:
    bloom = BloomMeta("DYNAMIC_V0", "QUJD")
    file = opened(
        encode_hfile(
            pa.array(["k1", "k22"]),
            pa.array([b"abc", b""]),
            schema='"bytes"',
            bloom=bloom,
            info={"extra": b"x"},
            created_ms=5,
        )
    )
    assert file.info == {
        "schema": b'"bytes"',
        "extra": b"x",
        "KEY_VALUE_VERSION": b"\0\0\0\1",
        "MAX_MEMSTORE_TS_KEY": bytes(8),
        "hfile.LASTKEY": b"\0\3k22" + SUFFIX,
        "hfile.AVG_KEY_LEN": (14).to_bytes(4, "big"),
        "hfile.AVG_VALUE_LEN": (1).to_bytes(4, "big"),
        "hfile.CREATE_TIME_TS": (5).to_bytes(8, "big"),
        "minRecordKey": b"k1",
        "maxRecordKey": b"k22",
        "bloomFilterTypeCode": b"DYNAMIC_V0",
    }
    assert file.schema == '"bytes"'
    assert file.meta("bloomFilter") == b"QUJD"
    assert file.meta("other") is None


def test_slices_of_larger_arrays_are_written_as_they_are(opened: Callable[[bytes], HFile], pairs: Any) -> None:
    keys = pa.array([f"{number:03d}" for number in range(100)])[10:20]
    values = pa.array([b"v" * number for number in range(100)])[10:20]
    expected = list(zip([key.encode() for key in keys.to_pylist()], values.to_pylist(), strict=True))
    assert pairs(opened(encode_hfile(keys, values)).scan()) == expected
    assert pairs(opened(encode_hfile(keys[5:], values[5:])).scan()) == expected[5:]


def test_equal_input_gives_equal_bytes() -> None:
    keys, values = pa.array(["a", "b"]), pa.array([b"1", b"2"])
    assert encode_hfile(keys, values) == encode_hfile(keys[::-1], values[::-1])


@pytest.mark.parametrize(
    ("keys", "values", "said"),
    [
        (["a", None], [b"", b""], "key of an HFile cannot be NULL"),
        (["a", "b"], [b"", None], "value of an HFile cannot be NULL"),
        (["a"], [b"", b""], "1 keys for 2 values"),
        (["a" * 32768], [b""], "longer than the 32767 bytes"),
    ],
)
def test_input_that_cannot_be_stored_is_invalid(keys: list[str], values: list[bytes], said: str) -> None:
    with pytest.raises(Invalid, match=said):
        encode_hfile(pa.array(keys), pa.array(values, pa.binary()))


def test_longest_key_is_stored(opened: Callable[[bytes], HFile]) -> None:
    key = b"a" * 32767
    assert opened(encode_hfile(pa.array([key]), pa.array([b""]))).lookup([key]).keys.to_pylist() == [key]


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.ZSTD, Codec.LZO])
def test_codecs_that_hudi_cannot_read_are_not_written(codec: Codec) -> None:
    with pytest.raises(Invalid, match=codec.name):
        encode_hfile(pa.array(["a"]), pa.array([b""]), options=HFileOptions(codec=codec))


@pytest.mark.parametrize("wrong", [{"level": 0}, {"level": 10}, {"block_bytes": 10}])
def test_options_out_of_bounds_are_invalid(wrong: dict[str, int]) -> None:
    with pytest.raises(Invalid, match="cannot be written"):
        HFileOptions(**wrong)
