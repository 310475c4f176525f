"""Rows in the content of Avro blocks, found by their lengths."""

from __future__ import annotations

import struct

import pytest

from hoodie.errors import Corrupt
from hoodie.spec import encode_records, iter_records, parse_record_marks


@pytest.mark.parametrize("records", [[], [b""], [b"a", b"", b"bcd"], [b"x" * 70_000] * 3])
def test_rows_that_were_written_are_found(records: list[bytes]) -> None:
    content = encode_records(records)
    assert list(iter_records(content, "f", 0)) == records
    assert len(parse_record_marks(content, "f", 0)) == len(records) + 1


def test_version_of_the_content_means_nothing() -> None:
    assert list(iter_records(struct.pack(">iii", 1, 1, 2) + b"ab", "f", 0)) == [b"ab"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        struct.pack(">i", 3),
        struct.pack(">ii", 3, -1),
        struct.pack(">ii", 3, 1),
        struct.pack(">ii", 3, 0) + b"more",
        struct.pack(">ii", 3, 1 << 30) + bytes(100),
        struct.pack(">iii", 3, 1, 3) + b"ab",
        struct.pack(">iii", 3, 1, 1) + b"ab",
        struct.pack(">iii", 3, 1, -1) + b"ab",
        struct.pack(">iiii", 3, 2, -8, 0) + b"ab",
        struct.pack(">iii", 3, 1, -(1 << 31)),
    ],
)
def test_lengths_that_do_not_fill_the_content_are_corrupt(content: bytes) -> None:
    with pytest.raises(Corrupt) as caught:
        parse_record_marks(content, "f", 50)
    assert caught.value.facts["path"] == "f"
    assert caught.value.facts["offset"] >= 50  # type: ignore[operator]
