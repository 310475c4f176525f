"""Versions that do not fit in memory, on disk: spread over buckets by a hash of their keys.

1. All versions of a key are in one bucket, in merge order. A bucket is an Arrow IPC stream, compressed.
2. Buckets are merged in groups that fit in memory together; each group meets the base rows whose keys hash into it.
   The hash is ours: it must give the same for base rows and log rows, and lasts only as long as the merge.
3. A bucket cannot be divided: what is kept in memory is at least one `BUCKETS`-th of the log, or all versions of its
   busiest keys.
4. The folder goes when the spill is closed (`spill_folder`).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.merge.spill_folder import SpillFolder

BUCKETS: Final = 64

_HASHED_ROWS: Final = 16 * 1024
_MULTIPLIER: Final = 0x9E37_79B9_7F4A_7C15
_WEIGHTS: Final = np.array([pow(_MULTIPLIER, place, 1 << 64) for place in range(1, 257)], dtype=np.uint64)


class Spill:
    """A folder of buckets, written once and then read."""

    def __init__(self, schema: pa.Schema, key: str, parent: str | None) -> None:
        self._schema = schema
        self._key = key
        self._folder = SpillFolder(parent, "Log rows", "hoodie.memory.merge.max.size")
        self._writers: dict[int, Any] = {}
        self._bytes = np.zeros(BUCKETS, dtype=np.int64)

    def add(self, versions: pa.Table) -> None:
        """Appends versions, which follow those added before."""
        if not versions.num_rows:
            return
        bucket = buckets(versions.column(self._key))
        order = np.argsort(bucket, kind="stable")
        arranged = versions.take(pa.array(order))
        starts = np.searchsorted(bucket[order], np.arange(BUCKETS + 1))
        with self._folder.disk():
            for at in np.flatnonzero(np.diff(starts)).tolist():
                piece = arranged.slice(starts[at], starts[at + 1] - starts[at])
                self._bytes[at] += piece.nbytes
                self._writer(at).write_table(piece)

    def groups(self, limit_bytes: int) -> tuple[tuple[int, ...], ...]:
        """All buckets in groups of at most `limit_bytes` (as rows in memory), or of one bucket."""
        self._finish()
        found: list[tuple[int, ...]] = []
        held = 0
        for at, size in enumerate(self._bytes.tolist()):
            if found and held + size <= limit_bytes:
                found[-1] = (*found[-1], at)
                held += size
            else:
                found.append((at,))
                held = size
        return tuple(found)

    def load(self, group: tuple[int, ...]) -> pa.Table:
        """The versions of a group."""
        with self._folder.disk():
            tables = [self._read(at) for at in group if self._bytes[at]]
        return pa.concat_tables(tables) if tables else self._schema.empty_table()

    def close(self) -> None:
        """Removes the folder. Twice is once."""
        self._finish()
        self._folder.close()

    def _writer(self, bucket: int) -> Any:
        if bucket not in self._writers:
            self._writers[bucket] = self._folder.writer(bucket, self._schema)
        return self._writers[bucket]

    def _finish(self) -> None:
        with self._folder.disk():
            while self._writers:
                self._writers.popitem()[1].close()

    def _read(self, bucket: int) -> pa.Table:
        with pa.ipc.open_stream(self._folder.path(bucket)) as reader:
            return reader.read_all()


def buckets(keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint8]:
    """The bucket of each key (strings, no NULL)."""
    chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
    pieces = [
        _buckets(chunk.slice(start, _HASHED_ROWS)) for chunk in chunks for start in range(0, len(chunk), _HASHED_ROWS)
    ]
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint8)


def _buckets(keys: pa.StringArray) -> npt.NDArray[np.uint8]:
    """A sum over the bytes, each times a weight of its place (repeating after 256), then its upper bits."""
    _, offsets, data = keys.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    sizes = np.diff(bounds)
    hashed = sizes.astype(np.uint64)
    if bounds[-1] > bounds[0]:
        text = np.frombuffer(data, dtype=np.uint8)[bounds[0] : bounds[-1]]
        starts = bounds[:-1] - bounds[0]
        places = np.arange(len(text)) - np.repeat(starts, sizes)
        weighed = (text.astype(np.uint64) + np.uint64(1)) * _WEIGHTS[places & 255]
        some = sizes > 0
        hashed[some] += np.add.reduceat(weighed, starts[some])
    hashed ^= hashed >> np.uint64(31)
    hashed *= np.uint64(_MULTIPLIER)
    return (hashed >> np.uint64(64 - BUCKETS.bit_length() + 1)).astype(np.uint8)
