"""Carrying out a plan that is on the timeline: what all kinds of plans have in common.

1. One executor works on a plan at a time: it holds a lock of the plan's own while it runs. The table lock
   is taken only to complete, so writers go on meanwhile, unless the caller holds it all the time.
2. A plan that is inflight while nobody holds its lock was left by an executor that died. Its files go, by their
   markers, then its inflight file: it is a plan again, and is begun anew.
3. The inflight file comes before the first marker, a marker before its file, the completed instant last. Whoever dies
   in between leaves a pending plan, which readers and writers know how to live with.
4. Files of different runs have different names, so that nothing an executor that is only slow still writes can be
   mistaken for what the next one wrote. It takes away what it has made itself, whoever has the plan meanwhile: files
   that carry the instant of a plan count once that is completed.
5. Rollbacks of a plan hold its lock, too. One that died is finished before the plan is begun: it would fence the
   executor when all the work is done.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.errors import CommitUnknown, Conflict, Corrupt, Fenced, HudiError, Missing, Unavailable
from hoodie.index import rewrite_follower
from hoodie.locks import parse_lock_options
from hoodie.metadata_writer import MetadataOptions, MetadataParticipant, undo_update
from hoodie.services.rewrite.moved_keys import MovedKeys
from hoodie.services.rewrite.options import parse_rewrite_options
from hoodie.services.rewrite.plan_kind import PlanKind, PlanRun
from hoodie.services.rollback.checks import ensure_no_restore
from hoodie.services.rollback.rollback import finish_interrupted
from hoodie.spec import (
    ROLLBACK,
    Instant,
    InstantTime,
    State,
    WriteStat,
    marker_dir,
    parse_data_file_name,
)
from hoodie.state.handle import TableHandle, load_handle, load_handle_again, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage.fence import deleting_own
from hoodie.timeline import (
    Markers,
    Timeline,
    create_requested,
    ensure_newest,
    instant_path,
    load_archived_paths,
    load_begun_ms,
    load_commit_metadata,
    markers_of,
    to_inflight,
)
from hoodie.transaction import (
    HeldThroughout,
    Locking,
    Outcome,
    OwnRun,
    TakenAtBothEnds,
    Transaction,
    executor_lock,
    load_own_files,
    markers_for,
    plans_rule,
)
from hoodie.transaction.deletion import delete_files

log = logging.getLogger(__name__)

_ATTEMPTS: Final = 1_000
"""Attempt numbers kept free for the engine's own retries within one run."""


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """A plan that is completed: the attempt that did it, the completed instant, what became of files, and how long that
    took.
    """

    run: PlanRun
    instant: Instant
    outcome: Outcome
    duration_ms: int


def store_plan(handle: TableHandle, kind: PlanKind, requested: InstantTime, plan: bytes, seen: Timeline) -> Instant:
    """Creates the requested instant of a plan, and returns it. The caller holds the table lock; `seen`: the timeline
    that the plan was made on.

    Raises:
        Conflict: there is such an instant already. Fenced: others completed something since the plan was made.
    """
    stored = create_requested(handle.storage, handle.profile, requested, kind.pending_action(handle.profile), plan)
    ensure_newest(handle.storage, handle.profile, stored, seen.instants, handle.config.timezone)
    return stored


