"""The worked examples of docs/format/metadata-table.md are values Hudi wrote, and are read and written by the code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from format_pages import block, bytes_of, ensure_lines, page, rows

from hoodie.hfile import HFile, open_hfile
from hoodie.logs import open_block_hfile, read_blocks
from hoodie.metadata import group_of_keys
from hoodie.metadata.encode_records import encode_records
from hoodie.metadata.keys import bloom_filter_key, column_stats_key, partition_hash, partition_stats_key, secondary_key
from hoodie.metadata.record_index import locations
from hoodie.metadata.records import KEY
from hoodie.metadata.stat_values import ranges_of
from hoodie.records import BloomFilter, RowBytes, decode_rows
from hoodie.spec import AvroGeneration, BlockKind, metadata_record_schema
from hoodie.storage import FileInfo, Storage, open_storage

PAGE = page("metadata-table")
STATS, LOCATED, EXPRESSIONS = (
    f"1.2.0/cow_{name}" for name in ("colstats_bloom_mdt", "secondary_index", "expression_index")
)
Golden = Callable[[str], Path]


def section(name: str) -> str:
    """The example of one kind of record."""
    return re.split(r"^##", PAGE[PAGE.index(f"### `{name}`") + 3 :], flags=re.MULTILINE)[0]


def key_of(text: str) -> str:
    return text[text.index("Key `") :].split("`")[1]


def hfiles(storage: Storage, file: FileInfo) -> Iterator[HFile]:
    if file.path.endswith(".hfile"):
        yield open_hfile(lambda start, size: storage.read_range(file.path, start, size), file.size_bytes, file.path)
    elif ".log." in file.path and not file.path.endswith(".crc"):
        for one in read_blocks(storage, file.path, file.size_bytes):
            if one.kind is BlockKind.HFILE_DATA:
                yield open_block_hfile(storage, one)


def values(base: Path, partition: str, key: str) -> list[bytes]:
    """What a golden table has under a key, in all files of a partition of its metadata table."""
    storage = open_storage(str(base))
    files = [one for file in storage.list(f".hoodie/metadata/{partition}") for one in hfiles(storage, file)]
    entries = [one.lookup([key.encode()]) for one in files]
    return [bytes(one.data[one.starts[0] : one.ends[0]]) for one in entries if len(one)]


def decoded(value: bytes, generation: AvroGeneration = "1.x") -> pa.Table:
    laid_out = RowBytes(np.frombuffer(value, np.uint8), np.array([0]), np.array([len(value)]))
    return decode_rows(laid_out, metadata_record_schema(generation))


def real_value(text: str, base: Path, partition: str) -> pa.Table:
    """The record that the table of a section has the bytes of. We write the same bytes."""
    table = rows(text, "Key `")
    length = int(table[-1][0]) + len(bytes_of(table[-1][1]))
    (value,) = [one for one in values(base, partition, key_of(text)) if len(one) == length and has_lines(one, table)]
    record = decoded(value)
    keys, (again,) = encode_records(record.select(record.column_names[5:]))
    assert keys.to_pylist() == [""]
    assert again.as_py() == value
    return record


def has_lines(value: bytes, table: list[list[str]]) -> bool:
    try:
        return ensure_lines(value, table) == (0, len(value))
    except AssertionError:
        return False


def bounds(record: pa.Table, wanted: pa.DataType) -> tuple[Any, Any]:
    found = ranges_of(record.column("ColumnStatsMetadata").combine_chunks(), wanted)
    return found.low[0].as_py(), found.high[0].as_py()


def test_list_of_files_of_a_partition() -> None:
    shown = block(PAGE, "The value of the key `p0` in `files`")
    name = re.findall(r"characters: (\S+)", shown)[0]
    lines = [re.split(r" {4,}", line)[0] for line in shown.splitlines()]
    value = b"".join(
        bytes.fromhex(line.partition("  ")[0]) + (name.encode() if "..." in line else b"") for line in lines
    )
    assert f"with one file, {len(value)} bytes" in PAGE
    (row,) = decoded(value).to_pylist()
    assert (row[KEY], row["type"]) == ("", 2)
    assert row["filesystemMetadata"] == [(name, {"size": 1_000_000, "isDeleted": False})]


def test_keys() -> None:
    name = re.findall(r"characters: (\S+)", PAGE)[0]
    shown = block(PAGE, "The key of the statistics of column `part`")
    assert "".join(line.split()[0] for line in shown.splitlines()) == column_stats_key("part", "p0", name)
    told = re.findall(r"The secondary key of value `(.*?)` in row `(.*?)` is `(.*?)`", PAGE)[0]
    assert secondary_key(told[0], told[1]) == told[2]
    assert secondary_key(None, "d") == "\0$d"
    assert group_of_keys(pa.array([secondary_key("n2", "")]), 10).tolist() == [6]


def test_statistics_of_a_file(golden: Golden) -> None:
    text = section("column_stats")
    record = real_value(text, golden(STATS), "column_stats")
    stats = record.column("ColumnStatsMetadata")[0].as_py()
    assert key_of(text) == column_stats_key(stats["columnName"], "p2", stats["fileName"])
    low, high = bounds(record, pa.decimal128(10, 2))
    assert (low, high) == (Decimal("-48274551.67"), Decimal("82819697.18"))
    assert {f"{low}", f"{high}"} <= set(re.findall(r"-?\d+\.\d+", text))
    assert (stats["valueCount"], stats["totalSize"], stats["totalUncompressedSize"]) == (8, 93, 70)
    assert stats["valueType"] == {"typeOrdinal": 10, "additionalInfo": "10,2"}


def test_statistics_of_version_v1(golden: Golden) -> None:
    shown = bytes.fromhex("".join(re.findall(r"Hudi 0.15 \(V1\) has such a minimum as `(.*?)` `(.*?)`", PAGE)[0]))
    low = Decimal(re.findall(r"of 10 bytes, (\S+)\. Its", PAGE)[0])
    base = golden("0.15.0/cow_colstats_bloom_mdt")
    value = values(base, "column_stats", "5rq9xHW5YYI=Z+KNMU8CLlo=qEVNM9te7YYUiTnHVLwcmg==")[0]
    assert shown in value
    assert value.endswith(b"\0\0")
    assert bounds(decoded(value, "0.15"), pa.decimal128(10, 2))[0] == low


def test_statistics_of_a_partition(golden: Golden) -> None:
    text = section("partition_stats")
    record = real_value(text, golden(STATS), "partition_stats")
    assert key_of(text) == partition_stats_key("part", "p0")
    assert bounds(record, pa.string()) == ("p0", "p0")
    assert record.column("ColumnStatsMetadata")[0]["isTightBound"].as_py()


def test_bloom_filter_of_a_file(golden: Golden) -> None:
    text = section("bloom_filters")
    found = real_value(text, golden(STATS), "bloom_filters").column("BloomFilterMetadata")[0].as_py()
    name = re.findall(r"`(\S+\.parquet)`", section("column_stats"))[0]
    assert key_of(text) == bloom_filter_key("p2", name)
    assert len(found["bloomFilter"]) == int(re.findall(r"(\d+) characters", text)[0])
    bloom = BloomFilter.from_text(found["bloomFilter"].decode(), found["type"])
    assert bloom.contains(pa.array(["k0002"])).all()


def test_place_of_a_row(golden: Golden) -> None:
    text = section("record_index")
    record = real_value(text, golden(LOCATED), "record_index")
    renamed = record.set_column(record.column_names.index(KEY), KEY, pa.array([key_of(text)]))
    (row,) = locations(renamed, "UTC").to_pylist()
    group, partition = re.findall(r"a row in the file group `(.*?)` of partition `(.*?)`", text)[0]
    instant = re.findall(r"that is (\d+)", text)[0]
    assert row == {"record_key": "k0001", "partition": partition, "file_id": group, "instant": instant}


def test_entry_of_a_secondary_index(golden: Golden) -> None:
    text = section("secondary_index_<name>")
    (value,) = values(golden(LOCATED), "secondary_index_idx_name", key_of(text))[-1:]
    assert bytes_of(re.findall(r"told: `(.*?)`", text)[0]) == value
    assert key_of(text) == secondary_key("ash12", "k0003")
    (row,) = decoded(value).to_pylist()
    assert (row["type"], row["SecondaryIndexMetadata"]) == (7, {"isDeleted": False})


def test_statistics_of_an_expression(golden: Golden) -> None:
    text = section("expr_index_<name>")
    record = real_value(text, golden(EXPRESSIONS), "expr_index_idx_dt")
    assert key_of(text) == partition_stats_key("ts", "__partition_stat__") + partition_hash("p2")
    assert bounds(record, pa.string()) == ("1970-01-12 14", "1970-01-12 14")


def test_every_partition_has_an_example() -> None:
    assert [name for name, *_ in rows(PAGE, "## Partitions") if f"### {name}" not in PAGE] == []
