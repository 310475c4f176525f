"""Damaged log files, deletes and record positions: a typed error that names file and place, or a right answer.

`HOODIE_FUZZ_SECONDS=n` makes each test run that long.
"""

from __future__ import annotations

import base64
import struct
import tarfile
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import Corrupt, HudiError, Unsupported
from hoodie.logs import (
    BlockKind,
    Deletes,
    HeaderKey,
    LogBlock,
    blocks_to_merge,
    encode_avro_content,
    encode_block,
    encode_deletes,
    encode_hfile_content,
    encode_parquet_content,
    encode_positions,
    parse_deletes,
    parse_positions,
    read_block_rows,
    read_blocks,
    read_deletes,
    read_positions,
)
from hoodie.records import to_avro
from hoodie.testing.fuzzing import damaged_bytes, fuzz_seeds

PATH = "p/.f-0_1.log.1_0-0-0"
TABLES = Path(__file__).parents[1] / "golden" / "tables"
SAMPLE = 150

ROWS = pa.table(
    {
        "key": ["a", "b", "c"],
        "number": pa.array([1, None, 3]),
        "day": pa.array([date(2024, 1, 2), None, date(1969, 12, 31)]),
        "tags": pa.array([["x", None], [], None], pa.list_(pa.field("element", pa.string()))),
    }
)
SCHEMA = to_avro(ROWS.schema, "t")
DELETES = Deletes(
    pa.array(["a", "b", "c"]),
    pa.array(["p", "p", None]),
    (pa.array([1, None, 3]), pa.array(["x", None, None])),
    np.array([False, True, False]),
)
HEADER = {
    HeaderKey.INSTANT_TIME: "20261121052208873",
    HeaderKey.SCHEMA: SCHEMA,
    HeaderKey.RECORD_POSITIONS: encode_positions([0, 1, 70_000]),
    HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: "20261121052208000",
}


