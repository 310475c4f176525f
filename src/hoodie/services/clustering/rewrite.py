"""Carrying out a plan of groups of file slices: which tasks there are, and what their commit says."""

from __future__ import annotations

import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.services.clustering.grouping import ensure_clusterable, ensure_no_buckets
from hoodie.services.clustering.partition_orders import order_notes
from hoodie.services.clustering.result import copy_metadata
from hoodie.services.clustering.row_order import EXECUTION_STRATEGY, ByColumns, OwnOrder, own_order, possible_order
from hoodie.services.clustering.strategies import CHECKPOINT
from hoodie.services.clustering.task import ClusterTask, cluster_slices
from hoodie.services.rewrite.plan_kind import PlanRun, Rewritten
from hoodie.services.rewrite.plan_slices import load_group_slices
from hoodie.services.rewrite.target import prepare_tasks, schema_metadata
from hoodie.spec import ClusteringPlan, SortOrder, new_file_id
from hoodie.spec.base_file_plan import BASE_FILE_PLAN
from hoodie.write.written_file import facts_by_path


def rewrite_groups(run: PlanRun) -> Rewritten:
    """What carrying out the plan of `run` has written: the files of each group by a task of its own, largest first.

    Raises:
        Unsupported: rows of the plan lie in buckets, whoever planned it; or base files are not Parquet.
    """
    plan = run.plans.clustering(run.instant).clustering_plan or ClusteringPlan(())
    own = _own_order(run, plan)
    ensure_clusterable(run.handle, run.config)
    found = load_group_slices(run)
    partitions = {partition for partition, _ in run.plans.groups(run.instant)}
    ensure_no_buckets(run.handle, run.config, found.view.slices_at(), partitions)
    engine, target = prepare_tasks(run, found)
    orders = _possible_orders(plan, target.schema)
    slices = {(part.partition, part.file_id): part for part in found.slices}
    tasks: list[ClusterTask] = []
    replaced: dict[str, list[str]] = {}
    for group in plan.groups:
        parts = tuple(slices[one.group_id] for one in group.slices if one.group_id in slices)
        prefix = run.handle.env.uuid()
        ids = tuple(new_file_id(prefix, number) for number in range(max(1, group.outputs or 1)))
        if parts:
            order = orders[plan.sort_order_of(group)] if own is None else own
            tasks.append(ClusterTask(target, parts[0].partition, parts, order, ids, run.options.copy_from_bytes))
        for one in group.slices:
            replaced.setdefault(one.partition, []).append(one.file_id)
    tasks.sort(key=lambda task: sum(part.size_bytes for part in task.parts), reverse=True)
    done = engine.run(cluster_slices, tasks, "cluster")
    files = [file for group in done for file in group.files]
    as_they_come = [made for task, made in zip(tasks, done, strict=True) if task.order is None]
    more = order_notes(plan, own) | (copy_metadata(as_they_come) if as_they_come else {})
    return Rewritten(
        tuple(file.stat for file in files),
        schema_metadata(run, found.facts) | more | _carried(plan),
        {name: tuple(ids) for name, ids in replaced.items()},
        facts=facts_by_path(files),
    )


def _carried(plan: ClusteringPlan) -> dict[str, str]:
    """What of a plan's own words its commit repeats: it stays when the plan is archived."""
    said = plan.extra_metadata or {}
    return {key: said[key] for key in (BASE_FILE_PLAN, CHECKPOINT) if key in said}


def _own_order(run: PlanRun, plan: ClusteringPlan) -> OwnOrder | None:
    """The order of the class of their own that the caller names.

    Raises:
        Invalid: the plan is about a class that the caller does not name: a plan is no reason to import anything.
    """
    named = run.config.text(EXECUTION_STRATEGY)
    if ":" in named:
        return own_order(named, run.config, run.handle.config)
    said = ((plan.strategy.params if plan.strategy is not None else None) or {}).get(EXECUTION_STRATEGY)
    if said is not None:
        raise Invalid(
            f"The clustering {run.instant.requested} was planned for the class {said}",
            remedy=f"Carry it out with {EXECUTION_STRATEGY}={said} if you trust it, or take it off (hoodie cluster "
            f"--op unschedule --instant {run.instant.requested})",
            instant=run.instant.requested,
        )
    return None


def _possible_orders(plan: ClusteringPlan, stored: pa.Schema) -> dict[SortOrder | None, ByColumns | None]:
    """The orders that the plan asks for, each as far as rows of the `stored` columns can be put in it."""
    asked = {plan.sort_order_of(group) for group in plan.groups}
    return {order: None if order is None else possible_order(order, stored) for order in asked}
