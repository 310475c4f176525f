"""Carrying out a plan that is on the timeline: what compactions and log compactions have in common.

1. One executor works on a plan at a time: it holds a lock of the plan's own while it runs. The table's writer exclusion
   is taken only to complete, so writers go on meanwhile.
2. A plan that is inflight while nobody holds its lock was left by an executor that died. Its files go, by their
   markers, then its inflight file: it is a plan again, and is begun anew.
3. The inflight file comes before the first marker, a marker before its file, the completed instant last. Whoever dies
   in between leaves a pending plan, which readers and writers know how to live with.
4. Files of different runs have different names, so that nothing an executor that is only slow still writes can be
   mistaken for what the next one wrote.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Final

from hoodie.engine import Engine, LocalEngine, TaskId
from hoodie.errors import CommitUnknown, Conflict, Fenced, HudiError, Invalid, Missing
from hoodie.handle import TableHandle, load_handle, timeline_of
from hoodie.spec import (
    COMPACTION,
    LOG_COMPACTION,
    CompactionPlan,
    Instant,
    InstantTime,
    State,
    WriteStat,
    marker_dir,
    parse_base_file_name,
    parse_compaction_plan,
    parse_log_file_name,
)
from hoodie.storage import Storage
from hoodie.timeline import Timeline, instant_path, load_commit_metadata, load_markers, load_requested, to_inflight
from hoodie.write.commit import Outcome, finish

log = logging.getLogger(__name__)

_LOCAL: Final = LocalEngine()
_POLL_SECONDS: Final = 0.05
_LONGEST_POLL_SECONDS: Final = 2.0
_ATTEMPTS: Final = 1_000
"""Attempt numbers kept free for the engine's own retries within one run."""


@dataclass(frozen=True, slots=True)
class PendingPlan:
    """A plan that is being carried out, and the timeline it was begun on. `attempt`: see `CompactTarget`."""

    handle: TableHandle
    timeline: Timeline
    instant: Instant
    plan: CompactionPlan
    attempt: int


@dataclass(frozen=True, slots=True)
class Executed:
    """What came of a plan."""

    done: Instant
    stats: tuple[WriteStat, ...]
    milliseconds: int


Work = Callable[[PendingPlan], tuple[Sequence[WriteStat], Mapping[str, str]]]
"""Writes the files of a plan: their stats, and the extra metadata of the commit."""


def execute(  # noqa: PLR0917
    handle: TableHandle, engine: Engine, instant: Instant, operation: str, wait_ms: int, work: Work, *, held: bool
) -> Executed | None:
    """What came of the pending plan `instant`; None when another executor completed it meanwhile.

    `held`: the caller holds the table's writer exclusion. Otherwise it is taken to complete, after waiting for a writer
    up to `wait_ms`.

    Raises:
        Conflict: another executor works on it, or a writer holds the table for too long; the plan stays pending.
        Fenced: somebody took the plan away meanwhile; nothing became visible.
    """
    with executor_lock(handle.storage, instant.requested):
        clock = handle.env.monotonic()
        timeline = timeline_of(handle)
        pending = _pending_again(handle, engine, timeline, instant)
        if pending is None:
            return None
        attempt = int(handle.env.random() * 2**20) * _ATTEMPTS
        known = PendingPlan(handle, timeline, pending, load_plan(handle, pending), attempt)
        inflight = to_inflight(handle.storage, handle.profile, pending)
        stats: Sequence[WriteStat] = ()
        try:
            stats, extra = work(replace(known, instant=inflight))
            outcome = Outcome(operation, tuple(stats), extra, compacted=True)
            partitions = {one.partition for one in known.plan.operations}
            with nullcontext() if held else writer_exclusion(handle, operation.lower(), wait_ms):
                now = load_handle(handle.storage, handle.env)  # writers went on, and may have made a metadata table
                done = finish(now, timeline_of(now), inflight, outcome, partitions, engine)
        except (CommitUnknown, Fenced):
            raise
        except Exception:
            _give_up(handle, engine, inflight, stats)
            raise
        return Executed(done, outcome.stats, int((handle.env.monotonic() - clock) * 1000))


def roll_back_compaction(handle: TableHandle, engine: Engine, instant: Instant) -> bool:
    """Whether a pending compaction or log compaction is a mere plan now: what a dead executor left of it is undone.

    For whoever heals a table. An inflight plan whose executor lives is left alone (False). Otherwise its files are
    deleted, then its inflight file; the requested file stays, and the plan is carried out by the next run. Nothing of
    it was ever visible, so no rollback instant records it. A plan that was only requested needs nothing.
    """
    if instant.state is not State.INFLIGHT:
        return True
    try:
        with executor_lock(handle.storage, instant.requested):
            now = timeline_of(handle).find(instant.requested, instant.action)
            if now is not None and now.state is State.INFLIGHT:
                undo_inflight(handle, engine, now)
            return True
    except Conflict:
        return False


