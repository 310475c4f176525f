"""Log compaction: many small log files of a slice become one, and the base file stays as it is.

1. A slice is worth it from `hoodie.log.compaction.blocks.threshold` blocks on. The old log files stay until the slice
   is compacted and cleaned; readers pass by them.
2. It completes as a `deltacommit` of operation LOG_COMPACT. Its plan, its executor and what happens when that dies are
   those of a compaction.
3. It waits for running writes: one that was requested before it and completes after it would change its place among
   the others.
4. Blocks with partial rows cannot be folded without their base rows; slices with such blocks are left to compaction.
   So are tables without meta columns.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine
from hoodie.locks import parse_lock_options
from hoodie.query import ReadOptions, load_read_facts
from hoodie.records import without_meta
from hoodie.remote import asked_server, open_asked_view
from hoodie.services.compaction.compact import ensure_compactable
from hoodie.services.compaction.log_compact_task import CountTask, LogCompactTask, LogForm, compact_log, count_blocks
from hoodie.services.compaction.options import CompactOptions, parse_compact_options
from hoodie.services.compaction.plan import eligible_slices, plan_log_compaction
from hoodie.services.compaction.result import CompactionResult, result_of
from hoodie.services.compaction.slices import load_slices
from hoodie.services.rewrite.executor import run_plan, store_plan
from hoodie.services.rewrite.plan_kind import PlanKind, PlanRun, Rewritten
from hoodie.services.rewrite.target import prepare_tasks, schema_metadata
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.service import AfterCommit, Service
from hoodie.slices import plan_merge
from hoodie.spec import (
    LOG_COMPACTION,
    Instant,
    InstantTime,
    encode_compaction_plan,
)
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.state.held import held_table
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import new_instant_time
from hoodie.transaction import LockPolicy
from hoodie.view import FileSlice, GroupId, View
from hoodie.write.log_place import LogPlace, log_place

log = logging.getLogger(__name__)

LOG_COMPACT: Final = "LOG_COMPACT"

_SWITCHES: Final = ("hoodie.log.compaction.enable", "hoodie.log.compaction.inline")


def schedule_log_compaction(
    handle: TableHandle, config: Config, engine: Engine, *, when_enabled: bool = True
) -> Instant | None:
    """The log compaction that is planned now, requested; None when it is not enabled (`hoodie.log.compaction.enable`
    or `.inline`; unless `when_enabled` is off), when no log has enough blocks, or while a write is running.

    The caller holds the table lock. Lists the table's files, and reads the frames of log files.

    Raises:
        Invalid: not a merge-on-read table. Corrupt: a log file is damaged.
    """
    ensure_compactable(handle)
    if when_enabled and not any(config.flag(key) for key in _SWITCHES):
        return None
    if not handle.config.populate_meta_fields:
        return None
    options = parse_compact_options(config, handle.config)
    timeline = roll_back_failed_writes(handle, LocalEngine(), timeline_of(handle), config)
    plans = PendingPlans(handle.storage, timeline)
    running = plans.incomplete_writes()
    if running:
        log.info("no log compaction can be planned while %s is running", running[0].requested)
        return None
    requested = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
    view = open_asked_view(asked_server(config), handle, timeline, engine=engine, plans=plans).load()
    slices = list(eligible_slices(view, requested, plans.rewritten()))
    plan = plan_log_compaction(view, _worth_it(handle, view, slices, options, engine), options)
    if plan is None:
        return None
    payload = encode_compaction_plan(plan, handle.profile.avro_generation)
    return store_plan(handle, LOG_COMPACTIONS, requested, payload, timeline)


def run_log_compaction(
    handle: TableHandle, config: Config, engine: Engine, instant: InstantTime | None = None, *, held: bool = False
) -> CompactionResult | None:
    """What carrying out the pending log compaction `instant` (None: the oldest one) has done; None when none is
    pending. Else as `run_compaction`.
    """
    ensure_compactable(handle)
    asked = LOG_COMPACTIONS.find(PendingPlans(handle.storage, timeline_of(handle)), instant)
    done = None if asked is None else run_plan(handle, config, engine, LOG_COMPACTIONS, asked, held=held)
    return None if done is None else result_of(done)


def _worth_it(
    handle: TableHandle, view: View, slices: Sequence[FileSlice], options: CompactOptions, engine: Engine
) -> list[FileSlice]:
    """The slices whose logs have enough blocks, and more than one."""
    if not slices:
        return []
    facts = load_read_facts(handle.storage, handle.config, view, ReadOptions())
    if facts.schema is None:
        return []
    own = without_meta(facts.schema)
    blocks = plan_merge(own, (), handle.config, view.timeline, options.rewrite.merge).blocks
    tasks = [CountTask(handle.storage, part.logs, blocks) for part in slices]
    chosen = options.rewrite.engine_for(sum(part.size_bytes for part in slices), engine)
    counts = chosen.run(count_blocks, tasks, "count log blocks")
    least = max(2, options.min_blocks)
    return [part for part, count in zip(slices, counts, strict=True) if count >= least]


def _compacted(run: PlanRun) -> Rewritten:
    found = load_slices(run)
    engine, target = prepare_tasks(run, found)
    profile = run.handle.profile
    form = LogForm(profile.log_naming.marker, profile.capabilities.late_log_headers)
    plan = run.plans.compaction(run.instant)
    places = _places(run, plan.group_ids, found.view)
    tasks = [
        LogCompactTask(target, part, places[operation.group_id], form)
        for operation, part in zip(plan.operations, found.slices, strict=True)
        if operation.group_id in places
    ]
    stats = engine.run(compact_log, tasks, "compact logs")
    return Rewritten(tuple(stats), schema_metadata(run, found.facts))


LOG_COMPACTIONS: Final = PlanKind(
    name="log compaction",
    action=LOG_COMPACTION,
    operation=LOG_COMPACT,
    pending=lambda plans: plans.instants(LOG_COMPACTION),
    rewrite=_compacted,
)


def _places(run: PlanRun, groups: Sequence[GroupId], view: View) -> dict[GroupId, LogPlace]:
    """Where the new log file of each group stands; groups that were replaced meanwhile get none. Where versions count
    up, all listed files of the slice count, also those of writes that did not complete.
    """
    listed = {one.group_id: one for one in view.slices_at()}
    naming, instant = run.handle.profile.log_naming, run.instant.requested
    return {group: log_place(naming, listed[group], instant, None) for group in groups if group in listed}


def compact_logs(
    handle: TableHandle, config: Config, engine: Engine, *, when_enabled: bool = False
) -> CompactionResult | None:
    """What merging the log blocks of a plan that is pending, or is made now, has done; None when no slice has enough of
    them. The caller does not hold the table lock.
    """
    options = parse_lock_options(config)
    options = options.waiting(0) if when_enabled else options
    with held_table(handle.storage, "plan log compaction", handle.env, options) as held:
        schedule_log_compaction(held, config, engine, when_enabled=when_enabled)
    return run_log_compaction(load_handle(handle.storage, handle.env), config, engine)


def _is_inline(handle: TableHandle, config: Config) -> bool:
    return handle.config.is_merge_on_read and config.flag("hoodie.log.compaction.inline")


SERVICE: Final = Service(
    name="compact_logs",
    nothing="no slice has enough log blocks",
    run=compact_logs,
    lock=LockPolicy.AT_BOTH_ENDS,
    after_commit=(
        AfterCommit(
            "log compaction", _is_inline, run=partial(compact_logs, when_enabled=True), lock=LockPolicy.AT_BOTH_ENDS
        ),
    ),
)
