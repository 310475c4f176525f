"""The ORC file of docs/format/base-file.md and the base file of docs/format/hfile.md are as Hudi wrote them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from format_pages import GOLDEN, bytes_of, ensure_lines, page, rows

from hoodie.hfile import HFile, open_hfile
from hoodie.records import BloomFilter, RowBytes, decode_rows, read_columns, read_footer
from hoodie.storage import MemoryStorage

HFILES, BASE_FILES = page("hfile"), page("base-file")
INFLATE_RAW, GZIP = -15, 31


def orc_bytes() -> bytes:
    return (GOLDEN / "records" / "orc_0.15.0.orc").read_bytes()


def unpacked_orc(data: bytes) -> bytes:
    """The content of chunks: their length, twice and one more where nothing was packed, in three bytes."""
    content = b""
    while data:
        head = int.from_bytes(data[:3], "little")
        chunk, data = data[3 : 3 + (head >> 1)], data[3 + (head >> 1) :]
        content += chunk if head & 1 else zlib.decompress(chunk, INFLATE_RAW)
    return content


def test_orc_file_ends_as_shown() -> None:
    data = orc_bytes()
    assert f"({len(data)} bytes; `tests/golden/records/orc_0.15.0.orc`)" in BASE_FILES
    (_, magic, _), *parts, postscript, last = rows(BASE_FILES, "### ORC")
    assert data.startswith(bytes_of(magic))
    assert ensure_lines(data, [postscript, last]) == (2837, len(data))
    at = 3
    for offset, size, _ in parts:
        assert int(offset) == at
        at += int(size.removesuffix(" bytes").replace(" ", ""))
    assert at == int(postscript[0])


def test_footer_of_the_orc_file_says_what_is_shown(storage: MemoryStorage) -> None:
    data = orc_bytes()
    footer = unpacked_orc(data[1483:2837])
    assert f"{len(footer):,} bytes of Protobuf".replace(",", " ") in BASE_FILES
    stripe = re.findall(r"The footer says of the stripe `(.*?)`", BASE_FILES)[0]
    assert bytes_of(stripe) in footer
    storage.put("p/a.orc", data)
    found = read_footer(storage, "p/a.orc")
    assert read_columns(storage, "p/a.orc", ["_hoodie_record_key"]).num_rows == 10
    known = {
        "hoodie_bloom_filter_type_code": found.bloom_type,
        "hoodie_max_record_key": found.max_key,
        "hoodie_min_record_key": found.min_key,
        "orc.avro.schema": found.avro_schema,
        "org.apache.hudi.bloomfilter": found.bloom_text,
    }
    told = {key.strip("`"): value for key, value in rows(BASE_FILES, "The footer says of the stripe")}
    assert list(told) == sorted(known, key=lambda key: footer.index(b"\n" + bytes([len(key)]) + key.encode()))
    for key, value in known.items():
        size = re.findall(r"([\d ]+) characters", told[key])
        assert told[key].strip("`") == value if not size else int(size[0].replace(" ", "")) == len(value or "")


def opened(data: bytes) -> HFile:
    return open_hfile(lambda start, size: data[start : start + size], len(data), "page")


def test_base_file_of_the_metadata_table(golden: Callable[[str], Path]) -> None:
    name = re.findall(r"golden table `1\.2\.0/cow_nonpart`, `(\S+?)`", HFILES)[0]
    data = (golden("1.2.0/cow_nonpart") / ".hoodie/metadata/files" / name).read_bytes()
    assert f"`{name}`, {len(data)} bytes" in HFILES
    assert ensure_lines(data, rows(HFILES, "## A base file")) == (0, len(data))
    offsets = {"data": 0, "index": 396, "index of meta blocks": 478}
    for block, cell in rows(HFILES, "| block | content |"):
        spans = re.findall(r"`(.*?)`", cell)
        told = b"".join(bytes_of(one) if re.match("[0-9a-f]{2}( |$)", one) else one.encode() for one in spans)
        assert zlib.decompressobj(GZIP).decompress(data[offsets[block] + 33 :]) == told
    file = opened(data)
    bloom = BloomFilter.from_text((file.meta("bloomFilter") or b"").decode(), "DYNAMIC_V0")
    assert bloom.contains(pa.array(["__all_partitions__"])).all()
    (entries,) = file.scan()
    assert entries.keys.to_pylist() == [b"__all_partitions__"]
    assert file.schema is not None
    (row,) = decode_rows(RowBytes(entries.data, entries.starts, entries.ends), file.schema).to_pylist()
    assert (row["key"], row["type"], row["filesystemMetadata"]) == ("", 1, [])
