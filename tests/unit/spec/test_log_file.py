"""Log files cut into blocks, and blocks written."""

from __future__ import annotations

import struct

import pytest

from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.spec import BlockKind, HeaderKey, LogBlock, encode_block, parse_log_file
from hoodie.spec.log_block import MAGIC, MAX_HEADER_ENTRIES
from hoodie.spec.log_file import MAX_DAMAGED_SPANS, SCAN_BYTES, WINDOW_BYTES

PATH = "p/.f-0_1.log.1_0-0-0"
HEADER = {HeaderKey.INSTANT_TIME: "20261121052208873", HeaderKey.SCHEMA: '{"type":"record"}'}

# The first block of a metadata table's file group: a delete block without deletes.
SMALLEST = bytes.fromhex(
    "234855444923 0000000000000042 00000001 00000001 00000001 00000000 00000011".replace(" ", "")
    + b"00000000000000000".hex()
    + "0000000000000009 00000003 00000001 00 00000000 0000000000000048".replace(" ", "")
)

# A rollback block of a version 6 table.
ROLLBACK = bytes.fromhex(
    "234855444923000000000000005b00000001000000000000000300000000000000113230323631313231303632363433333439"
    "0000000100000011323032363131323130363236343231383300000003000000013000000000000000000000000000000000"
    "00000061"
)