def run_plan(
    handle: TableHandle, config: Config, engine: Engine, kind: PlanKind, asked: Instant, *, held: bool
) -> CarriedOut | None:
    """Carries out the pending plan `asked`, and returns what it did; None when another executor completed it meanwhile.

    `held`: the caller holds the table lock. Otherwise it is taken to complete, after waiting for its turn.

    Raises:
        Conflict: another executor works on it, or a writer holds the table for too long; the plan stays pending.
        Fenced: somebody took the plan away meanwhile; nothing became visible. Unavailable: a restore is pending.
        Corrupt: the plan, or a file it is about, is damaged or gone.
    """
    options = parse_rewrite_options(config, handle.config)

    follower = rewrite_follower(config, handle.config)
    with executor_lock(handle, asked.requested) as locked:
        # Files may have moved after the caller loaded the table and before the plan was made. While it is pending,
        # as it was when the caller found it and is when it is looked for below, they do not.
        handle = locked if held else load_handle(locked.storage, locked.env)
        clock = handle.env.monotonic()
        taken = TakenAtBothEnds(handle.storage, handle.env, kind.name, parse_lock_options(config))
        locking = HeldThroughout(handle) if held else taken
        plans = PendingPlans(handle.storage, _without_dead_rollbacks(handle, config, engine, locking))
        markers = markers_for(handle.storage, asked.requested, config)
        pending = _pending_again(handle, engine, plans, asked, markers)
        if pending is None:
            return None
        partitions = {partition for partition, _ in plans.groups(pending)}
        attempts = _new_attempts(handle)
        inflight = to_inflight(handle.storage, handle.profile, pending)
        own = OwnRun(inflight, load_begun_ms(handle.storage, handle.profile, inflight), attempts)
        run = PlanRun(handle, config, options, engine, plans, inflight, attempts.start)
        stats: Sequence[WriteStat] = ()
        try:
            written = kind.rewrite(run)
            stats = written.stats
            is_same = written.replaced is None
            outcome = Outcome(kind.operation, written.stats, written.extra_metadata, written.replaced, is_same)
            transaction = Transaction(handle, inflight.requested, locking, config, own)
            metadata = MetadataParticipant(engine, MetadataOptions.of(config), facts=written.facts)
            moved = () if is_same or follower is None else (MovedKeys(follower, engine, config),)
            rule = plans_rule(kind.rule, config)
            done = transaction.commit(outcome, plans.timeline, partitions, (*moved, metadata), rule)
        except CommitUnknown:
            raise
        except (Exception, KeyboardInterrupt) as cause:
            _give_up(run, own, stats, markers, cause)
            raise
        written.settle()
        return CarriedOut(run, done, outcome, int((handle.env.monotonic() - clock) * 1000))


def clear_plan(
    handle: TableHandle, engine: Engine, plans: PendingPlans, plan: Instant, markers: Markers | None = None
) -> None:
    """Leaves a pending plan as if nobody had begun it. The caller holds its executor lock; `markers` as in
    `roll_back_run`, which this is for a plan that is inflight.

    Of one that is requested there may be files and markers: whoever took it back died before they went, or an executor
    that was only slow came after that. Markers tell, or a later rollback, which may have been aimed at it.

    Raises:
        Conflict: it is completed; nothing was deleted.
    """
    if plan.state is State.INFLIGHT:
        roll_back_run(handle, engine, plans, plan, markers)
        return
    was_undone = any(one.action == ROLLBACK and one.requested > plan.requested for one in plans.timeline.instants)
    if was_undone or next(iter(handle.storage.list(marker_dir(plan.requested))), None) is not None:
        _remove_files(handle, engine, plans, plan, markers)


def roll_back_run(
    handle: TableHandle, engine: Engine, plans: PendingPlans, instant: Instant, markers: Markers | None = None
) -> None:
    """Makes an inflight plan a requested one: what was written of it goes. The caller holds its executor lock.
    `markers`: those of who is to carry it out again, so that a server which knows of earlier ones forgets them.

    The inflight file goes first: an executor that is only slow looks for it when it completes (`hoodie.timeline`), and
    here its completion is looked for. Who dies behind that leaves markers.

    Raises:
        Conflict: it is completed; nothing was deleted.
    """
    log.info("rolling back the unfinished %s %s", instant.action, instant.requested)
    handle.storage.delete(instant_path(handle.profile, replace(instant, state=State.INFLIGHT, completed=None)))
    now = timeline_of(handle).find(instant.requested, instant.comparable_action)
    if now is not None and now.is_completed:
        raise Conflict(
            f"The {instant.action} {instant.requested} was completed at the same moment",
            remedy="Read the table again; if it is planned still, carry it out again",
            instant=instant.requested,
        )
    _remove_files(handle, engine, plans, instant, markers)


def _new_attempts(handle: TableHandle) -> range:
    """Attempt numbers that no other run of a plan has, as good as certainly."""
    first = (1 + int(handle.env.random() * 2**20)) * _ATTEMPTS
    return range(first, first + _ATTEMPTS)


