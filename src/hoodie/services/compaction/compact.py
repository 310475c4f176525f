"""Compaction: log files of a merge-on-read table become part of base files.

1. Scheduling makes a plan and stores it; that is quick and done under the table lock. Carrying it out may
   take long and is done by one executor, beside writers: what they append comes after the compaction.
2. A compaction changes no row: a snapshot gives the same rows before, during and after it, commit times included.
3. It completes as a `commit` of operation COMPACT. Until then its base files are nobody's.
4. What dies is done again: see `hoodie.services.rewrite.executor`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import date
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import Invalid, Unsupported
from hoodie.fileview import FolderView
from hoodie.locks import parse_lock_options
from hoodie.remote import open_asked_view
from hoodie.services.compaction.options import CompactOptions, parse_compact_options
from hoodie.services.compaction.plan import plan_compaction
from hoodie.services.compaction.result import CompactionResult, result_of
from hoodie.services.compaction.slices import listed_files, load_slices
from hoodie.services.compaction.strategy import StrategyFacts, chosen_partitions
from hoodie.services.compaction.task import CompactTask, compact_slice
from hoodie.services.compaction.trigger import compaction_due
from hoodie.services.preview import PreviewStep, ServicePreview
from hoodie.services.rewrite.executor import run_plan, store_plan
from hoodie.services.rewrite.plan_kind import PlanKind, PlanRun, Rewritten
from hoodie.services.rewrite.target import prepare_tasks, schema_metadata
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.service import AfterCommit, Argument, Service
from hoodie.slices.bootstrap import load_slice_sources
from hoodie.spec import (
    COMMIT,
    COMPACTION,
    CompactionPlan,
    Instant,
    InstantTime,
    encode_compaction_plan,
)
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.state.held import held_table
from hoodie.state.pending_plans import PendingPlans
from hoodie.state.table_state import TableState
from hoodie.timeline import Timeline, load_commit_metadata, new_instant_time
from hoodie.transaction import LockPolicy
from hoodie.view import View
from hoodie.write.written_file import facts_by_path

log = logging.getLogger(__name__)

COMPACT: Final = "COMPACT"
INLINE: Final = "hoodie.compact.inline"
ASYNC: Final = "hoodie.datasource.compaction.async.enable"

_PARTITION_STRATEGIES: Final = {
    "DayBased",
    "BoundedPartitionAware",
    "UnBoundedPartitionAware",
    "PartitionRegexBased",
}
_LOOKED_AT_COMMITS: Final = 20
_GUESSED_BYTES_PER_SECOND: Final = 40 << 20
"""What one core merges in a second, where no earlier compaction tells."""


def schedule_compaction(
    handle: TableHandle, config: Config, engine: Engine, *, when_due: bool = True
) -> Instant | None:
    """The compaction that is planned now, requested; None when none is due (unless `when_due` is off), when there is
    nothing to compact, or when a running write forbids it (version 6).

    The caller holds the table lock. Lists the table's files.

    Raises:
        Invalid: not a merge-on-read table, or a strategy that does not fit its partitions.
        Unsupported: base files of another format than Parquet.
    """
    ensure_compactable(handle)
    options = parse_compact_options(config, handle.config)
    timeline = roll_back_failed_writes(handle, LocalEngine(), timeline_of(handle), config)
    requested = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
    due = compaction_due(timeline, options, requested, handle.config.timezone)
    if when_due and not due.is_due:
        log.info("no compaction is due: %s", due.reason)
        return None
    plans = PendingPlans(handle.storage, timeline)
    running = _hindering(handle, plans)
    if running:
        log.warning("no compaction can be planned while %s is running", running[0].requested)
        return None
    plan = _planned(handle, plans, options, requested, engine)
    if plan is None:
        log.info("there is nothing to compact")
        return None
    payload = encode_compaction_plan(plan, handle.profile.avro_generation)
    return store_plan(handle, COMPACTIONS, requested, payload, timeline)


def run_compaction(
    handle: TableHandle, config: Config, engine: Engine, instant: InstantTime | None = None, *, held: bool = False
) -> CompactionResult | None:
    """What carrying out the pending compaction `instant` (None: the oldest one) has done; None when none is pending.

    The caller does not hold the table lock: it is taken, after waiting for it, to complete. `held`: the
    caller does hold it.

    Raises:
        Conflict: another executor works on it, or writers hold the table for too long; it stays pending.
        Corrupt: a file is damaged or gone. Fenced: it was unscheduled or rolled back meanwhile.
        Unavailable: a restore is pending.
    """
    ensure_compactable(handle)
    asked = COMPACTIONS.find(PendingPlans(handle.storage, timeline_of(handle)), instant)
    done = None if asked is None else run_plan(handle, config, engine, COMPACTIONS, asked, held=held)
    return None if done is None else result_of(done)


def preview_compaction(
    handle: TableHandle, config: Config, engine: Engine | None = None, *, when_due: bool = True
) -> ServicePreview:
    """What `schedule_compaction` and `run_compaction` would do now: one step for each file group, and for those of
    plans that are pending. Writes nothing.
    """
    del engine
    ensure_compactable(handle)
    options = parse_compact_options(config, handle.config)
    timeline = timeline_of(handle)
    now = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
    due = compaction_due(timeline, options, now, handle.config.timezone)
    plans = PendingPlans(handle.storage, timeline)
    known = [(one, plans.compaction(one)) for one in plans.instants(COMPACTION)]
    steps = [step for one, plan in known for step in _steps(handle, timeline, plan, f"planned as {one.requested}")]
    notes = [f"{len(plan.operations)} file groups are planned as {one.requested}" for one, plan in known]
    notes.append(f"{'due' if due.is_due else 'not due'}: {due.reason}")
    if due.is_due or not when_due:
        running = _hindering(handle, plans)
        notes += [f"{one.action} {one.requested} has to end (or be rolled back) first" for one in running]
        plan = _planned(handle, plans, options, now, LocalEngine())
        reason = f"chosen by {', '.join(options.strategies)}"
        steps += [] if plan is None else _steps(handle, timeline, plan, reason)
    seconds = sum(2 * step.size_bytes for step in steps) / _facts(handle, timeline).bytes_per_second
    return ServicePreview("compaction", tuple(steps), tuple(notes), round(seconds, 1) if steps else None)


def ensure_compactable(handle: TableHandle) -> None:
    """Checks that the table is one whose log files are merged here.

    Raises:
        Invalid: a copy-on-write table. Unsupported: base files of another format than Parquet.
    """
    if not handle.config.is_merge_on_read:
        raise Invalid(
            f"Table {handle.config.name} is copy-on-write: it has no log files to compact",
            remedy="Only merge-on-read tables are compacted",
        )
    if handle.config.base_file_format != "PARQUET":
        raise Unsupported(
            f"Table {handle.config.name} has {handle.config.base_file_format} base files",
            remedy="Only Parquet is written; compact it with Apache Hudi",
        )


def _hindering(handle: TableHandle, plans: PendingPlans) -> tuple[Instant, ...]:
    """Pending writes that a plan must wait for: those whose log files may carry an older base instant."""
    return () if handle.profile.log_naming.finds_slice_by_completion else plans.incomplete_writes()


def _compacted(run: PlanRun) -> Rewritten:
    found = load_slices(run)
    engine, target = prepare_tasks(run, found)
    # The largest first: the last task to end should be a short one.
    tasks = [CompactTask(target, part) for part in sorted(found.slices, key=lambda part: part.size_bytes, reverse=True)]
    files = engine.run(compact_slice, tasks, "compact")
    stats = tuple(file.stat for file in files)
    return Rewritten(stats, schema_metadata(run, found.facts), facts=facts_by_path(files))


COMPACTIONS: Final = PlanKind(
    name="compaction",
    action=COMPACTION,
    operation=COMPACT,
    pending=lambda plans: plans.instants(COMPACTION),
    rewrite=_compacted,
)


def _planned(
    handle: TableHandle, plans: PendingPlans, options: CompactOptions, requested: InstantTime, engine: Engine
) -> CompactionPlan | None:
    facts = _facts(handle, plans.timeline, measured="TimeLimited" in options.strategies)
    view = _view(handle, plans, options, facts, engine)
    found = load_slice_sources(handle.storage, handle.config, view.slices_at())
    sources = {group: source.storage.absolute(source.path) for group, source in found.items()}
    return plan_compaction(view, requested, options, facts, taken=plans.rewritten(), sources=sources)


def _view(
    handle: TableHandle, plans: PendingPlans, options: CompactOptions, facts: StrategyFacts, engine: Engine
) -> View:
    # A plan stays, and what it names has to be there. Where names of log files do not say who wrote them, a service may
    # have seen some of a writer that was rolled back and wrote on, and the timeline does not tell it that they went.
    is_told = handle.profile.log_naming.has_one_write_per_file or handle.config.is_metadata_table_ready
    if not _PARTITION_STRATEGIES.intersection(options.strategies):
        server = options.server if is_told else None
        return open_asked_view(server, handle, plans.timeline, engine=engine, plans=plans).load()
    folders = FolderView(handle.storage, plans.timeline, engine, plans)
    return folders.load(chosen_partitions(options.strategies, folders.partitions(), options.limits, facts))


def _facts(handle: TableHandle, timeline: Timeline, *, measured: bool = True) -> StrategyFacts:
    now = handle.env.now()
    today: date = (now if handle.config.timezone == "UTC" else now.astimezone()).date()
    return StrategyFacts(today, _measured_speed(handle, timeline) if measured else _GUESSED_BYTES_PER_SECOND)


def _measured_speed(handle: TableHandle, timeline: Timeline) -> float:
    """Bytes read and written in a second by all cores, as the newest compaction of the last commits did."""
    cores = LocalEngine().parallelism
    commits = [one for one in reversed(timeline.completed_writes()) if one.action == COMMIT]
    for one in commits[:_LOOKED_AT_COMMITS]:
        metadata = load_commit_metadata(handle.storage, handle.profile, one)
        stats = [stat for _, stat in metadata.write_stats()]
        took_ms = sum(stat.runtime.total_upsert_time_ms for stat in stats if stat.runtime is not None)
        if metadata.operation_type == COMPACT and took_ms:
            moved = sum(2 * stat.file_size_bytes + stat.total_log_size_compacted for stat in stats)
            return max(1.0, moved * 1000 / took_ms * cores)
    return float(_GUESSED_BYTES_PER_SECOND * cores)


def _steps(handle: TableHandle, timeline: Timeline, plan: CompactionPlan, reason: str) -> Iterator[PreviewStep]:
    partitions = {one.partition for one in plan.operations}
    files = listed_files(FolderView(handle.storage, timeline).load(partitions))
    sizes = {path: file.size_bytes for known in (files.bases, files.logs) for path, file in known.items()}
    for one in plan.operations:
        paths = (*((one.base_path,) if one.base_path else ()), *one.log_paths)
        size = sum(sizes.get(path, 0) for path in paths)
        yield PreviewStep("merge", one.partition, one.file_id, paths, size, reason)


def compact(
    handle: TableHandle, config: Config, engine: Engine, instant: InstantTime | None = None
) -> CompactionResult | None:
    """What carrying out the pending compaction `instant` (None: the oldest, else one that is planned now) has done;
    None when there is nothing to compact. The caller does not hold the table lock.
    """
    pending = PendingPlans(handle.storage, timeline_of(handle)).instants(COMPACTION)
    if instant is None and not pending:
        with held_table(handle.storage, "plan compaction", handle.env, parse_lock_options(config)) as held:
            if schedule_compaction(held, config, engine, when_due=False) is None:
                return None
    return run_compaction(load_handle(handle.storage, handle.env), config, engine, instant)


def _compact_when_due(handle: TableHandle, config: Config, engine: Engine) -> CompactionResult | None:
    options = parse_lock_options(config).waiting(0)
    with held_table(handle.storage, "plan compaction", handle.env, options) as held:
        schedule_compaction(held, config, engine)
    return run_compaction(load_handle(handle.storage, handle.env), config, engine)


def _preview(handle: TableHandle, config: Config, engine: Engine, instant: InstantTime | None = None) -> ServicePreview:
    del instant  # of a pending plan all steps are shown
    return preview_compaction(handle, config, engine, when_due=False)


def compacts_inline(handle: TableHandle, config: Config) -> bool:
    """Whether a commit is followed by a compaction when one is due: asked for, or nobody else will do it."""
    if not handle.config.is_merge_on_read:
        return False
    return config.flag(INLINE) or not config.flag(ASYNC)


def _only_plans(handle: TableHandle, config: Config) -> bool:
    asked = handle.config.is_merge_on_read and config.flag("hoodie.compact.schedule.inline")
    return asked and not compacts_inline(handle, config)


def _is_due(state: TableState, config: Config) -> bool:
    handle, timeline = state.handle, state.timeline
    now = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
    options = parse_compact_options(config, handle.config)
    return compaction_due(timeline, options, now, handle.config.timezone).is_due


def _may_compact(state: TableState, config: Config) -> bool:
    return bool(state.plans.instants(COMPACTION)) or _is_due(state, config)


SERVICE: Final = Service(
    name="compact",
    nothing="nothing to compact",
    run=compact,
    preview=_preview,
    lock=LockPolicy.AT_BOTH_ENDS,
    arguments=(Argument("instant", "carry out this pending plan (default: the oldest, or a new one)"),),
    after_commit=(
        AfterCommit("compaction", compacts_inline, _may_compact, _compact_when_due, LockPolicy.AT_BOTH_ENDS),
        AfterCommit("planning a compaction", _only_plans, _is_due, schedule_compaction),
    ),
)
