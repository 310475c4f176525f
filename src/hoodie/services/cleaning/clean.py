"""Remove files that no reader needs any more: superseded slices, replaced file groups, emptied partitions.

1. A clean is an action: its plan is stored first, then files are deleted, the metadata table learns of it, and the
   completed clean is written last. Whoever dies in between leaves a pending clean; the next one finishes it.
2. Deleting what is gone already is success, so finishing a clean is doing it again.
3. A pending clean may be finished long after it was planned. What has become the newest slice of its group since (a
   restore took newer ones back), or came under a savepoint, stays.
4. An empty completed clean is what a machine leaves that lost its power: it is taken back to pending, and done again.
5. A plan may only name data files below the partition it names them for. Anything else is refused before any delete.
6. A partition is dropped only if nothing but its metafile is left when it comes to that.
7. A call that finishes pending cleans plans no other, unless `hoodie.clean.multiple.enabled` says so. However many are
   pending, from whomever, all are finished, oldest first.

The caller holds the table lock. What goes is decided in `plan`. Bytes: `docs/format/clean.md`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import Corrupt
from hoodie.metadata_writer import TableUpdate, record_update
from hoodie.notebook import Displayed
from hoodie.services.cleaning.facts import (
    LastClean,
    draft_clean,
    is_due,
    last_clean_of,
    load_last_clean,
    paths_in_use,
)
from hoodie.services.cleaning.options import CleanOptions, parse_clean_options
from hoodie.services.cleaning.plan import DELETE, PlannedClean
from hoodie.services.cleaning.retention import earliest_retained, first_unseen
from hoodie.services.clustering.expiry import drop_expired_plans
from hoodie.services.preview import PreviewStep, ServicePreview
from hoodie.services.rollback.failed_writes import roll_back_expired_writes
from hoodie.services.service import AfterCommit, Service
from hoodie.spec import (
    CLEAN,
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    Instant,
    InstantTime,
    State,
    encode_clean_metadata,
    encode_clean_plan,
    format_instant_time,
    parse_clean_plan,
    parse_data_file_name,
    path_in,
)
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.table_state import TableState
from hoodie.storage import Storage
from hoodie.storage.fence import ensure_held
from hoodie.timeline import (
    Timeline,
    complete,
    create_requested,
    delete_instant_files,
    instant_path,
    load_instant,
    load_requested,
    new_instant_time,
    to_inflight,
)
from hoodie.transaction.concurrency import LAZY, failed_writes_policy
from hoodie.transaction.deletion import DELETING_THREADS, delete_files
from hoodie.view import list_files

log = logging.getLogger(__name__)

LOCAL_FILES = 4_000
"""Up to so many files are deleted by the driver: a Spark job would take longer to start."""


@dataclass(frozen=True, slots=True)
class CleanResult(Displayed):
    """What a finished clean did. `earliest` is the first commit whose state stays readable, None where nothing is
    promised; `finished` are pending cleans of earlier runs that were finished on the way, with their files counted.
    """

    instant: InstantTime
    earliest: InstantTime | None
    files: int
    partitions: tuple[str, ...]
    dropped_partitions: tuple[str, ...]
    duration_ms: int
    finished: tuple[InstantTime, ...] = ()


def clean(
    handle: TableHandle, config: Config, engine: Engine, *, instant: InstantTime | None = None, forced: bool = False
) -> CleanResult | None:
    """What was cleaned; None when there was nothing to clean, or not yet.

    Pending cleans are finished first, and where there were any, another is only planned with
    `hoodie.clean.multiple.enabled`. With failed-writes policy LAZY writes whose heartbeat has stopped are rolled
    back before. `instant` is the time of the new clean where it must not be just now (metadata tables of version 6);
    `forced` looks even if there was no write since the last clean.

    Raises:
        Corrupt: what has to be read to plan is damaged, or a pending plan names files it must not.
        Invalid: partitions are chosen where that cannot be.
        Unavailable: a file could not be deleted; the clean is pending.
    """
    options = parse_clean_options(config)
    drop_expired_plans(handle, config, engine)
    timeline = _reopen_empty(handle, roll_back_expired_writes(handle, engine, config))
    pending = [one for one in timeline.pending() if one.action == CLEAN]
    results = [done for one in pending if (done := _finish(handle, engine, timeline, one)) is not None]
    if results and not options.multiple:
        return _together(results)
    if pending:
        timeline = timeline_of(handle)
    last = load_last_clean(handle, timeline)
    if forced or is_due(timeline, last, options):
        plan = _with_empty(handle, options, last, draft_clean(handle, config, options, timeline, last))
        if plan is not None:
            results.append(_start(handle, engine, timeline, plan, instant))
    return _together(results)


def preview_clean(handle: TableHandle, config: Config, engine: Engine | None = None) -> ServicePreview:
    """What `clean` would remove now, whether or not it is due. Writes nothing. Raises as it does."""
    del engine
    options = parse_clean_options(config)
    timeline = timeline_of(handle)
    last = load_last_clean(handle, timeline)
    steps: list[PreviewStep] = []
    notes: list[str] = []
    for one in timeline.pending():
        plan = _load_pending(handle, one)[1] if one.action == CLEAN else None
        if plan is not None:
            steps += _pending_steps(handle, timeline, one, plan)
            notes.append(f"clean {one.requested} is pending and is finished first")
    if notes and not options.multiple:
        notes.append("another clean is planned by the next call")
    else:
        planned, told = _preview_next(handle, config, options, timeline, last)
        seen = {path for step in steps for path in step.paths}
        steps += [step for step in planned if seen.isdisjoint(step.paths)]
        notes += told
    preview = ServicePreview(CLEAN, tuple(steps), tuple(notes))
    return replace(preview, estimated_seconds=_estimate(last, preview.files))


def _preview_next(
    handle: TableHandle, config: Config, options: CleanOptions, timeline: Timeline, last: LastClean | None
) -> tuple[Sequence[PreviewStep], list[str]]:
    """The steps of a clean that is planned now, and notes on it."""
    plan = draft_clean(handle, config, options, timeline, last)
    notes = []
    if plan.chosen:
        notes.append(f"only partitions of {plan.chosen} are looked at")
    notes += [f"partition {partition} is dropped" for partition in plan.partitions]
    notes += [f"files under the savepoint of {time} stay" for time in plan.savepoints]
    if plan.earliest is not None:
        notes.append(f"every state from {plan.earliest.requested} on stays readable")
    elif options.by_versions and first_unseen(timeline) is not None:
        notes.append("a write or a plan is pending: what it may be reading stays")
    elif not options.by_versions:
        notes.append(f"there are not enough commits yet for {options.policy}")
    if not is_due(timeline, last, options):
        notes.append(f"not due: fewer than {options.trigger_commits} commits since the last clean")
    return plan.steps, notes


def _start(
    handle: TableHandle, engine: Engine, timeline: Timeline, planned: PlannedClean, instant: InstantTime | None
) -> CleanResult:
    requested = instant or new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
    plan = planned.stored(handle.storage.absolute)
    payload = encode_clean_plan(plan, handle.profile.avro_generation)
    started = create_requested(handle.storage, handle.profile, requested, CLEAN, payload)
    log.info("cleaning %d files as %s", sum(map(len, plan.files.values())), requested)
    return _run(handle, engine, _inflight(handle, started, payload), plan)


def _finish(handle: TableHandle, engine: Engine, timeline: Timeline, pending: Instant) -> CleanResult | None:
    """The result of a pending clean that was finished; None when it was never really planned."""
    payload, plan = _load_pending(handle, pending)
    if plan is None:
        delete_instant_files(handle.storage, handle.profile, pending)
        return None
    log.info("finishing the pending clean %s", pending.requested)
    in_use = paths_in_use(handle, timeline, plan.files)
    return _run(handle, engine, _inflight(handle, pending, payload), plan, in_use)


def _load_pending(handle: TableHandle, pending: Instant) -> tuple[bytes, CleanPlan | None]:
    """The plan of a pending clean, with its bytes; None when it was never written."""
    payload = load_requested(handle.storage, handle.profile, pending)
    if not payload:
        return payload, None
    path = instant_path(handle.profile, replace(pending, state=State.REQUESTED))
    return payload, parse_clean_plan(payload, path)


def _pending_steps(handle: TableHandle, timeline: Timeline, pending: Instant, plan: CleanPlan) -> Iterator[PreviewStep]:
    """What finishing a pending clean would remove: one step for each partition."""
    in_use = paths_in_use(handle, timeline, plan.files)
    listed = list_files(handle.storage, plan.files)
    sizes = {file.path: file.size_bytes for files in listed for file in (*files.everything, *files.changes)}
    for partition, names in plan.files.items():
        paths = tuple(path for path in _paths(partition, names, pending) if path in sizes and path not in in_use)
        size = sum(sizes[path] for path in paths)
        yield PreviewStep(DELETE, partition, None, paths, size, f"planned by the pending clean {pending.requested}")


def _inflight(handle: TableHandle, instant: Instant, payload: bytes) -> Instant:
    if instant.state is State.INFLIGHT:
        return instant
    repeated = payload if handle.profile.capabilities.clean_inflight_repeats_plan else b""
    return to_inflight(handle.storage, handle.profile, instant, repeated)


def _run(
    handle: TableHandle, engine: Engine, inflight: Instant, plan: CleanPlan, in_use: frozenset[str] = frozenset()
) -> CleanResult:
    clock = handle.env.monotonic()
    named = {partition: _paths(partition, names, inflight) for partition, names in plan.files.items()}
    doomed = {partition: [path for path in paths if path not in in_use] for partition, paths in named.items()}
    going = [path for paths in doomed.values() for path in paths]
    by = LocalEngine(DELETING_THREADS) if len(going) <= LOCAL_FILES else engine
    ensure_held(handle.storage)
    delete_files(handle.storage, by, going, "clean")
    dropped = tuple(partition for partition in plan.partitions if _drop(handle.storage, partition))
    deleted = {name: tuple(path.rpartition("/")[2] for path in paths) for name, paths in doomed.items()}
    duration_ms = int((handle.env.monotonic() - clock) * 1000)
    metadata = CleanMetadata(
        start_time=inflight.requested,
        time_taken_ms=duration_ms,
        total_files_deleted=sum(map(len, deleted.values())),
        earliest=plan.earliest.requested if plan.earliest else "",
        last_completed=plan.last_completed,
        partitions={
            name: CleanedPartition(name, plan.policy, deleted.get(name, ()), deleted.get(name, ()), (), name in dropped)
            for name in dict.fromkeys((*deleted, *dropped))
        },
        bootstrap_partitions={
            name: CleanedPartition(name, plan.policy, paths, (), paths) for name, paths in plan.bootstrap_files.items()
        },
        extra_metadata=plan.extra_metadata,
    )
    update = TableUpdate(inflight.requested, CLEAN, deleted=deleted, deleted_partitions=dropped)
    record_update(handle, update, engine)
    payload = encode_clean_metadata(metadata, handle.profile.avro_generation)
    complete(handle.storage, handle.profile, inflight, payload, handle.env, handle.config.timezone)
    return CleanResult(
        instant=inflight.requested,
        earliest=metadata.earliest or None,
        files=metadata.total_files_deleted,
        partitions=tuple(metadata.partitions),
        dropped_partitions=dropped,
        duration_ms=duration_ms,
    )


def _reopen_empty(handle: TableHandle, timeline: Timeline) -> Timeline:
    """The timeline after completed cleans without content, from the newest on, were made pending again."""
    while (last := last_clean_of(timeline)) is not None and not load_instant(handle.storage, handle.profile, last):
        log.warning("the completed clean %s is empty and is done again", last.requested)
        handle.storage.delete(instant_path(handle.profile, last))
        timeline = timeline_of(handle)
    return timeline


def _with_empty(
    handle: TableHandle, options: CleanOptions, last: LastClean | None, plan: PlannedClean
) -> PlannedClean | None:
    """The plan if it is to be run. One that removes nothing is run where cleans are to be recorded from time to time:
    what it says about the earliest commit spares the next clean a long look; it never goes back.
    """
    if not plan.is_empty:
        return plan
    if not options.incremental or plan.earliest is None or options.empty_after_hours <= 0:
        return None
    since = format_instant_time(handle.env.now() - timedelta(hours=options.empty_after_hours), handle.config.timezone)
    if last is None:
        return plan
    if last.instant.requested > since:
        return None
    earliest = max(plan.earliest.requested, last.metadata.earliest)
    return replace(plan, earliest=replace(plan.earliest, requested=earliest))


def _paths(partition: str, names: Iterable[str], clean_instant: Instant) -> list[str]:
    """A plan's full names as paths below the table.

    Writers spell the base path in different ways (scheme, host, slashes), so only the end is looked at.

    Raises:
        Corrupt: one is no data file of the partition.
    """
    found = []
    for full in names:
        name = full.rpartition("/")[2]
        path = path_in(partition, name)
        if parse_data_file_name(name) is None or not full.endswith(f"/{path}"):
            raise Corrupt(
                f"The plan of clean {clean_instant.requested} names {full[:200]!r}, which is no data file of partition "
                f"{partition!r}",
                remedy="Nothing was deleted. Delete the clean's files from the timeline to have it planned again",
                path=full,
            )
        found.append(path)
    return found


def _drop(storage: Storage, partition: str) -> bool:
    """Whether the folder of a partition is gone: it is removed unless it has data or folders in it."""
    found = storage.list_dir(partition)
    names = (file.path.rpartition("/")[2] for file in found.files)
    if found.dirs or any(parse_data_file_name(name) for name in names):
        return False
    storage.delete_dir(partition)
    return True


def _together(results: Sequence[CleanResult]) -> CleanResult | None:
    """The newest result with what earlier ones did added to it."""
    if not results:
        return None
    *earlier, newest = results
    return replace(
        newest,
        files=sum(one.files for one in results),
        partitions=_united(one.partitions for one in results),
        dropped_partitions=_united(one.dropped_partitions for one in results),
        duration_ms=sum(one.duration_ms for one in results),
        finished=tuple(one.instant for one in earlier),
    )


def _united(parts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part))


def _estimate(last: LastClean | None, files: int) -> float | None:
    """Seconds by what the last clean needed for its files."""
    if last is None or not last.metadata.total_files_deleted:
        return None
    return last.metadata.time_taken_ms / 1000 * files / last.metadata.total_files_deleted


def _is_automatic(handle: TableHandle, config: Config) -> bool:
    return config.flag("hoodie.clean.automatic")


def _may_clean(state: TableState, config: Config) -> bool:
    """Whether a clean may find something: not while too few commits are there for any to give up, and none is begun."""
    options = parse_clean_options(config)
    timeline = state.timeline
    may_have_failed = failed_writes_policy(config) == LAZY and bool(timeline.pending())
    if may_have_failed or options.by_versions or options.only is not None:
        return True
    if any(one.action == CLEAN for one in timeline.instants):
        return True
    env, timezone = state.handle.env, state.handle.config.timezone
    return earliest_retained(timeline, options, env.now(), timezone, "") is not None


SERVICE: Final = Service(
    name="clean",
    nothing="nothing to clean",
    run=clean,
    preview=preview_clean,
    after_commit=(AfterCommit("cleaning", _is_automatic, _may_clean),),
)
