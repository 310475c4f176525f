"""Carrying out a plan that is on the timeline: what compactions and log compactions have in common.

1. One executor works on a plan at a time: it holds a lock of the plan's own while it runs. The table lock
   is taken only to complete, so writers go on meanwhile.
2. A plan that is inflight while nobody holds its lock was left by an executor that died. Its files go, by their
   markers, then its inflight file: it is a plan again, and is begun anew.
3. The inflight file comes before the first marker, a marker before its file, the completed instant last. Whoever dies
   in between leaves a pending plan, which readers and writers know how to live with.
4. Files of different runs have different names, so that nothing an executor that is only slow still writes can be
   mistaken for what the next one wrote.
5. Rollbacks of a plan hold its lock, too. One that died is finished before the plan is begun: it would fence the
   executor when all the work is done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import CommitUnknown, Fenced, HudiError, Missing
from hoodie.metadata_writer import MetadataOptions, MetadataParticipant
from hoodie.services.compaction.options import CompactOptions, parse_compact_options
from hoodie.services.compaction.result import CompactionResult, result_of
from hoodie.services.rollback.checks import ensure_no_restore
from hoodie.services.rollback.rollback import finish_interrupted
from hoodie.spec import (
    ROLLBACK,
    CompactionPlan,
    Instant,
    InstantTime,
    State,
    WriteStat,
    parse_data_file_name,
)
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline, instant_path, load_commit_metadata, markers_of, to_inflight
from hoodie.transaction import (
    HeldThroughout,
    Locking,
    Outcome,
    PlanSetAside,
    TakenAtBothEnds,
    Transaction,
    executor_lock,
)
from hoodie.transaction.deletion import delete_files

log = logging.getLogger(__name__)

_LOCAL: Final = LocalEngine()
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


Work = Callable[[CompactOptions, Engine, PendingPlan], tuple[Sequence[WriteStat], Mapping[str, str]]]
"""Writes the files of a plan: their stats, and the extra metadata of the commit."""


@dataclass(frozen=True, slots=True)
class PlanKind:
    """A kind of plans: the action of their instants while they are pending, the operation their commits name, and who
    does the work.
    """

    action: str
    operation: str
    work: Work


def run_pending(
    handle: TableHandle, config: Config, engine: Engine, kind: PlanKind, instant: InstantTime | None, *, held: bool
) -> CompactionResult | None:
    """What carrying out the pending plan `instant` (None: the oldest one) has done; None when none is pending, or when
    another executor completed it meanwhile.

    `held`: the caller holds the table lock. Otherwise it is taken to complete, after waiting for a writer
    up to `hoodie.write.lock.wait_time_ms`.

    Raises:
        Conflict: another executor works on it, or a writer holds the table for too long; the plan stays pending.
        Fenced: somebody took the plan away meanwhile; nothing became visible. Unavailable: a restore is pending.
    """
    options = parse_compact_options(config, handle.config)
    asked = PendingPlans(handle.storage, timeline_of(handle)).find(kind.action, instant)
    if asked is None:
        return None
    what = kind.operation.lower()
    with executor_lock(handle, asked.requested) as handle:  # noqa: PLR1704 -- nothing below works without the lock
        clock = handle.env.monotonic()
        taken = TakenAtBothEnds(handle.storage, handle.env, what, options.wait_ms)
        locking = HeldThroughout(handle) if held else taken
        timeline = _without_dead_rollbacks(handle, engine, locking)
        plans = PendingPlans(handle.storage, timeline)
        pending = _pending_again(handle, engine, plans, asked)
        if pending is None:
            return None
        plan = plans.compaction(pending)
        attempt = int(handle.env.random() * 2**20) * _ATTEMPTS
        inflight = to_inflight(handle.storage, handle.profile, pending)
        stats: Sequence[WriteStat] = ()
        try:
            stats, extra = kind.work(options, engine, PendingPlan(handle, timeline, inflight, plan, attempt))
            outcome = Outcome(kind.operation, tuple(stats), extra, compacted=True)
            partitions = {one.partition for one in plan.operations}
            transaction = Transaction(handle, inflight.requested, locking, config, inflight)
            metadata = MetadataParticipant(engine, MetadataOptions.of(config))
            done = transaction.commit(outcome, timeline, partitions, (metadata,), PlanSetAside())
        except (CommitUnknown, Fenced):
            raise
        except (Exception, KeyboardInterrupt):
            _give_up(handle, engine, inflight, stats)
            raise
        return result_of(done, outcome, int((handle.env.monotonic() - clock) * 1000))


def undo_inflight(handle: TableHandle, engine: Engine, plans: PendingPlans, instant: Instant) -> None:
    """Make an inflight plan a requested one. The caller holds its executor lock."""
    log.info("rolling back the unfinished %s %s", instant.action, instant.requested)
    doomed = _files_of(handle, plans, instant)
    delete_files(handle.storage, engine, doomed, "undo compaction")
    handle.storage.delete(instant_path(handle.profile, replace(instant, state=State.INFLIGHT, completed=None)))
    markers_of(handle.storage, instant.requested).drop()


def chosen_engine(engine: Engine, size_bytes: int, local_job_bytes: int) -> Engine:
    """Where so many bytes are compacted: small ones in this process, whose threads start at once."""
    return _LOCAL if size_bytes <= local_job_bytes else engine


def _without_dead_rollbacks(handle: TableHandle, engine: Engine, locking: Locking) -> Timeline:
    """The timeline after rollbacks that died were finished. One that is aimed at the plan at hand would fence its
    executor, when all the work is done.

    Raises:
        Unavailable: a restore is pending.
    """
    timeline = timeline_of(handle)
    ensure_no_restore(timeline)
    if all(one.action != ROLLBACK for one in timeline.pending()):
        return timeline
    with locking.to_commit(handle) as (locked, _):
        return finish_interrupted(locked, engine, timeline_of(locked))


def _pending_again(handle: TableHandle, engine: Engine, plans: PendingPlans, instant: Instant) -> Instant | None:
    """The instant as a plan that nobody has begun; None when it is completed."""
    now = plans.timeline.find(instant.requested, instant.action)
    if now is None:
        raise Fenced(
            f"The {instant.action} {instant.requested} is not planned any more",
            remedy="Somebody unscheduled it; schedule a new one",
            instant=instant.requested,
        )
    if now.is_completed:
        return None
    if now.state is State.INFLIGHT:
        undo_inflight(handle, engine, plans, now)
    return replace(now, state=State.REQUESTED)


def _give_up(handle: TableHandle, engine: Engine, inflight: Instant, stats: Sequence[WriteStat]) -> None:
    """After an error: leave a plan that nobody has begun. When that fails too, the next run does it."""
    try:
        plans = PendingPlans(handle.storage, timeline_of(handle))
        now = plans.timeline.find(inflight.requested, inflight.action)
        if now is not None and now.state is State.INFLIGHT:
            undo_inflight(handle, engine, plans, now)
        elif now is not None and now.is_completed:
            kept = {stat.path for _, stat in load_commit_metadata(handle.storage, handle.profile, now).write_stats()}
            for stat in stats:
                if stat.path and stat.path not in kept:
                    for path in (stat.path, *(stat.cdc_stats or ())):
                        handle.storage.delete(path)
    except HudiError as error:
        log.warning("the unfinished %s %s was not undone: %s", inflight.action, inflight.requested, error.cause)


def _files_of(handle: TableHandle, plans: PendingPlans, instant: Instant) -> list[str]:
    """The files an executor may have left: by their markers, else by their names in the partitions of the plan."""
    markers = markers_of(handle.storage, instant.requested).load()
    if markers is not None:
        return [marker.data_path for marker in markers]
    naming, found = handle.profile.log_naming, []
    for partition in sorted({one.partition for one in plans.compaction(instant).operations}):
        with suppress(Missing):
            for file in handle.storage.list_dir(partition).files:
                name = parse_data_file_name(file.path.rpartition("/")[2])
                # A log file named by its slice may be a later delta commit's.
                if name is not None and naming.writer_of(name) == instant.requested:
                    found.append(file.path)
    return found