def undo_inflight(handle: TableHandle, engine: Engine, instant: Instant) -> None:
    """Make an inflight plan a requested one. The caller holds its executor lock."""
    log.info("undoing the unfinished %s %s", instant.action, instant.requested)
    doomed = _files_of(handle, instant)
    engine.run(_delete, [_Delete(handle.storage, path) for path in doomed], "undo compaction")
    handle.storage.delete(instant_path(handle.profile, replace(instant, state=State.INFLIGHT, completed=None)))
    handle.storage.delete_dir(marker_dir(instant.requested))


def load_plan(handle: TableHandle, instant: Instant) -> CompactionPlan:
    """The plan of a compaction or log compaction, whatever state it is in.

    Raises:
        Corrupt: it is damaged or gone.
    """
    path = instant_path(handle.profile, replace(instant, state=State.REQUESTED, completed=None))
    return parse_compaction_plan(load_requested(handle.storage, handle.profile, instant), path)


def find_pending(timeline: Timeline, action: str, instant: InstantTime | None) -> Instant | None:
    """The pending instant of an action that was asked for; the oldest one where none was, None where there is none.

    Raises:
        Invalid: there is no such pending instant.
    """
    found = [one for one in timeline.pending() if one.action == action]
    if instant is None:
        return found[0] if found else None
    for one in found:
        if one.requested == instant:
            return one
    raise Invalid(
        f"There is no pending {action} {instant}",
        remedy=f"Pending are: {', '.join(one.requested for one in found) or 'none'}",
        instant=instant,
    )


@contextmanager
def executor_lock(storage: Storage, requested: InstantTime) -> Iterator[None]:
    """Hold what lets one executor at a time work on the plan of an instant.

    Raises:
        Conflict: another holds it.
    """
    with storage.exclusive(f"compaction {requested}", f"compaction_{requested}"):
        yield


@contextmanager
def writer_exclusion(handle: TableHandle, what: str, wait_ms: int) -> Iterator[None]:
    """Hold the table's writer exclusion, after waiting for it up to `wait_ms`.

    Raises:
        Conflict: it is still held.
    """
    env = handle.env
    deadline = env.monotonic() + wait_ms / 1000
    pause = _POLL_SECONDS
    while True:
        lock = handle.storage.exclusive(what)
        try:
            lock.__enter__()
            break
        except Conflict:
            if env.monotonic() >= deadline:
                raise
        env.sleep(pause)
        pause = min(pause * 2, _LONGEST_POLL_SECONDS)
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


def chosen_engine(engine: Engine, size_bytes: int, local_job_bytes: int) -> Engine:
    """Where so many bytes are compacted: small ones in this process, whose threads start at once."""
    return _LOCAL if size_bytes <= local_job_bytes else engine


def _pending_again(handle: TableHandle, engine: Engine, timeline: Timeline, instant: Instant) -> Instant | None:
    """The instant as a plan that nobody has begun; None when it is completed."""
    now = timeline.find(instant.requested, instant.action)
    if now is None:
        raise Fenced(
            f"The {instant.action} {instant.requested} is not planned any more",
            remedy="Somebody unscheduled it; schedule a new one",
            instant=instant.requested,
        )
    if now.is_completed:
        return None
    if now.state is State.INFLIGHT:
        undo_inflight(handle, engine, now)
    return replace(now, state=State.REQUESTED)


def _give_up(handle: TableHandle, engine: Engine, inflight: Instant, stats: Sequence[WriteStat]) -> None:
    """After an error: leave a plan that nobody has begun. When that fails too, the next run does it."""
    try:
        now = timeline_of(handle).find(inflight.requested, inflight.action)
        if now is not None and now.state is State.INFLIGHT:
            undo_inflight(handle, engine, now)
        elif now is not None and now.is_completed:
            kept = {stat.path for _, stat in load_commit_metadata(handle.storage, handle.profile, now).write_stats()}
            for stat in stats:
                if stat.path and stat.path not in kept:
                    handle.storage.delete(stat.path)
    except HudiError as error:
        log.warning("the unfinished %s %s was not undone: %s", inflight.action, inflight.requested, error.cause)


def _files_of(handle: TableHandle, instant: Instant) -> list[str]:
    """The files an executor may have left: by their markers, else by their names in the partitions of the plan."""
    markers = load_markers(handle.storage, instant.requested)
    if markers is not None:
        return [marker.data_path for marker in markers]
    by_base_instant = handle.profile.slicing == "base_instant"
    found = []
    for partition in sorted({one.partition for one in load_plan(handle, instant).operations}):
        with suppress(Missing):
            for file in handle.storage.list_dir(partition).files:
                name = file.path.rpartition("/")[2]
                base, written = parse_base_file_name(name), parse_log_file_name(name)
                if base is not None and base.instant == instant.requested and instant.action == COMPACTION:
                    found.append(file.path)
                # Log files of this name are later delta commits' where names carry the base instant.
                own_log = written is not None and written.instant == instant.requested and not by_base_instant
                if own_log and instant.action == LOG_COMPACTION:
                    found.append(file.path)
    return found


@dataclass(frozen=True, slots=True)
class _Delete:
    storage: Storage
    path: str


def _delete(_: TaskId, task: _Delete) -> None:
    task.storage.delete(task.path)
