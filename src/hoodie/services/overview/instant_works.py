"""What each instant of a timeline did: how long it took, and what it wrote or took away.

1. Completed instants do not change, so what is known of one is never read again (`known`).
2. Content that cannot be read is said in words, and is no error: the page about a table is asked for when it is ill.
3. Where completion times come from the files (version 6), a copy of a table has none: durations that cannot be are
   left out.

Storage is read, never written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hoodie.engine import Engine, LocalEngine, TaskId
from hoodie.errors import HudiError, Invalid
from hoodie.spec import (
    CLEAN,
    COMPLETED_WRITE_ACTIONS,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    CommitMetadata,
    FormatProfile,
    Instant,
    InstantTime,
    TimeZone,
    parse_clean_metadata,
    parse_instant_time,
    parse_rollback_metadata,
)
from hoodie.spec.restore_plan import parse_restore_metadata
from hoodie.spec.savepoint_metadata import parse_savepoint_metadata
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage
from hoodie.timeline import instant_path, load_commit_metadata, load_instant
from hoodie.view.listing import LISTING_THREADS

MAX_READ = 500
"""Instants whose content is read, the newest ones."""
LONGEST_S = 7 * 24 * 3600.0
"""Seconds an action may take; more is a file's time that somebody's copy has changed."""

_KINDS = {"COMPACT": "compaction", "LOG_COMPACT": "log compaction", "CLUSTER": "clustering"}

Known = Mapping[Instant, "InstantWork"]


@dataclass(frozen=True, slots=True)
class InstantWork:
    """One instant and what it did. `kind` is its action in words: `compaction` also when it completed as a commit.
    Of a pending one, and where nothing was read, there are no numbers. `log_bytes_merged` are those of log files that
    it compacted; `note`: what else is worth a word.
    """

    instant: Instant
    kind: str
    began: datetime | None
    seconds: float | None
    operation: str | None = None
    partitions: int = 0
    files: int = 0
    base_bytes: int = 0
    log_bytes: int = 0
    log_bytes_merged: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    files_deleted: int = 0
    note: str = ""

    @property
    def requested(self) -> InstantTime:
        return self.instant.requested

    @property
    def bytes_written(self) -> int:
        """Bytes of all files it wrote."""
        return self.base_bytes + self.log_bytes


def load_works(
    handle: TableHandle, instants: Sequence[Instant], known: Known | None = None, engine: Engine | None = None
) -> tuple[InstantWork, ...]:
    """What each instant did, in their order. Reads the file of each completed one among the `MAX_READ` newest that is
    not `known`, several at a time.
    """
    found = dict(known or {})
    newest = instants[-MAX_READ:]
    tasks = [
        _Task(handle.storage, handle.profile, handle.config.timezone, one)
        for one in newest
        if one.is_completed and one not in found
    ]
    found |= {work.instant: work for work in (engine or LocalEngine(LISTING_THREADS)).run(_load, tasks, "read commits")}
    return tuple(found.get(one) or _unread(one, handle.config.timezone) for one in instants)


def log_debt_after(works: Sequence[InstantWork], bytes_now: int) -> tuple[int | None, ...]:
    """Bytes of log files that no compaction had merged, after each instant: counted back from those of now. None
    before the first instant whose content is not known.
    """
    debt: int | None = bytes_now
    found: list[int | None] = []
    for work in reversed(works):
        found.append(debt)
        if work.instant.action in COMPLETED_WRITE_ACTIONS and work.instant.is_completed and work.operation is None:
            debt = None
        elif debt is not None:
            debt = max(0, debt - work.log_bytes + work.log_bytes_merged)
    return tuple(reversed(found))


def moment_of(time: InstantTime | None, timezone: TimeZone) -> datetime | None:
    """The moment of an instant time; None for one that is no date, such as those of bootstraps."""
    if time is None:
        return None
    try:
        return parse_instant_time(time, timezone).astimezone(UTC)
    except (Invalid, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class _Task:
    storage: Storage
    profile: FormatProfile
    timezone: TimeZone
    instant: Instant


def _load(_: TaskId, task: _Task) -> InstantWork:
    work = _unread(task.instant, task.timezone)
    try:
        return _read(task, work)
    except HudiError as error:
        return replace(work, note=f"cannot be read: {error.cause}")


def _read(task: _Task, work: InstantWork) -> InstantWork:
    instant = task.instant
    if instant.action in COMPLETED_WRITE_ACTIONS:
        return _of_commit(work, load_commit_metadata(task.storage, task.profile, instant))
    if instant.action not in (CLEAN, ROLLBACK, RESTORE, SAVEPOINT):
        return work
    data, path = load_instant(task.storage, task.profile, instant), instant_path(task.profile, instant)
    match instant.action:
        case "clean":
            clean = parse_clean_metadata(data, path)
            kept = f"keeps what is needed since {clean.earliest}" if clean.earliest else ""
            return replace(work, files_deleted=clean.total_files_deleted, partitions=len(clean.partitions), note=kept)
        case "rollback":
            back = parse_rollback_metadata(data, path)
            what = {one.commit_time: f"{one.action} {one.commit_time}" for one in back.instants}
            undone = ", ".join(what.get(one, one) for one in back.commits)
            return replace(work, files_deleted=back.total_files_deleted, note=f"rolled back {undone}")
        case "restore":
            restored = parse_restore_metadata(data, path)
            undone = ", ".join(f"{one.action} {one.commit_time}" for one in restored.instants)
            return replace(work, note=f"took back {undone}" if undone else "")
        case _:
            saved = parse_savepoint_metadata(data, path)
            files = sum(len(names) for names in saved.files.values())
            said = " ".join(filter(None, (saved.saved_by, saved.comments)))
            return replace(work, note=f"keeps {files:,} files" + (f": {said}" if said else ""))


def _of_commit(work: InstantWork, done: CommitMetadata) -> InstantWork:
    stats = [stat for _, stat in done.write_stats()]
    replaced = len(done.replaced_file_groups())
    operation = done.operation_type or ("COMPACT" if done.compacted else "UNKNOWN")
    return replace(
        work,
        kind=_KINDS.get(operation, work.kind),
        operation=operation,
        partitions=len(done.partition_to_write_stats),
        files=len(stats),
        base_bytes=sum(stat.file_size_bytes for stat in stats if not stat.is_log),
        log_bytes=sum(stat.total_write_bytes or stat.file_size_bytes for stat in stats if stat.is_log),
        log_bytes_merged=sum(stat.total_log_size_compacted for stat in stats),
        inserts=sum(stat.num_inserts for stat in stats),
        updates=sum(stat.num_update_writes for stat in stats),
        deletes=sum(stat.num_deletes for stat in stats),
        note=f"replaced {replaced:,} file groups" if replaced else "",
    )


def _unread(instant: Instant, timezone: TimeZone) -> InstantWork:
    began, ended = moment_of(instant.requested, timezone), moment_of(instant.completed, timezone)
    seconds = None if began is None or ended is None else (ended - began).total_seconds()
    is_possible = seconds is not None and 0 <= seconds <= LONGEST_S
    return InstantWork(instant, instant.action, began, seconds if is_possible else None)
