"""Carrying out a plan of groups of file slices: which tasks there are, and what their commit says."""

from __future__ import annotations

import logging
from typing import Final

import pyarrow as pa

from hoodie.errors import Invalid, Unsupported
from hoodie.services.clustering.positions import ensure_sortable
from hoodie.services.clustering.result import copy_metadata
from hoodie.services.clustering.task import ClusterTask, cluster_slices
from hoodie.services.rewrite.plan_kind import PlanRun, Rewritten
from hoodie.services.rewrite.plan_slices import load_group_slices
from hoodie.services.rewrite.target import prepare_tasks, schema_metadata
from hoodie.spec import ClusteringPlan, SortOrder, new_file_id
from hoodie.spec.base_file_plan import BASE_FILE_PLAN
from hoodie.write.written_file import facts_by_path

log = logging.getLogger(__name__)

ORDER: Final = "hoodie.clustering.order"
"""Extra metadata of our commits: the order that was asked for, so that what is in order is not sorted again."""


def rewrite_groups(run: PlanRun) -> Rewritten:
    """What carrying out the plan of `run` has written: the files of each group by a task of its own, largest first."""
    plan = run.plans.clustering(run.instant).clustering_plan or ClusteringPlan(())
    asked = plan.sort_order
    found = load_group_slices(run)
    engine, target = prepare_tasks(run, found)
    order = None if asked is None else _possible(asked, target.schema)
    slices = {(part.partition, part.file_id): part for part in found.slices}
    tasks: list[ClusterTask] = []
    replaced: dict[str, list[str]] = {}
    for group in plan.groups:
        parts = tuple(slices[one.group_id] for one in group.slices if one.group_id in slices)
        prefix = run.handle.env.uuid()
        ids = tuple(new_file_id(prefix, number) for number in range(max(1, group.outputs or 1)))
        if parts:
            tasks.append(ClusterTask(target, parts[0].partition, parts, order, ids, run.options.copy_from_bytes))
        for one in group.slices:
            replaced.setdefault(one.partition, []).append(one.file_id)
    tasks.sort(key=lambda task: sum(part.size_bytes for part in task.parts), reverse=True)
    done = engine.run(cluster_slices, tasks, "cluster")
    files = [file for group in done for file in group.files]
    more = copy_metadata(done) if asked is None else {ORDER: order_text(asked)}
    return Rewritten(
        tuple(file.stat for file in files),
        schema_metadata(run, found.facts) | more | _carried(plan),
        {name: tuple(ids) for name, ids in replaced.items()},
        facts=facts_by_path(files),
    )


def order_text(order: SortOrder) -> str:
    """The order as commits name it."""
    return " ".join((order.curve.value, ",".join(order.columns)))


def _carried(plan: ClusteringPlan) -> dict[str, str]:
    """What of a plan's own words its commit repeats: it stays when the plan is archived."""
    said = plan.extra_metadata or {}
    return {BASE_FILE_PLAN: said[BASE_FILE_PLAN]} if BASE_FILE_PLAN in said else {}


def _possible(order: SortOrder, stored: pa.Schema) -> SortOrder | None:
    """What of an order rows of the `stored` columns can be sorted by. A plan may be older than the schema, or somebody
    else's; a partition column that is not stored has one value in a group.
    """
    columns = []
    for name in order.columns:
        try:
            ensure_sortable(stored, SortOrder((name,)))
        except (Invalid, Unsupported) as error:
            log.info("rows are not sorted by column %s: %s", name, error.cause)
        else:
            columns.append(name)
    found = SortOrder(tuple(columns), order.curve)
    try:
        ensure_sortable(stored, found)
    except Unsupported as error:
        log.warning("rows are sorted by their columns in turn: %s", error.cause)
        found = SortOrder(tuple(columns))
    return found if columns else None