class OneFile:
    """A storage with one file in memory, which notes how much is read of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.bytes_read = 0

    def read_range(self, path: str, start: int, length: int) -> bytes:
        assert path == PATH
        assert start >= 0
        assert 0 <= length <= len(self.data)
        self.bytes_read += length
        return self.data[start : start + length]


def made_file() -> bytes:
    """A log file with a block of every kind."""
    rollback = {HeaderKey.TARGET_INSTANT_TIME: "1", HeaderKey.COMMAND_BLOCK_TYPE: "0"}
    contents = {
        BlockKind.AVRO_DATA: encode_avro_content(ROWS, SCHEMA),
        BlockKind.PARQUET_DATA: encode_parquet_content(ROWS, SCHEMA),
        BlockKind.HFILE_DATA: encode_hfile_content(ROWS, SCHEMA),
        BlockKind.DELETE: encode_deletes(DELETES),
    }
    blocks = [encode_block(kind, HEADER, content) for kind, content in contents.items()]
    return b"".join([*blocks, encode_block(BlockKind.COMMAND, HEADER | rollback, b"")])


def real_files() -> list[bytes]:
    """Some log files that Hudi wrote, of data and of metadata tables."""
    found = []
    for name in ("0.15.0/mor_rollback_completed", "1.2.0/mor_torn_log_middle", "1.2.0/mor_all_types"):
        with tarfile.open(TABLES / name / "table.tar.gz") as tar:
            logs = [
                member for member in tar if member.isfile() and ".log." in member.name and ".crc" not in member.name
            ]
            for member in logs[:: max(1, len(logs) // 6)]:
                file = tar.extractfile(member)
                assert file is not None
                found.append(file.read())
    assert len(found) > 10
    return found


def ensure_sound(file: OneFile, block: LogBlock) -> None:
    """Reads all a block has: it works, or ends in an error that names the file."""
    try:
        read_positions(block)
        if block.kind is BlockKind.DELETE:
            read_deletes(file, block)
        elif block.kind not in (BlockKind.COMMAND, BlockKind.CORRUPT):
            read_block_rows(file, block)
    except (Corrupt, Unsupported) as error:
        assert error.facts["path"] == PATH, error
        assert isinstance(error, Unsupported) or isinstance(error.facts["offset"], int), error


def ensure_handled(data: bytes, seed: int) -> None:
    file = OneFile(data)
    try:
        blocks = read_blocks(file, PATH, len(data))
    except (Corrupt, Unsupported) as error:
        assert error.facts["path"] == PATH, f"seed {seed}"
        assert isinstance(error.facts["offset"], int), f"seed {seed}"
        return
    assert file.bytes_read <= 4 * len(data) + (4 << 20), f"seed {seed}"
    ends = [0, *(block.end for block in blocks)]
    assert [block.start for block in blocks] == ends[:-1], f"seed {seed}"
    assert ends[-1] == len(data), f"seed {seed}"
    for block in blocks:
        ensure_sound(file, block)
    try:
        blocks_to_merge(blocks)
    except HudiError as error:
        assert isinstance(error, Corrupt | Unsupported), f"seed {seed}"


def test_damaged_file_with_blocks_of_every_kind() -> None:
    whole = made_file()
    ensure_handled(whole, -1)
    for seed in fuzz_seeds(SAMPLE):
        ensure_handled(damaged_bytes(whole, seed), seed)


def test_damaged_files_of_the_real_hudi() -> None:
    files = real_files()
    for seed in fuzz_seeds(SAMPLE):
        ensure_handled(damaged_bytes(files[seed % len(files)], seed), seed)


def test_damaged_header_is_no_damage_to_the_blocks_around_it() -> None:
    good = encode_block(BlockKind.AVRO_DATA, HEADER, encode_avro_content(ROWS, SCHEMA))
    for seed in fuzz_seeds(SAMPLE):
        data = good + damaged_bytes(good, seed) + good
        try:
            blocks = read_blocks(OneFile(data), PATH, len(data))
        except (Corrupt, Unsupported):
            continue
        rows = [read_block_rows(OneFile(data), block) for block in (blocks[0], blocks[-1]) if block.kind.is_data]
        assert all(found.num_rows == 3 for found in rows), f"seed {seed}"


def java_deletes() -> bytes:
    """Three delete records in Java form, with shared objects."""
    model = b"org.apache.hudi.common.model."
    first = b"\x01\x01" + model + b"DeleteRecor\xe4\x01\x01\x02" + model + b"HoodieKe\xf9\x01\x01p\xb1\x01k\xb1\x02\x04"
    second = b"\x01\x01\x01\x01\x02\x01\x01\x83\xc3\xa9\xe2\x82\xac\x05\x09\x80\xc0\xec\x9c\xef\x8b\x04"
    third = b"\x01\x01\x01\x01\x02\x04\x02\x00"
    body = b"\x01\x00[L" + model + b"DeleteRecord\xbb\x01\x04" + first + second + third
    return struct.pack(">ii", 2, len(body)) + body


def test_damaged_deletes() -> None:
    contents = [encode_deletes(DELETES), java_deletes()]
    assert all(len(parse_deletes(content, PATH, 0)) == 3 for content in contents)
    for seed in fuzz_seeds(2 * SAMPLE):
        content = contents[seed % 2]
        data = bytearray(damaged_bytes(content, seed))
        # Damage to the two numbers at the start is soon found: mostly they are put right.
        if seed % 5:
            data[:8] = content[:4] + struct.pack(">i", max(0, len(data) - 8))
        try:
            found = parse_deletes(bytes(data), PATH, 100)
        except (Corrupt, Unsupported) as error:
            assert error.facts["path"] == PATH, f"seed {seed}"
            continue
        lengths = {len(found), len(found.partitions), len(found.is_default), *map(len, found.ordering)}
        assert lengths == {len(found.keys)}, f"seed {seed}"
        assert found.keys.null_count == 0, f"seed {seed}"


def test_damaged_positions() -> None:
    numbers = [0, 1, 2, 3, 4, 5, 70_000, *range(140_000, 150_000, 2), *range(2**33, 2**33 + 9)]
    plain = base64.b64decode(encode_positions(numbers))
    for seed in fuzz_seeds(SAMPLE):
        text = base64.b64encode(damaged_bytes(plain, seed)).decode()
        try:
            found = parse_positions(text, limit=1 << 20)
        except Corrupt:
            continue
        assert (found[1:] > found[:-1]).all(), f"seed {seed}"
        np.testing.assert_array_equal(parse_positions(encode_positions(found)), found)


@given(
    st.sets(st.integers(0, 2**64 - 1), max_size=50), st.lists(st.tuples(st.integers(0, 2**40), st.integers(1, 9000)))
)
@settings(max_examples=50, deadline=None)
def test_positions_survive_their_text(numbers: set[int], runs: list[tuple[int, int]]) -> None:
    every = numbers.union(*(range(start, start + length, 1 + start % 3) for start, length in runs))
    expected = np.array(sorted(every), dtype=np.uint64)
    np.testing.assert_array_equal(parse_positions(encode_positions(expected)), expected)


@given(st.binary(max_size=200), st.text(max_size=20))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_refused_with_an_error_of_ours(data: bytes, text: str) -> None:
    for parse in (
        lambda: read_blocks(OneFile(data), PATH, len(data)),
        lambda: parse_deletes(data, PATH, 0),
        lambda: parse_positions(text),
    ):
        try:
            parse()
        except HudiError as error:
            assert isinstance(error, Corrupt | Unsupported)


@given(st.lists(st.tuples(st.text(), st.none() | st.integers(-(2**63), 2**63 - 1)), max_size=20))
@settings(max_examples=50, deadline=None)
def test_deletes_survive_their_block(rows: list[tuple[str, int | None]]) -> None:
    ordering = pa.array([value for _, value in rows], pa.int64())
    keys = pa.array([key for key, _ in rows], pa.string())
    default = np.array([value is None for _, value in rows], dtype=np.bool_)
    found = parse_deletes(encode_deletes(Deletes(keys, keys, (ordering,), default)), PATH, 0)
    assert found.keys.equals(keys)
    assert found.is_default.tolist() == default.tolist()
    if not default.all():
        assert found.ordering[0].equals(ordering)


@pytest.mark.parametrize("length", [1, 5, 6, 13, 14, 40])
def test_magic_again_and_again_ends(length: int) -> None:
    ensure_handled((b"#HUDI#" + bytes(length)) * 500, -1)
