"""How large log files are, and how much of that is committed: a shorter file has lost rows.

1. Log files of version 8 and later are written once, by the delta commit in their name. In version 6 several commits
   may append to one, and a writer that died may have appended behind them: the file has at least the bytes of its
   largest committed write, and may be longer. Reading all of it is right, since blocks say who wrote them.
2. What commits say costs one read for each delta commit that wrote log files of the slices, in version 6 for each since
   the oldest of them. Of archived delta commits nothing is known. Damage inside a file shows when it is read
   (`merged_rows`).
3. A metadata table has the size of the last write that was settled, and in version 6 a placeholder (1 byte) for files
   of failed writes; what such a file has on storage is one call.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from hoodie.engine import Engine, LocalEngine, TaskId
from hoodie.errors import Corrupt, Missing
from hoodie.logs import cut_off
from hoodie.spec import DELTA_COMMIT, FormatProfile, Instant
from hoodie.storage import Storage
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.view import LogFile

THREADS = 16

PLACEHOLDER_BYTES = 1
"""The size that version 6 lists for log files of failed writes."""


def committed_logs(
    storage: Storage, timeline: Timeline, logs: Collection[LogFile], engine: Engine | None = None
) -> dict[str, LogFile]:
    """The listed log files by path, with the bytes that commits of the active timeline say they have at least.

    Raises:
        Corrupt: one is shorter.
    """
    if not logs:
        return {}
    committed = _committed_sizes(storage, timeline, logs, engine or LocalEngine(THREADS))
    for log in logs:
        size = committed.get(log.path, 0)
        if log.size_bytes < size:
            raise cut_off(log.path, log.size_bytes, size)
    return {log.path: replace(log, committed_bytes=committed.get(log.path, 0)) for log in logs}


def with_stored_sizes(storage: Storage, logs: Collection[LogFile], engine: Engine | None = None) -> dict[str, LogFile]:
    """The files with the sizes they have on storage, by path: one call each, several at a time.

    Raises:
        Corrupt: one of them is gone, or shorter than it was.
    """
    tasks = [_SizeTask(storage, log) for log in logs]
    found = (engine or LocalEngine(THREADS)).run(_with_size, tasks, "size log files")
    return {log.path: log for log in found}


def _committed_sizes(storage: Storage, timeline: Timeline, logs: Collection[LogFile], engine: Engine) -> dict[str, int]:
    """Paths of log files and the bytes of the largest committed write to each."""
    named = {log.name.instant for log in logs}
    writes = (one for one in timeline.completed_writes() if one.action == DELTA_COMMIT)
    writers = timeline.profile.log_naming.writers_of(named, writes)
    tasks = [_StatsTask(storage, timeline.profile, one) for one in writers]
    sizes: dict[str, int] = {}
    for written in engine.run(_log_sizes, tasks, "read commits"):
        for path, size in written:
            sizes[path] = max(size, sizes.get(path, 0))
    return sizes


@dataclass(frozen=True, slots=True)
class _StatsTask:
    storage: Storage
    profile: FormatProfile
    instant: Instant


def _log_sizes(_: TaskId, task: _StatsTask) -> list[tuple[str, int]]:
    metadata = load_commit_metadata(task.storage, task.profile, task.instant)
    return [(stat.path, stat.file_size_bytes) for _, stat in metadata.write_stats() if stat.is_log and stat.path]


@dataclass(frozen=True, slots=True)
class _SizeTask:
    storage: Storage
    log: LogFile


def _with_size(_: TaskId, task: _SizeTask) -> LogFile:
    try:
        size = task.storage.head(task.log.path).size_bytes
    except Missing as error:
        raise Corrupt(
            f"{task.log.path} is gone, but the table lists it",
            remedy="It may have been cleaned while the table was read: read again; else restore it from a copy",
            path=task.log.path,
        ) from error
    if size < task.log.size_bytes and task.log.size_bytes != PLACEHOLDER_BYTES:
        raise cut_off(task.log.path, size, task.log.size_bytes)
    return replace(task.log, size_bytes=size)
