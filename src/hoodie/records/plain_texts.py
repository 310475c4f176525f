"""Texts of one length in a page of plain values, compared where they lie: no value is made an object or copied.

Keys mostly have one length (UUIDs, padded numbers). Each then takes its length in four bytes and as many bytes as the
others, so a page is a matrix of bytes. Whether it is one is seen at all lengths; for any other page the answer is None.

https://parquet.apache.org/docs/file-format/data-pages/encodings/ (PLAIN, BYTE_ARRAY)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Positions = npt.NDArray[np.int64]

_LENGTH_BYTES: Final = 4
_WORD_BYTES: Final = 8


class PlainTexts:
    """The texts of a page: so many records of `width` bytes each from byte `start` on."""

    def __init__(self, content: memoryview, start: int, values: int, width: int) -> None:
        self._content = content
        self._start = start
        self._values = values
        self._width = width
        self._length = width - _LENGTH_BYTES
        self._matrix = np.frombuffer(content, np.uint8, offset=start).reshape(values, width)

    def have_one_length(self) -> bool:
        """Whether the records are texts at all: each says that it is as long as the others."""
        return bool((self._column("<u4", 0) == self._length).all())

    def places_of(self, wanted: Iterable[bytes]) -> Positions:
        """Where the texts are one of those wanted, ascending."""
        found = np.zeros(self._values, np.bool_)
        for text in wanted:
            if len(text) == self._length:
                found[self._equal(text)] = True
        return np.flatnonzero(found)

    def take(self, places: Positions) -> pa.Array:
        """The texts at some places, string."""
        raw = pa.py_buffer(np.ascontiguousarray(self._matrix[places, _LENGTH_BYTES:]))
        fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(self._length), len(places), [None, raw])
        return fixed.cast(pa.binary()).cast(pa.string())

    def _equal(self, text: bytes) -> Positions:
        """Where the texts are this one: the last eight bytes, in which keys differ most, decide nearly always."""
        record = len(text).to_bytes(_LENGTH_BYTES, "little") + text
        places = np.arange(self._values)
        if self._width >= _WORD_BYTES:
            word = int.from_bytes(record[-_WORD_BYTES:], "little")
            places = np.flatnonzero(self._column("<u8", self._width - _WORD_BYTES) == word)
        same: Positions = places[(self._matrix[places] == np.frombuffer(record, np.uint8)).all(axis=1)]
        return same

    def _column(self, kind: str, at: int) -> npt.NDArray[np.unsignedinteger]:
        """The number that stands at the same place of each record."""
        return np.ndarray((self._values,), kind, self._content, self._start + at, (self._width,))


def plain_texts(content: memoryview, values: int, *, is_optional: bool) -> PlainTexts | None:
    """The texts of a data page (version 1, encoding PLAIN) with so many values, out of its compression; None when they
    have several lengths, or some are null.
    """
    start = 0
    if is_optional:  # definition levels, with their length before them
        start = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    width, rest = divmod(len(content) - start, values) if values > 0 else (0, 0)
    if rest or width <= _LENGTH_BYTES:
        return None
    texts = PlainTexts(content, start, values, width)
    return texts if texts.have_one_length() else None
