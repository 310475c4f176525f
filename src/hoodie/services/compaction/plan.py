"""Which file slices a compaction merges: from a view to a plan. Pure.

1. A group is taken when its newest slice has log files and nothing else is about to rewrite it: no pending compaction,
   log compaction or clustering.
2. Only log files of delta commits that completed before the compaction's instant are taken. Where slices go by
   completion, later ones come to lie in the new slice by themselves. Where they go by base instant, there must be no
   running write when a plan is made: its log file might carry the old base instant and be in no plan.
3. Order, and what is left out, is the strategies' business.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from hoodie.services.compaction.options import CompactOptions
from hoodie.services.compaction.strategy import StrategyFacts, chosen_operations, metrics_of
from hoodie.spec import CompactionOperation, CompactionPlan, InstantTime, PlanStrategy, new_compaction_plan
from hoodie.view import FileSlice, GroupId, View

LOG_COMPACTION_STRATEGY = PlanStrategy("org.apache.hudi.table.action.compact.LogCompactionExecutionHelper", {})


def plan_compaction(
    view: View,
    instant: InstantTime,
    options: CompactOptions,
    facts: StrategyFacts,
    *,
    taken: Collection[GroupId] = (),
    sources: Mapping[GroupId, str] | None = None,
) -> CompactionPlan | None:
    """The plan of a compaction requested at `instant`; None when there is nothing to do.

    `taken`: file groups that pending log compactions and clusterings work on. `sources`: full paths of the source files
    of bootstrap skeletons.
    """
    operations = [
        _operation(part, options, (sources or {}).get(part.group_id)) for part in eligible_slices(view, instant, taken)
    ]
    chosen = chosen_operations(options.strategies, operations, options.limits, facts)
    return new_compaction_plan(chosen, view.timeline.profile.avro_generation) if chosen else None


def plan_log_compaction(view: View, parts: Collection[FileSlice], options: CompactOptions) -> CompactionPlan | None:
    """The plan of a log compaction of these slices; None for none."""
    chosen = tuple(_operation(part, options, None) for part in parts)
    plan = new_compaction_plan(chosen, view.timeline.profile.avro_generation)
    return replace(plan, strategy=LOG_COMPACTION_STRATEGY, preserve_metadata=True) if chosen else None


def eligible_slices(view: View, instant: InstantTime, taken: Collection[GroupId]) -> Iterator[FileSlice]:
    """The newest slice of every group that may be compacted, with the log files that count, in the view's order."""
    pending = {group.group_id for group in view.groups if group.pending_compaction is not None}
    for part in view.slices_at():
        if part.group_id in pending or part.group_id in taken:
            continue
        logs = part.logs
        if view.timeline.profile.log_naming.finds_slice_by_completion:
            logs = tuple(log for log in logs if _completed_before(view, log.name.instant, instant))
        logs = tuple(log for log in logs if not log.name.is_cdc)
        if logs:
            yield part._replace(logs=logs)


def _completed_before(view: View, written: InstantTime, instant: InstantTime) -> bool:
    return (view.timeline.completion_of(written) or written) < instant


def _operation(part: FileSlice, options: CompactOptions, source: str | None) -> CompactionOperation:
    return CompactionOperation(
        partition=part.partition,
        file_id=part.file_id,
        base_instant=part.base_instant,
        log_files=tuple(log.name.text for log in part.logs),
        base_file=None if part.base is None else part.base.name.text,
        metrics=metrics_of(part, options.max_file_bytes),
        bootstrap_file=source,
    )
