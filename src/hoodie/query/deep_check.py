"""Every committed file of a table read to its end: what a look at sizes and footers does not see.

1. Of a base file every column of every row is decoded, and where pages have checksums these are compared.
2. Of a log file every block is decoded. Damaged spans are what writers left that died, as long as the other blocks have
   all bytes that were committed.
3. Change-data files are no part of slices, but queries of changes read them: they are looked at, too.

Cost: all bytes of the committed files, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from hoodie.engine import Engine, TaskId
from hoodie.errors import HudiError
from hoodie.hfile import open_hfile
from hoodie.logs import BlockKind, LogBlock, ensure_sound, read_block_rows, read_blocks, read_content, read_deletes
from hoodie.records import verify_base_file
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
        files += [one for one in found.changes if view.timeline.is_committed(one.name.instant)]
    tasks = [_CheckTask(storage, one, committed.get(one.path, 0)) for one in files]
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
    except HudiError as error:
        return file.path, error.cause
    return None


def _decode_log(storage: Storage, file: LogFile, committed_bytes: int) -> None:
    blocks = read_blocks(storage, file.path, file.size_bytes)
    ensure_sound(blocks, committed_bytes)
    for block in blocks:
        _decode_block(storage, block)


def _decode_block(storage: Storage, block: LogBlock) -> None:
    if block.kind.is_data or block.kind is BlockKind.CDC_DATA:
        read_block_rows(storage, block)
    elif block.kind is BlockKind.DELETE:
        read_deletes(storage, block)
    elif block.kind is not BlockKind.CORRUPT:
        read_content(storage, block)


def _decode_hfile(storage: Storage, file: BaseFile) -> None:
    for _ in open_hfile(partial(storage.read_range, file.path), file.size_bytes, file.path).scan():
        pass
