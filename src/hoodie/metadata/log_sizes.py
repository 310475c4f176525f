"""Sizes of log files as they are, for slices that the metadata table listed.

A log file is read up to the size it is listed with. The metadata table has that of the last write that was settled, and
in version 6 a placeholder (1 byte) for files of failed writes. A file that is longer now was appended to by a writer
that died, or holds a command block: reading all of it is right, since blocks say who wrote them. A file that is shorter
has lost rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hoodie.engine import Engine, LocalEngine, TaskId
from hoodie.errors import Corrupt, Missing
from hoodie.logs import cut_off
from hoodie.storage import Storage
from hoodie.view import LogFile

ASKING_THREADS = 16

PLACEHOLDER_BYTES = 1
"""The size that version 6 lists for log files of failed writes."""


def with_log_sizes(storage: Storage, logs: Sequence[LogFile], engine: Engine | None = None) -> dict[str, LogFile]:
    """The files with the sizes they have on storage, by path: one call each, several at a time.

    Raises:
        Corrupt: one of them is gone, or shorter than it was.
    """
    tasks = [_SizeTask(storage, log) for log in logs]
    found = (engine or LocalEngine(ASKING_THREADS)).run(_with_size, tasks, "size log files")
    return {log.path: log for log in found}


@dataclass(frozen=True, slots=True)
class _SizeTask:
    storage: Storage
    log: LogFile


def _with_size(_: TaskId, task: _SizeTask) -> LogFile:
    try:
        size = task.storage.head(task.log.path).size_bytes
    except Missing as error:
        raise Corrupt(
            f"{task.log.path} is gone, but the metadata table lists it",
            remedy="It may have been cleaned while the table was read: read again; else restore it from a copy",
            path=task.log.path,
        ) from error
    if size < task.log.size_bytes and task.log.size_bytes != PLACEHOLDER_BYTES:
        raise cut_off(task.log.path, size, task.log.size_bytes)
    return replace(task.log, size_bytes=size)
