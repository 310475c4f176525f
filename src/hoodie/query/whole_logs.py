"""Whether log files are as long as the commits say that wrote them: a shorter one has lost rows.

1. Log files of version 8 and later are written once, by the delta commit in their name. In version 6 several commits
   may append to one, and a writer that died may have appended behind them: the file has at least the bytes of its
   largest committed write, and may be longer.
2. What a commit says is not asked where a metadata table of version 8 or later listed the files, which knows the sizes
   too; in version 6 it knows those of files of writers that died as well. It costs one read for each delta commit that
   wrote log files of the plan, in version 6 for each since the oldest of their slices.
3. Of archived delta commits nothing is known. Damage inside a file shows when it is read (`merged_rows`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from hoodie.engine import Engine, LocalEngine, TaskId
from hoodie.logs import cut_off
from hoodie.slices.slice_read import FileRead, slices_of, with_log_files
from hoodie.spec import DELTA_COMMIT, FormatProfile, Instant
from hoodie.storage import Storage
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.view import LogFile

READING_THREADS = 16


def logs_of(files: Iterable[FileRead]) -> dict[str, LogFile]:
    """The log files that pieces of a plan read, by path."""
    return {log.path: log for file in files for part in slices_of(file) for log in part.logs}


def whole_logs(
    storage: Storage, timeline: Timeline, logs: Collection[LogFile], engine: Engine | None = None
) -> dict[str, LogFile]:
    """The listed log files by path, with the bytes that commits of the active timeline say they have at least.

    Raises:
        Corrupt: one is shorter.
    """
    if not logs:
        return {}
    committed = _committed_sizes(storage, timeline, logs, engine or LocalEngine(READING_THREADS))
    for log in logs:
        size = committed.get(log.path, 0)
        if log.size_bytes < size:
            raise cut_off(log.path, log.size_bytes, size)
    return {log.path: replace(log, committed_bytes=committed.get(log.path, 0)) for log in logs}


def with_whole_logs(
    storage: Storage, timeline: Timeline, files: Sequence[FileRead], engine: Engine | None = None
) -> tuple[FileRead, ...]:
    """Pieces of a plan with what `whole_logs` says of their log files. Raises as that."""
    known = whole_logs(storage, timeline, logs_of(files).values(), engine)
    return tuple(with_log_files(file, known) for file in files) if known else tuple(files)


def _committed_sizes(storage: Storage, timeline: Timeline, logs: Collection[LogFile], engine: Engine) -> dict[str, int]:
    """Paths of log files and the bytes of the largest committed write to each."""
    named = {log.name.instant for log in logs}
    by_name, first = timeline.profile.slicing == "completion", min(named)
    writers = (
        one
        for one in timeline.completed_writes()
        if (one.requested in named if by_name else one.requested >= first) and one.action == DELTA_COMMIT
    )
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
