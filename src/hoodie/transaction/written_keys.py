"""The keys of rows in a file that a write has made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.logs import BlockKind, read_block_rows, read_blocks, read_deletes
from hoodie.records import KEY_FIELD, read_columns
from hoodie.spec import InstantTime, WriteStat
from hoodie.state.handle import TableHandle

_COMMIT_TIME: Final = "_hoodie_commit_time"


def keys_in(handle: TableHandle, stat: WriteStat) -> pa.ChunkedArray:
    """The keys of all rows in a base file, and of all rows and deletes in a log file.

    Raises:
        Missing: it is cleaned by now.
    """
    assert stat.path is not None
    if stat.is_log:
        return pa.chunked_array([*_logged(handle, stat)], pa.string())
    return read_columns(handle.storage, stat.path, [KEY_FIELD]).column(0)


def some_keys(handle: TableHandle, stat: WriteStat, instant: InstantTime, at_most: int) -> list[str]:
    """Some keys that the write of `instant` has changed in one of its files."""
    if stat.path is None or not handle.config.populate_meta_fields:
        return []
    if stat.is_log:
        found: list[str] = []
        for said in _logged(handle, stat):
            found += [str(key) for key in said.slice(0, at_most - len(found)).to_pylist()]
            if len(found) >= at_most:
                break
        return found
    rows = read_columns(handle.storage, stat.path, [KEY_FIELD, _COMMIT_TIME])
    changed = rows.filter(pc.equal(rows.column(1), instant)).column(0)
    return [str(key) for key in changed.slice(0, at_most).to_pylist()]


def _logged(handle: TableHandle, stat: WriteStat) -> Iterator[pa.Array]:
    """The keys of rows and deletes in a log file, block by block."""
    assert stat.path is not None
    for block in read_blocks(handle.storage, stat.path, stat.file_size_bytes):
        if block.kind is BlockKind.DELETE:
            yield read_deletes(handle.storage, block).keys
        elif block.kind.is_data:
            yield from read_block_rows(handle.storage, block, columns=[KEY_FIELD]).column(0).chunks