class Reads:
    """Ranged reads of some bytes, counted."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.ranges: list[tuple[int, int]] = []

    def __call__(self, start: int, length: int) -> bytes:
        self.ranges.append((start, length))
        return self.data[start : start + length]


def blocks_of(data: bytes) -> tuple[LogBlock, ...]:
    return parse_log_file(Reads(data), len(data), PATH)


def block(content: bytes = b"rows", **header: str) -> bytes:
    given = {HeaderKey[key]: value for key, value in header.items()}
    return encode_block(BlockKind.AVRO_DATA, HEADER | given, content)


def with_length(data: bytes, length: int) -> bytes:
    """The block with the same wrong length at both ends."""
    return MAGIC + struct.pack(">q", length) + data[14:-8] + struct.pack(">q", length + 6)


def test_smallest_real_block_is_read_and_written_the_same() -> None:
    (one,) = blocks_of(SMALLEST)
    assert (one.start, one.size_bytes, one.kind, one.instant) == (0, 80, BlockKind.DELETE, "0" * 17)
    content = SMALLEST[one.content_start : one.content_start + one.content_bytes]
    assert content == bytes.fromhex("000000030000000100")
    assert encode_block(one.kind, one.header, content) == SMALLEST


def test_real_rollback_block_is_read_and_written_the_same() -> None:
    (one,) = blocks_of(ROLLBACK)
    assert (one.size_bytes, one.kind, one.content_start, one.content_bytes) == (105, BlockKind.COMMAND, 93, 0)
    assert (one.instant, one.target_instant) == ("20261121062643349", "20261121062642183")
    assert one.header[HeaderKey.COMMAND_BLOCK_TYPE] == "0"
    assert encode_block(one.kind, one.header, b"") == ROLLBACK


def test_header_says_what_the_properties_give() -> None:
    data = block(
        COMPACTED_BLOCK_TIMES="3, 1,2",
        IS_PARTIAL="true",
        BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS="7",
        TARGET_INSTANT_TIME="5",
    )
    (one,) = blocks_of(data)
    assert one.instant == "20261121052208873"
    assert one.schema == '{"type":"record"}'
    assert one.compacted_instants == ("3", "1", "2")
    assert one.is_partial
    assert one.positions_instant == "7"
    assert one.target_instant == "5"


def test_header_without_an_entry_is_corrupt_only_when_somebody_needs_it() -> None:
    (one,) = blocks_of(encode_block(BlockKind.AVRO_DATA, {}, b""))
    assert (one.compacted_instants, one.is_partial, one.positions_instant) == ((), False, None)
    with pytest.raises(Corrupt, match="no INSTANT_TIME") as caught:
        _ = one.instant
    assert caught.value.facts == {"path": PATH, "offset": 0}


def test_empty_file_has_no_blocks() -> None:
    assert blocks_of(b"") == ()


def test_blocks_of_one_file_share_the_text_of_their_schema() -> None:
    first, second = blocks_of(block() + block())
    assert first.schema is second.schema


@pytest.mark.parametrize("cut", [1, 8, 30, 60])
def test_block_that_was_cut_off_at_the_end_is_corrupt(cut: int) -> None:
    good = block()
    first, torn = blocks_of(good + block()[:-cut])
    assert first.kind is BlockKind.AVRO_DATA
    assert (torn.kind, torn.start, torn.end) == (BlockKind.CORRUPT, len(good), 2 * len(good) - cut)
    assert torn.header == {}


@pytest.mark.parametrize("kept", [6, 13, 14, 40])
def test_block_that_was_cut_off_before_a_good_one_is_corrupt_up_to_it(kept: int) -> None:
    good = block()
    torn, second = blocks_of(good[:kept] + good)
    assert (torn.kind, torn.start, torn.end) == (BlockKind.CORRUPT, 0, kept)
    assert (second.kind, second.start, second.end) == (BlockKind.AVRO_DATA, kept, kept + len(good))


@pytest.mark.parametrize("tail", [b"#", b"#HUDI", b"12345"])
def test_a_few_bytes_after_the_last_block_do_it_no_harm(tail: bytes) -> None:
    first, rest = blocks_of(block() + tail)
    assert first.kind is BlockKind.AVRO_DATA
    assert (rest.kind, rest.size_bytes) == (BlockKind.CORRUPT, len(tail))


def test_block_that_is_not_followed_by_the_magic_is_corrupt() -> None:
    good = block()
    damaged, second = blocks_of(good + b"garbage" + good)
    assert (damaged.kind, damaged.end) == (BlockKind.CORRUPT, len(good) + 7)
    assert second.kind is BlockKind.AVRO_DATA


def test_lengths_that_disagree_are_corrupt() -> None:
    good = block()
    damaged, second = blocks_of(good[:-8] + struct.pack(">q", len(good)) + good)
    assert damaged.kind is BlockKind.CORRUPT
    assert second.kind is BlockKind.AVRO_DATA


@pytest.mark.parametrize("edge", [SCAN_BYTES, 2 * SCAN_BYTES, WINDOW_BYTES])
@pytest.mark.parametrize("shift", range(-7, 3))
def test_next_magic_is_found_across_the_edges_of_windows(edge: int, shift: int) -> None:
    good = block()
    torn = good[:40].ljust(edge + shift, b".")
    damaged, second = blocks_of(torn + good)
    assert (damaged.kind, damaged.end) == (BlockKind.CORRUPT, edge + shift)
    assert second.kind is BlockKind.AVRO_DATA


def test_large_contents_are_not_read() -> None:
    data = b"".join(block(bytes(5_000_000)) for _ in range(4))
    reads = Reads(data)
    assert len(parse_log_file(reads, len(data), PATH)) == 4
    assert len(reads.ranges) == 5
    assert sum(length for _, length in reads.ranges) <= 5 * WINDOW_BYTES


def test_small_file_is_read_at_once() -> None:
    reads = Reads(block() * 20)
    assert len(parse_log_file(reads, len(reads.data), PATH)) == 20
    assert len(reads.ranges) == 1


def test_header_larger_than_a_window_is_read() -> None:
    (one,) = blocks_of(block(bytes(200_000), SCHEMA="s" * 300_000))
    assert len(one.schema) == 300_000
    assert one.content_bytes == 200_000


def test_file_that_grew_since_it_was_listed_is_read_up_to_the_size_known() -> None:
    good = block()
    assert len(parse_log_file(Reads(good + good), len(good), PATH)) == 1


def test_file_that_shrank_since_it_was_listed_is_damaged_at_its_end() -> None:
    good = block()
    first, lost = parse_log_file(Reads(good), 2 * len(good), PATH)
    assert first.kind is BlockKind.AVRO_DATA
    assert (lost.kind, lost.end) == (BlockKind.CORRUPT, 2 * len(good))


def test_file_of_something_else_is_refused() -> None:
    with pytest.raises(Corrupt, match="does not start with a log block") as caught:
        blocks_of(b"PAR1" + block())
    assert caught.value.facts == {"path": PATH, "offset": 0}


def test_file_that_is_damaged_everywhere_is_refused() -> None:
    with pytest.raises(Corrupt, match="damaged spans"):
        blocks_of(MAGIC * (MAX_DAMAGED_SPANS + 2))


def test_block_of_version_0_is_named() -> None:
    body = struct.pack(">ii", 0, BlockKind.AVRO_DATA) + b"content without frame"
    with pytest.raises(Unsupported, match="format version 0"):
        blocks_of(MAGIC + struct.pack(">q", len(body)) + body + block())


def patched(at: int, number: int, layout: str = ">i") -> bytes:
    data = bytearray(block())
    struct.pack_into(layout, data, at, number)
    return bytes(data)


AFTER_HEADER = 26 + sum(8 + len(text) for text in HEADER.values())


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (patched(14, 2), Unsupported, "format version 2"),
        (patched(18, 7), Unsupported, "kind 7"),
        (patched(18, 2), Corrupt, "kind 2"),
        (patched(18, -1), Corrupt, "kind -1"),
        (patched(22, MAX_HEADER_ENTRIES + 1), Corrupt, "65 header entries"),
        (patched(22, -1), Corrupt, "-1 header entries"),
        (patched(22, 3), Corrupt, "."),
        (patched(26, 9), Unsupported, "header key 9"),
        (patched(26, -1), Corrupt, "header key -1"),
        (patched(30, 1 << 30), Corrupt, "header text of 1073741824 bytes"),
        (patched(30, -1), Corrupt, "header text of -1 bytes"),
        (patched(34, -1), Corrupt, "not UTF-8"),
        (patched(AFTER_HEADER, 1 << 40, ">q"), Corrupt, "content of 1099511627776 bytes"),
        (patched(AFTER_HEADER, -1, ">q"), Corrupt, "content of -1 bytes"),
        (patched(AFTER_HEADER, 0, ">q"), Corrupt, "header entries"),
        (with_length(block()[:30], 16), Corrupt, "too short"),
    ],
)
def test_nonsense_inside_a_sound_frame_is_an_error(data: bytes, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        blocks_of(data)


def test_corrupt_blocks_are_not_written() -> None:
    with pytest.raises(Invalid, match="never written"):
        encode_block(BlockKind.CORRUPT, {}, b"")


@pytest.mark.parametrize("data", [block(), encode_block(BlockKind.COMMAND, {}, b"")], ids=["data", "command"])
def test_blocks_are_written_so_that_they_are_read(data: bytes) -> None:
    (one,) = blocks_of(data)
    assert one.size_bytes == len(data)
    assert encode_block(one.kind, one.header, data[one.content_start :][: one.content_bytes]) == data
