"""The groups of file slices that are worth rewriting now, from what is on storage to a plan that is not stored yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.errors import Invalid, Unsupported
from hoodie.fileview import open_file_view
from hoodie.index import (
    NAME_THE_INDEX,
    group_by_partition,
    is_index_named,
    load_bucket_partition,
    parse_write_index,
)
from hoodie.records import without_meta
from hoodie.services.clustering.gain import LookUpGain, look_up_gain
from hoodie.services.clustering.options import OVERLAP_COLUMNS, ClusterOptions, PartitionChoice
from hoodie.services.clustering.partition_orders import noted_order
from hoodie.services.clustering.partitions import chosen_partitions
from hoodie.services.clustering.plan import clustering_plan, joined_ranges, plan_groups
from hoodie.services.clustering.plan_strategy import GroupOfSlices, PlanFacts
from hoodie.services.clustering.row_order import ensure_sortable, order_text, sorted_by
from hoodie.services.clustering.slice_facts import RangeSource, load_commits, newest_notes
from hoodie.services.clustering.stitch import why_decoded
from hoodie.services.clustering.strategies import CHECKPOINT, ByCommits, ByRanges
from hoodie.slices.bootstrap import load_slice_sources
from hoodie.spec import REPLACE_COMMIT, ClusteringPlan, InstantTime
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.state.table_schema import load_newest_schema
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.view import FileSlice, GroupId

_RESIZE: Final = (
    "Resize its buckets instead (hoodie resize), and take a pending plan off (hoodie cluster --op unschedule)"
)
_TOLD_SLICES: Final = 1_000
"""Of more slices the ranges of sort columns are not read only for the plan to tell them."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """A plan and its groups; None and nothing where no files are worth it. `slices` are those of the partitions that
    were looked at, whatever becomes of them; `notes` what the plan says of itself.
    """

    plan: ClusteringPlan | None
    groups: tuple[GroupOfSlices, ...]
    slices: tuple[FileSlice, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)


def load_grouping(
    handle: TableHandle, config: Config, plans: PendingPlans, options: ClusterOptions, engine: Engine
) -> Grouping:
    """The groups to rewrite. Lists the table's files, and reads what the plan strategy needs to know of them.

    Raises:
        Invalid, Unsupported: rows cannot be sorted by the columns that are asked for, they lie in buckets, or a
            strategy of the caller's own breaks its promise.
    """
    timeline = plans.timeline
    view = open_file_view(handle.storage, handle.config, timeline, engine=engine, plans=plans).load()
    now = handle.env.now()
    hour = (now if handle.config.timezone == "UTC" else now.astimezone()).hour
    partitions = set(chosen_partitions(options.choice, view.partitions, hour))
    taken = plans.rewritten() | plans.compactions().keys()
    every = view.slices_at()
    looked_at = tuple(part for part in every if part.partition in partitions)
    slices = [part for part in looked_at if part.group_id not in taken]
    if not options.takes_logs:
        slices = [part for part in slices if part.base is not None and not part.logs]
    options = _resumed(handle, timeline, options)
    schema = load_newest_schema(handle.storage, handle.config, timeline) or pa.schema([])
    source = RangeSource(handle, timeline, schema, engine)
    facts = _load_facts(source, slices, options)
    done = _sorted_already(handle, timeline, slices, options)
    found = plan_groups(slices, options, done, facts)
    if not found.groups:
        return Grouping(None, (), looked_at)
    ensure_no_buckets(handle, config, every, {group.partition for group in found.groups})
    ensure_possible(schema, options)
    groups = _with_ranges(source, found.groups, options)
    sources = load_slice_sources(handle.storage, handle.config, slices)
    paths = {group: source.storage.absolute(source.path) for group, source in sources.items()}
    plan = clustering_plan(groups, found.missing, options, handle.storage.absolute, paths)
    notes = options.strategy.notes(taken | {part.group_id for part in found.cut}, facts)
    if options.choice != PartitionChoice():  # other partitions were not looked at
        notes = {key: value for key, value in notes.items() if key != CHECKPOINT}
    return Grouping(plan.noting(notes), groups, looked_at, notes)


def ensure_possible(schema: pa.Schema, options: ClusterOptions) -> None:
    """Checks that rows of `schema` can be put in the order that is asked for, and that its columns are there.

    Raises:
        Invalid: there is no such column. Unsupported: its values have no order, or a curve of too many columns.
    """
    for order in options.sort_orders:
        ensure_sortable(schema, order)
    if options.own_order is not None:
        missing = [name for name in options.own_order.columns if name not in schema.names]
        if missing:
            raise Invalid(
                f"{options.own_order.path} looks at column {missing[0]}, which the table does not have",
                remedy="Let `columns` of the class name columns of the table",
                column=missing[0],
            )


def _resumed(handle: TableHandle, timeline: Timeline, options: ClusterOptions) -> ClusterOptions:
    """The options, with a plan by commits going on where the last one ended."""
    strategy = options.strategy
    if not isinstance(strategy, ByCommits):
        return options
    seen = newest_notes(handle, timeline, (CHECKPOINT,), (REPLACE_COMMIT,)).get(CHECKPOINT, "")
    return replace(options, strategy=replace(strategy, after=InstantTime(max(strategy.after, seen))))


def _load_facts(source: RangeSource, slices: Sequence[FileSlice], options: ClusterOptions) -> PlanFacts:
    needs = options.strategy.needs
    if isinstance(options.strategy, ByRanges):
        _ensure_there(needs.columns, source.schema)
    columns = dict.fromkeys(needs.columns)
    if options.groups_by == "OVERLAP":
        columns |= dict.fromkeys(options.sort_columns)
    return PlanFacts(
        source.load(slices, tuple(columns)),
        () if needs.commits_after is None else load_commits(source.handle, source.timeline, needs.commits_after),
        source.handle.env.random(),
    )


def _ensure_there(columns: Iterable[str], schema: pa.Schema) -> None:
    for name in columns:
        if name not in schema.names and not name.startswith("_hoodie_"):
            raise Invalid(
                f"There is no column {name} whose ranges could be compared",
                remedy=f"Mend {OVERLAP_COLUMNS}; the table has {', '.join(without_meta(schema).names)}",
                column=name,
            )


def _with_ranges(
    source: RangeSource, groups: tuple[GroupOfSlices, ...], options: ClusterOptions
) -> tuple[GroupOfSlices, ...]:
    """The groups with the ranges of the sort columns, for people who look at the plan."""
    columns = options.sort_columns
    slices = [part for group in groups for part in group.slices]
    if not columns or len(slices) > _TOLD_SLICES or all(set(columns) <= set(group.ranges) for group in groups):
        return groups
    found = source.load(slices, columns)
    return tuple(
        replace(group, ranges={**joined_ranges([found[part.group_id] for part in group.slices]), **group.ranges})
        for group in groups
    )


def load_fates(handle: TableHandle, plans: PendingPlans, options: ClusterOptions, grouping: Grouping) -> list[str]:
    """What becomes of each group, for people. Reads the footers of all files where row groups may be copied."""
    schema = load_newest_schema(handle.storage, handle.config, plans.timeline)
    own = pa.schema([]) if schema is None else without_meta(schema)
    dropped = handle.config.partition_fields if handle.config.drop_partition_columns else ()
    stored = pa.schema([field for field in own if field.name not in dropped])
    found = []
    for group in grouping.groups:
        order = options.row_order_in(group.partition)
        if order is not None:
            how = f"sorted by {', '.join(sorted_by(order_text(order)))}"
        else:
            why = why_decoded(handle.storage, group.slices, stored, options.rewrite.copy_from_bytes)
            how = "row groups copied" if why is None else f"rows decoded: {why}"
        found.append(f"{len(group.slices)} file groups into {group.outputs}, {how}")
    return found


def load_gains(  # noqa: PLR0917
    handle: TableHandle,
    plans: PendingPlans,
    options: ClusterOptions,
    grouping: Grouping,
    columns: Sequence[str],
    engine: Engine,
) -> tuple[LookUpGain, ...]:
    """What look-ups by these columns (none: the sort columns) gain by the plan. Asks for their ranges in all slices of
    the partitions that were looked at, where these are not too many.

    Raises:
        Invalid: there is no such column.
    """
    schema = load_newest_schema(handle.storage, handle.config, plans.timeline) or pa.schema([])
    asked = tuple(columns) or tuple(name for name in options.sort_columns if len(grouping.slices) <= _TOLD_SLICES)
    for name in columns:
        if name not in schema.names:
            raise Invalid(
                f"There is no column {name} to estimate look-ups by",
                remedy=f"The table has {', '.join(without_meta(schema).names)}",
                column=name,
            )
    ranges = RangeSource(handle, plans.timeline, schema, engine).load(grouping.slices, asked)
    return tuple(look_up_gain(name, grouping.slices, grouping.groups, ranges) for name in asked)


def ensure_clusterable(handle: TableHandle, config: Config) -> None:
    """Checks that file groups of the table may be joined.

    Raises:
        Unsupported: a table whose rows lie in buckets, or base files of another format than Parquet.
    """
    table = handle.config
    if table.base_file_format != "PARQUET":
        raise Unsupported(
            f"Table {table.name} has {table.base_file_format} base files",
            remedy="Only Parquet is written; cluster it with Apache Hudi",
        )
    if parse_write_index(config, table).traits.assigns_groups:
        raise _in_buckets(f"table {table.name}", _RESIZE)


def ensure_no_buckets(
    handle: TableHandle, config: Config, slices: Iterable[FileSlice], partitions: Collection[str]
) -> None:
    """Checks that rows of `partitions` lie in no buckets that neither options nor properties tell of. `slices`: all
    that are known. Lists where rings are stored.

    Raises:
        Unsupported: they do.
    """
    if not partitions or is_index_named(config, handle.config):
        return
    groups = {name: [one.file_id for one in some] for name, some in group_by_partition(slices).items()}
    found = load_bucket_partition(handle.storage, groups, partitions)
    if found is not None:
        raise _in_buckets(
            f"partition {found!r} of table {handle.config.name}",
            f"{_RESIZE}; if its file ids look like buckets by chance, {NAME_THE_INDEX}",
        )


def _in_buckets(where: str, remedy: str) -> Unsupported:
    return Unsupported(
        f"Rows of {where} lie in the buckets of their keys, which clustering would take them out of", remedy=remedy
    )


def _sorted_already(
    handle: TableHandle, timeline: Timeline, slices: Iterable[FileSlice], options: ClusterOptions
) -> frozenset[GroupId]:
    """The file groups whose base file was made by a clustering that sorted in the order asked for. Reads the
    replacecommits on the timeline that made base files of `slices`.
    """
    made: dict[InstantTime, list[GroupId]] = {}
    for part in slices:
        if part.base is not None and options.row_order_in(part.partition) is not None:
            made.setdefault(part.base.name.instant, []).append(part.group_id)
    found: set[GroupId] = set()
    for one in timeline.completed_writes():
        if one.action == REPLACE_COMMIT and one.requested in made:
            notes = load_commit_metadata(handle.storage, handle.profile, one).extra_metadata
            for partition, file_id in made[one.requested]:
                order = options.row_order_in(partition)
                if order is not None and noted_order(notes, partition) == order_text(order):
                    found.add((partition, file_id))
    return frozenset(found)
