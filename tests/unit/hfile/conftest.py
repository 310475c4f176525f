"""HFiles of ours and of others, and a file that remembers which ranges were read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.hfile import HFile, KeyValues, open_hfile

GOLDEN = Path(__file__).parents[2] / "golden" / "hfile"


class RangedBytes:
    """Bytes behind `read(start, length)`; `reads` are the ranges asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[tuple[int, int]] = []

    def __call__(self, start: int, length: int) -> bytes:
        self.reads.append((start, length))
        return self.data[start : start + length]

    def open(self, path: str = "a.hfile", start: int = 0) -> HFile:
        return open_hfile(self, len(self.data), path, start=start)


@pytest.fixture
def opened() -> Callable[[bytes], HFile]:
    """Opens bytes as an HFile."""
    return lambda data: RangedBytes(data).open()


@pytest.fixture
def ranged() -> Callable[[bytes], RangedBytes]:
    """Bytes that remember which ranges were read."""
    return RangedBytes


@pytest.fixture
def pairs() -> Callable[[Iterable[KeyValues]], list[tuple[bytes, bytes]]]:
    """Keys and values of parts, in order."""
    return lambda parts: [
        pair for part in parts for pair in zip(part.keys.to_pylist(), part.values.to_pylist(), strict=True)
    ]


@pytest.fixture
def golden_hfile() -> Callable[[str], bytes]:
    """The bytes of an HFile in tests/golden/hfile."""
    return lambda name: (GOLDEN / f"{name}.hfile").read_bytes()


@pytest.fixture
def golden_pairs() -> Callable[[int], list[tuple[bytes, bytes]]]:
    """The first entries that those files have."""
    return lambda count: [(f"key-{i:05d}".encode(), f"value {i} ".encode() * (i % 50)) for i in range(count)]


@pytest.fixture
def arrays() -> Callable[[list[tuple[bytes, bytes]]], tuple[pa.Array, pa.Array]]:
    """Pairs as two binary arrays."""
    return lambda entries: (
        pa.array([key for key, _ in entries], pa.binary()),
        pa.array([value for _, value in entries], pa.binary()),
    )
