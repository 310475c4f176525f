"""Every committed file of a table read to its end: what a look at sizes and footers does not see.

1. Of a base file every column of every row is decoded, and where pages have checksums these are compared. Its bloom
   filter and key range know all its keys: a write that believed a damaged one would add rows that are there.
2. Of a log file every block is decoded, Parquet blocks as base files. Damaged spans are what writers left that died, as
   long as the other blocks have all bytes that were committed.
3. Change-data files are no part of slices, but queries of changes read them: they are looked at, too.

Cost: all bytes of the committed files, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow.compute as pc

from hoodie.engine import Engine, TaskId
from hoodie.errors import Corrupt, HudiError
from hoodie.hfile import open_hfile
from hoodie.logs import (
    BlockKind,
    LogBlock,
    ensure_sound,
    read_block_rows,
    read_blocks,
    read_content,
    read_deletes,
    verify_parquet_block,
)
from hoodie.records import KEY_FIELD, KeyRange, read_columns, read_footer, verify_base_file
from hoodie.storage import Storage
from hoodie.view import BaseFile, LogFile, View

Damage = tuple[str, str]
"""Path, and what is wrong with it."""


def check_files(storage: Storage, view: View, committed: Mapping[str, int], engine: Engine) -> list[Damage]:
    """What is wrong with the files of all committed slices of `view`, and with their change-data files. `committed` has
    the bytes that commits say log files have.
    """
    slices = view.all_slices()
    files: list[BaseFile | LogFile] = [part.base for part in slices if part.base is not None]
    files += [log for part in slices for log in part.logs]
    for found in view.files:
        files += [change for change in found.changes if view.timeline.is_committed(change.name.instant)]
    tasks = [_CheckTask(storage, file, committed.get(file.path, 0)) for file in files]
    return [damage for damage in engine.run(_check, tasks, "decode files") if damage is not None]


@dataclass(frozen=True, slots=True)
class _CheckTask:
    storage: Storage
    file: BaseFile | LogFile
    committed_bytes: int


def _check(_: TaskId, task: _CheckTask) -> Damage | None:
    file = task.file
    try:
        if isinstance(file, LogFile):
            _decode_log(task.storage, file, task.committed_bytes)
        elif file.path.endswith(".hfile"):
            _decode_hfile(task.storage, file)
        else:
            verify_base_file(task.storage, file.path)
            _ensure_keys_known(task.storage, file.path)
    except HudiError as error:
        return file.path, error.cause
    return None


def _ensure_keys_known(storage: Storage, path: str) -> None:
    """Checks that bloom filter and key range of a base file, where it has them, know all keys of its rows."""
    footer = read_footer(storage, path)
    bloom = footer.bloom()
    span = None if footer.min_key is None or footer.max_key is None else KeyRange(footer.min_key, footer.max_key)
    if KEY_FIELD not in footer.schema.names or (bloom is None and span is None):
        return
    keys = read_columns(storage, path, [KEY_FIELD], footer=footer).column(KEY_FIELD).drop_null()
    missing = 0 if bloom is None else len(keys) - int(bloom.contains(keys).sum())
    if missing:
        raise Corrupt(f"its bloom filter does not know {missing} of its {len(keys)} keys", path=path)
    if span is not None and any(pc.all(span.mask(part)).as_py() is False for part in keys.chunks):
        raise Corrupt("its key range leaves out keys it has", path=path)


def _decode_log(storage: Storage, file: LogFile, committed_bytes: int) -> None:
    blocks = read_blocks(storage, file.path, file.size_bytes)
    ensure_sound(blocks, committed_bytes)
    for block in blocks:
        _decode_block(storage, block)


def _decode_block(storage: Storage, block: LogBlock) -> None:
    if block.kind is BlockKind.PARQUET_DATA:
        verify_parquet_block(storage, block)
    if block.kind.is_data or block.kind is BlockKind.CDC_DATA:
        read_block_rows(storage, block)
    elif block.kind is BlockKind.DELETE:
        read_deletes(storage, block)
    elif block.kind is not BlockKind.CORRUPT:
        read_content(storage, block)


def _decode_hfile(storage: Storage, file: BaseFile) -> None:
    for _ in open_hfile(partial(storage.read_range, file.path), file.size_bytes, file.path).scan():
        pass
