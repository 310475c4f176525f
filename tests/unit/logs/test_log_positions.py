"""Record positions as Roaring bitmaps."""

from __future__ import annotations

import base64
import struct

import numpy as np
import pytest

from hoodie.errors import Corrupt, Invalid
from hoodie.logs import BlockKind, HeaderKey, LogBlock, encode_positions, parse_positions, read_positions

# Texts of real blocks.
REAL = {
    "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAIAEAAAAAAAAQACAA==": [0, 1, 2],
    "AQAAAAAAAAAAAAAAOzAAAAEAAAQAAQAAAAQA": [0, 1, 2, 3, 4],
    "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAAAEAAAAAUA": [5],
}


@pytest.mark.parametrize("text", REAL)
def test_real_texts_are_read_and_written_the_same(text: str) -> None:
    found = parse_positions(text)
    assert found.dtype == np.uint64
    assert found.tolist() == REAL[text]
    assert encode_positions(REAL[text]) == text


@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [0],
        [2**64 - 1],
        [7, 2**16, 2**17 + 3, 2**32, 2**40 + 5],
        list(range(0, 8192, 2)),
        list(range(0, 8194, 2)),
        list(range(100_000)),
        list(range(0, 200_000, 3)),
        [*range(10), *range(70_000, 70_100), *range(140_000, 150_000, 2), 300_000, *range(2**33, 2**33 + 9)],
    ],
    ids=lambda numbers: f"{len(numbers)}_from_{numbers[0] if numbers else None}",
)
def test_numbers_survive_the_text(numbers: list[int]) -> None:
    expected = np.array(numbers, dtype=np.uint64)
    np.testing.assert_array_equal(parse_positions(encode_positions(expected)), expected)


def test_runs_are_used_only_where_they_are_smaller() -> None:
    def kinds(numbers: list[int]) -> int:
        return int(struct.unpack_from("<H", base64.b64decode(encode_positions(numbers)), 12)[0])

    assert kinds([0, 1, 2]) == 0x303A
    assert kinds([0, 1, 2, 3]) == 0x303B


@pytest.mark.parametrize("numbers", [[1, 1], [2, 1], [-1, 3], [0.5]])
def test_numbers_that_are_no_ascending_positions_are_not_written(numbers: list[float]) -> None:
    with pytest.raises(Invalid):
        encode_positions(numbers)


def bitmap(*parts: bytes, buckets: int = 1) -> str:
    return base64.b64encode(struct.pack("<QI", buckets, 0) + b"".join(parts)).decode()


def runs(*pairs: tuple[int, int], count: int) -> bytes:
    front = struct.pack("<IBHH", 0x303B, 1, 0, (count - 1) % 65536)
    return front + struct.pack("<H", len(pairs)) + b"".join(struct.pack("<HH", *pair) for pair in pairs)


def plain(*numbers: int, count: int | None = None) -> bytes:
    size = len(numbers) if count is None else count
    return struct.pack("<IIHHI", 0x303A, 1, 0, size - 1, 16) + struct.pack(f"<{len(numbers)}H", *numbers)


@pytest.mark.parametrize(
    "text",
    [
        "?",
        "AAA",
        "",
        "é",
        bitmap(buckets=1 << 60),
        bitmap(b"\x3c\x30\x00\x00"),
        bitmap(plain(1, 2) + b"more"),
        bitmap(plain(2, 1)),
        bitmap(plain(1, 1)),
        bitmap(plain(1, count=9)),
        bitmap(struct.pack("<II", 0x303A, 1 << 31)),
        bitmap(struct.pack("<IIHHHH", 0x303A, 2, 5, 0, 5, 0)),
        bitmap(runs((0, 9), count=9)),
        bitmap(runs((0, 9), (5, 9), count=20)),
        bitmap(runs((65530, 9), count=10)),
        bitmap(plain(1), struct.pack("<I", 0), plain(1), buckets=2),
    ],
)
def test_text_that_is_no_bitmap_is_corrupt(text: str) -> None:
    with pytest.raises(Corrupt, match="Not a bitmap"):
        parse_positions(text)


def test_more_numbers_than_allowed_are_refused_before_they_are_made() -> None:
    text = encode_positions(np.arange(100_000))
    assert len(text) < 100
    with pytest.raises(Corrupt, match="too many"):
        parse_positions(text, limit=99_999)


def test_block_without_base_instant_has_no_positions() -> None:
    header = {HeaderKey.RECORD_POSITIONS: next(iter(REAL))}
    assert read_positions(LogBlock("f", 0, 100, BlockKind.AVRO_DATA)) is None
    assert read_positions(LogBlock("f", 0, 100, BlockKind.AVRO_DATA, header)) is None


def test_damaged_positions_name_their_block() -> None:
    header = {HeaderKey.RECORD_POSITIONS: "?", HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: "1"}
    with pytest.raises(Corrupt, match="AVRO_DATA block at byte 70 of f has bad record positions"):
        read_positions(LogBlock("f", 70, 100, BlockKind.AVRO_DATA, header))