def _without_dead_rollbacks(handle: TableHandle, config: Config, engine: Engine, locking: Locking) -> Timeline:
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
        return finish_interrupted(locked, engine, timeline_of(locked), config)


def _pending_again(
    handle: TableHandle, engine: Engine, plans: PendingPlans, instant: Instant, markers: Markers
) -> Instant | None:
    """The instant as a plan that nobody has begun, and that left nothing; None when it is completed."""
    now = plans.timeline.find(instant.requested, instant.comparable_action)
    if now is None:
        raise Fenced(
            f"The {instant.action} {instant.requested} is not planned any more",
            remedy="Somebody unscheduled it; schedule a new one",
            instant=instant.requested,
        )
    if now.is_completed:
        return None
    clear_plan(handle, engine, plans, now, markers)
    return replace(now, state=State.REQUESTED)


def _give_up(run: PlanRun, own: OwnRun, stats: Sequence[WriteStat], markers: Markers, cause: BaseException) -> None:
    """After an error: the files of this run go, whoever has the plan now, and leave a plan that nobody has begun. When
    that fails too, the next run does it.
    """
    inflight = run.instant
    try:
        partitions = {partition for partition, _ in run.plans.groups(inflight)}
        handle = load_handle_again(run.handle)
        plans = PendingPlans(handle.storage, timeline_of(handle))
        if not plans.timeline.instants:
            raise Unavailable(
                "The timeline is empty", remedy="The table is moving to another version; hoodie orphans finds files"
            )
        now = plans.timeline.find(inflight.requested, inflight.comparable_action)
        kept: set[str | None] = {None}
        archived = load_archived_paths(handle.storage, handle.profile, inflight.requested) if now is None else None
        if archived is not None:
            kept |= archived
        elif now is None:  # the plan was taken off: what the metadata table says would count once it is older than all
            with deleting_own(handle.storage):
                handle = undo_update(handle, inflight, None, run.engine)
        elif now.is_completed:
            kept |= {stat.path for _, stat in load_commit_metadata(handle.storage, handle.profile, now).write_stats()}
        made = {path for path in _files_named(handle, partitions, inflight) if own.has_made(path)}
        with deleting_own(handle.storage):
            for path in sorted(path for path in made.union(stat.path for stat in stats) - kept if path is not None):
                handle.storage.delete(path)
        is_mine = now is not None and now.state is State.INFLIGHT and not isinstance(cause, Fenced)
        if is_mine and load_begun_ms(handle.storage, handle.profile, inflight) == own.begun_ms:
            roll_back_run(handle, run.engine, plans, inflight, markers)
    except HudiError as error:
        log.warning("the unfinished %s %s was not undone: %s", inflight.action, inflight.requested, error.cause)


def _remove_files(
    handle: TableHandle, engine: Engine, plans: PendingPlans, plan: Instant, markers: Markers | None
) -> None:
    """Deletes what executors may have left, by their markers and by their names (the marker of a file may have gone
    before the file came), then the markers.
    """
    partitions = {partition for partition, _ in plans.groups(plan)}
    found = set(_files_named(handle, partitions, plan))
    with suppress(Corrupt):  # a plan must not stay for ever; names tell enough, for its log files hold no new rows
        found.update(load_own_files(handle, plan.requested, markers_of(handle.storage, plan.requested)) or ())
    delete_files(handle.storage, engine, sorted(found), f"undo {plan.action}")
    (markers or markers_of(handle.storage, plan.requested)).drop()


def _files_named(handle: TableHandle, partitions: Collection[str], plan: Instant) -> Iterator[str]:
    """The files in the partitions of a plan whose names say that its executors wrote them."""
    naming = handle.profile.log_naming
    for partition in sorted(partitions):
        with suppress(Missing):
            for file in handle.storage.list_dir(partition).files:
                name = parse_data_file_name(file.path.rpartition("/")[2])
                # A log file named by its slice may be a later delta commit's.
                if name is not None and naming.writer_of(name) == plan.requested:
                    yield file.path
