"""Clustering: small file groups are replaced by larger ones, with their rows sorted where columns are named.

1. Planning takes the table lock for a moment and stores a plan on the timeline. Carrying it out needs no exclusion
   until it completes: reads go on, and so do writes, but those that want a file group of the plan are refused.
2. Rows do not change: commit times, sequence numbers and keys are kept, so incremental and change queries show none of
   them as new.
3. It completes as a replacecommit of operation CLUSTER. The old files stay for readers until a clean takes them.
4. Hudi can carry out our plans and we Hudi's. A plan names its sort columns, and the curve under a key of its option
   that Hudi reads past. Plans that resize buckets are another kind (`resizing`).
5. What dies is done again: see `hoodie.services.rewrite.executor`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import Invalid, Unsupported
from hoodie.fileview import open_file_view
from hoodie.locks import parse_lock_options
from hoodie.services.clustering.admin import unschedule_clustering
from hoodie.services.clustering.options import ClusterOptions, parse_cluster_options
from hoodie.services.clustering.partitions import chosen_partitions
from hoodie.services.clustering.plan import GroupOfSlices, clustering_plan, plan_groups
from hoodie.services.clustering.positions import ensure_sortable
from hoodie.services.clustering.result import ClusteringResult, PlannedClustering, planned_of, result_of, sorted_by
from hoodie.services.clustering.task import ClusterTask, cluster_slices
from hoodie.services.clustering.trigger import clustering_due
from hoodie.services.preview import PreviewStep, ServicePreview
from hoodie.services.resizing.plan import pending_resizes
from hoodie.services.rewrite.executor import run_plan, store_plan
from hoodie.services.rewrite.plan_kind import PlanKind, PlanRun, Rewritten
from hoodie.services.rewrite.plan_slices import load_group_slices
from hoodie.services.rewrite.target import prepare_tasks, schema_metadata
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.service import AfterCommit, Argument, Service
from hoodie.slices.bootstrap import load_slice_sources
from hoodie.spec import (
    CLUSTERING,
    REPLACE_COMMIT,
    ClusteringPlan,
    Instant,
    InstantTime,
    RequestedReplace,
    SortOrder,
    encode_requested_replace,
    new_file_id,
)
from hoodie.spec.replace_plan import CLUSTER
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.state.held import held_table
from hoodie.state.pending_plans import PendingPlans
from hoodie.state.table_schema import load_newest_schema
from hoodie.state.table_state import TableState
from hoodie.timeline import Timeline, load_commit_metadata, new_instant_time
from hoodie.transaction import GroupsUnchanged, LockPolicy
from hoodie.view import FileSlice, GroupId
from hoodie.write import parse_write_options
from hoodie.write.written_file import facts_by_path

log = logging.getLogger(__name__)

ORDER: Final = "hoodie.clustering.order"
"""Extra metadata of our commits: the order that was asked for, so that what is in order is not sorted again."""

_LOCAL: Final = LocalEngine()
_RUN, _SCHEDULE, _EXECUTE, _UNSCHEDULE = "scheduleAndExecute", "schedule", "execute", "unschedule"


def schedule_clustering(
    handle: TableHandle, config: Config, engine: Engine, *, when_due: bool = False
) -> Instant | None:
    """The clustering that is planned now, requested; None when no files are worth it, when another writer is at work,
    or (`when_due`) when too few writes came since the last one. The caller holds the table lock. Lists the table's
    files.

    Raises:
        Invalid: an option that cannot be, or a sort column that the table does not have.
        Unsupported: a table whose rows lie in buckets, or base files of another format than Parquet.
    """
    options = _options(handle, config)
    timeline = roll_back_failed_writes(handle, _LOCAL, timeline_of(handle), config)
    plans = PendingPlans(handle.storage, timeline)
    if when_due and not _is_due(handle, timeline, plans, options):
        return None
    running = plans.incomplete_writes()
    if running:
        log.warning("no clustering can be planned while %s is running", running[0].requested)
        return None
    plan, _ = _planned(handle, plans, options, engine)
    if plan is None:
        return None
    requested = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
    request = RequestedReplace(CLUSTER, plan, {}, 1)
    return store_plan(handle, CLUSTERINGS, requested, encode_requested_replace(request, handle.profile.avro_generation))


def run_clustering(
    handle: TableHandle, config: Config, engine: Engine, instant: InstantTime | None = None
) -> ClusteringResult | None:
    """What carrying out the pending clustering `instant` (None: the oldest one) has done; None when none is pending.
    The caller does not hold the table lock: it is taken, after waiting for it, to complete.

    Raises:
        Conflict: another executor works on it, or somebody wrote to its file groups; it stays pending.
        Corrupt: a file is damaged or gone. Fenced: it was taken away meanwhile. Unavailable: a restore is pending.
    """
    asked = CLUSTERINGS.find(PendingPlans(handle.storage, timeline_of(handle)), instant)
    done = None if asked is None else run_plan(handle, config, engine, CLUSTERINGS, asked, held=False)
    return None if done is None else result_of(done)


def cluster(
    handle: TableHandle, config: Config, engine: Engine, instant: InstantTime | None = None, op: str = _RUN
) -> ClusteringResult | PlannedClustering | None:
    """What was done. `op`: plan, carry out the pending plan `instant` (None: the oldest), both (a plan that is pending
    is carried out instead of a new one), or take the plan `instant` off the timeline. None when there was nothing to
    do. The caller does not hold the table lock.
    """
    if op == _UNSCHEDULE:
        return unschedule_clustering(handle, config, engine, CLUSTERINGS, instant)
    pending = CLUSTERINGS.find(PendingPlans(handle.storage, timeline_of(handle)), instant)
    if op == _SCHEDULE or (op == _RUN and pending is None):
        with held_table(handle.storage, "plan clustering", handle.env, parse_lock_options(config)) as held:
            planned = schedule_clustering(held, config, engine)
            if planned is None or op == _SCHEDULE:
                return None if planned is None else planned_of(held, planned, "planned")
    return run_clustering(load_handle(handle.storage, handle.env), config, engine, instant)


def preview_clustering(
    handle: TableHandle, config: Config, engine: Engine, instant: InstantTime | None = None, op: str = _RUN
) -> ServicePreview:
    """What `cluster` would do now: a step for each group of slices."""
    del instant, op
    options = _options(handle, config)
    plans = PendingPlans(handle.storage, timeline_of(handle))
    pending = CLUSTERINGS.pending(plans)
    if pending:
        groups = plans.groups(pending[0])
        note = f"the pending plan {pending[0].requested} of {len(groups)} file groups is carried out first"
        return ServicePreview("cluster", (), (note,))
    _, groups_of = _planned(handle, plans, options, engine)
    order = "" if options.order is None else f", sorted by {', '.join(sorted_by(options.order))}"
    steps = tuple(
        PreviewStep(
            "rewrite",
            group.partition,
            group.slices[0].file_id,
            tuple(path for part in group.slices for path in part.paths),
            group.size_bytes,
            f"{len(group.slices)} file groups into {group.outputs}{order}",
        )
        for group in groups_of
    )
    return ServicePreview("cluster", steps, () if steps else ("no files are worth rewriting",))


def _planned(
    handle: TableHandle, plans: PendingPlans, options: ClusterOptions, engine: Engine
) -> tuple[ClusteringPlan | None, tuple[GroupOfSlices, ...]]:
    view = open_file_view(handle.storage, handle.config, plans.timeline, engine=engine, plans=plans).load()
    now = handle.env.now()
    hour = (now if handle.config.timezone == "UTC" else now.astimezone()).hour
    partitions = set(chosen_partitions(options.choice, view.partitions, hour))
    taken = plans.rewritten() | plans.compactions().keys()
    slices = [part for part in view.slices_at() if part.partition in partitions and part.group_id not in taken]
    done = _sorted_already(handle, plans.timeline, slices, options.order)
    groups, missing = plan_groups(slices, options, done)
    if not groups:
        return None, ()
    if options.order is not None:
        schema = load_newest_schema(handle.storage, handle.config, plans.timeline)
        ensure_sortable(pa.schema([]) if schema is None else schema, options.order)
    sources = load_slice_sources(handle.storage, handle.config, slices)
    paths = {group: source.storage.absolute(source.path) for group, source in sources.items()}
    return clustering_plan(groups, missing, options, handle.storage.absolute, paths), groups


def _sorted_already(
    handle: TableHandle, timeline: Timeline, slices: Iterable[FileSlice], order: SortOrder | None
) -> frozenset[GroupId]:
    """The file groups whose base file was made by a clustering that sorted in this order. Reads the replacecommits on
    the timeline that made base files of `slices`.
    """
    if order is None:
        return frozenset()
    made: dict[InstantTime, list[GroupId]] = {}
    for part in slices:
        if part.base is not None:
            made.setdefault(part.base.name.instant, []).append(part.group_id)
    found: set[GroupId] = set()
    for one in timeline.completed_writes():
        if one.action == REPLACE_COMMIT and one.requested in made:
            said = load_commit_metadata(handle.storage, handle.profile, one).extra_metadata.get(ORDER)
            if said == _order_text(order):
                found.update(made[one.requested])
    return frozenset(found)


def _clustered(run: PlanRun) -> Rewritten:
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
            tasks.append(ClusterTask(target, parts[0].partition, parts, order, ids))
        for one in group.slices:
            replaced.setdefault(one.partition, []).append(one.file_id)
    tasks.sort(key=lambda task: sum(part.size_bytes for part in task.parts), reverse=True)
    files = [file for some in engine.run(cluster_slices, tasks, "cluster") for file in some]
    return Rewritten(
        tuple(file.stat for file in files),
        schema_metadata(run, found.facts) | ({} if asked is None else {ORDER: _order_text(asked)}),
        {name: tuple(ids) for name, ids in replaced.items()},
        facts=facts_by_path(files),
    )


def _pending(plans: PendingPlans) -> list[Instant]:
    resizes = set(pending_resizes(plans))
    return [one for one in plans.instants(CLUSTERING) if one not in resizes]


CLUSTERINGS: Final = PlanKind(
    name="clustering",
    action=CLUSTERING,
    operation=CLUSTER,
    pending=_pending,
    rewrite=_clustered,
    rule=GroupsUnchanged(),
)


def _options(handle: TableHandle, config: Config) -> ClusterOptions:
    """The options, on a table that may be clustered.

    Raises:
        Invalid, Unsupported: as `schedule_clustering`.
    """
    table = handle.config
    if table.base_file_format != "PARQUET":
        raise Unsupported(
            f"Table {table.name} has {table.base_file_format} base files",
            remedy="Only Parquet is written; cluster it with Apache Hudi",
        )
    index = parse_write_options("upsert", config, table, handle.profile).index
    if index.traits.assigns_groups:
        raise Unsupported(
            f"Rows of table {table.name} lie in the buckets of their keys, which clustering would take them out of",
            remedy="Resize its buckets instead (hoodie resize)",
        )
    return parse_cluster_options(config, table)


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


def _order_text(order: SortOrder) -> str:
    return " ".join((order.curve.value, ",".join(order.columns)))


def _is_due(handle: TableHandle, timeline: Timeline, plans: PendingPlans, options: ClusterOptions) -> bool:
    def is_last(instant: Instant) -> bool:
        said = load_commit_metadata(handle.storage, handle.profile, instant)
        return said.operation_type == CLUSTER

    return clustering_due(timeline, [one.requested for one in _pending(plans)], is_last, options.max_commits)


def _may_act(state: TableState, config: Config) -> bool:
    options = parse_cluster_options(config, state.handle.config)
    return bool(_pending(state.plans)) or _is_due(state.handle, state.timeline, state.plans, options)


def _cluster_when_due(handle: TableHandle, config: Config, engine: Engine) -> ClusteringResult | None:
    while CLUSTERINGS.find(PendingPlans(handle.storage, timeline_of(handle)), None) is not None:
        run_clustering(handle, config, engine)
        handle = load_handle(handle.storage, handle.env)
    with held_table(handle.storage, "plan clustering", handle.env) as held:
        if schedule_clustering(held, config, engine, when_due=True) is None:
            return None
    return run_clustering(load_handle(handle.storage, handle.env), config, engine)


def _plan_when_due(handle: TableHandle, config: Config, engine: Engine) -> Instant | None:
    if _pending(PendingPlans(handle.storage, timeline_of(handle))):
        return None
    return schedule_clustering(handle, config, engine, when_due=True)


def _asked(key: str) -> Any:
    def is_asked(handle: TableHandle, config: Config) -> bool:
        del handle
        return config.flag(key)

    return is_asked


SERVICE: Final = Service(
    name="cluster",
    nothing="no files are worth rewriting",
    run=cluster,
    preview=preview_clustering,
    lock=LockPolicy.AT_BOTH_ENDS,
    arguments=(
        Argument("instant", "the pending plan (default: the oldest, or a new one)"),
        Argument(
            "op",
            "only plan, only carry out, or take a plan off",
            default=_RUN,
            choices=(_RUN, _SCHEDULE, _EXECUTE, _UNSCHEDULE),
        ),
    ),
    after_commit=(
        AfterCommit(
            "clustering", _asked("hoodie.clustering.inline"), _may_act, _cluster_when_due, LockPolicy.AT_BOTH_ENDS
        ),
        AfterCommit("planning a clustering", _asked("hoodie.clustering.schedule.inline"), _may_act, _plan_when_due),
    ),
)
