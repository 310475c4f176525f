"""The groups of file slices that are worth rewriting now, from what is on storage to a plan that is not stored yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.errors import Unsupported
from hoodie.fileview import open_file_view
from hoodie.records import without_meta
from hoodie.services.clustering.options import ClusterOptions
from hoodie.services.clustering.partitions import chosen_partitions
from hoodie.services.clustering.plan import GroupOfSlices, clustering_plan, plan_groups
from hoodie.services.clustering.positions import ensure_sortable
from hoodie.services.clustering.result import sorted_by
from hoodie.services.clustering.rewrite import ORDER, order_text
from hoodie.services.clustering.stitch import why_decoded
from hoodie.slices.bootstrap import load_slice_sources
from hoodie.spec import REPLACE_COMMIT, ClusteringPlan, InstantTime, SortOrder
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.state.table_schema import load_newest_schema
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.view import FileSlice, GroupId
from hoodie.write import parse_write_options


@dataclass(frozen=True, slots=True)
class Grouping:
    """A plan and its groups; None and nothing where no files are worth it."""

    plan: ClusteringPlan | None
    groups: tuple[GroupOfSlices, ...]


def load_grouping(handle: TableHandle, plans: PendingPlans, options: ClusterOptions, engine: Engine) -> Grouping:
    """The groups to rewrite. Lists the table's files.

    Raises:
        Invalid, Unsupported: rows cannot be sorted by the columns that are asked for.
    """
    view = open_file_view(handle.storage, handle.config, plans.timeline, engine=engine, plans=plans).load()
    now = handle.env.now()
    hour = (now if handle.config.timezone == "UTC" else now.astimezone()).hour
    partitions = set(chosen_partitions(options.choice, view.partitions, hour))
    taken = plans.rewritten() | plans.compactions().keys()
    slices = [part for part in view.slices_at() if part.partition in partitions and part.group_id not in taken]
    if not options.takes_logs:
        slices = [part for part in slices if part.base is not None and not part.logs]
    done = _sorted_already(handle, plans.timeline, slices, options.order)
    groups, missing = plan_groups(slices, options, done)
    if not groups:
        return Grouping(None, ())
    if options.order is not None:
        schema = load_newest_schema(handle.storage, handle.config, plans.timeline)
        ensure_sortable(pa.schema([]) if schema is None else schema, options.order)
    sources = load_slice_sources(handle.storage, handle.config, slices)
    paths = {group: source.storage.absolute(source.path) for group, source in sources.items()}
    return Grouping(clustering_plan(groups, missing, options, handle.storage.absolute, paths), groups)


def load_fates(handle: TableHandle, plans: PendingPlans, options: ClusterOptions, grouping: Grouping) -> list[str]:
    """What becomes of each group, for people. Reads the footers of all files where row groups may be copied."""
    if options.order is not None:
        by = f"sorted by {', '.join(sorted_by(options.order))}"
        return [f"{len(group.slices)} file groups into {group.outputs}, {by}" for group in grouping.groups]
    schema = load_newest_schema(handle.storage, handle.config, plans.timeline)
    own = pa.schema([]) if schema is None else without_meta(schema)
    dropped = handle.config.partition_fields if handle.config.drop_partition_columns else ()
    stored = pa.schema([field for field in own if field.name not in dropped])
    found = []
    for group in grouping.groups:
        why = why_decoded(handle.storage, group.slices, stored, options.rewrite.copy_from_bytes)
        how = "row groups copied" if why is None else f"rows decoded: {why}"
        found.append(f"{len(group.slices)} file groups into {group.outputs}, {how}")
    return found


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
    index = parse_write_options("upsert", config, table, handle.profile).index
    if index.traits.assigns_groups:
        raise Unsupported(
            f"Rows of table {table.name} lie in the buckets of their keys, which clustering would take them out of",
            remedy="Resize its buckets instead (hoodie resize)",
        )


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
            if said == order_text(order):
                found.update(made[one.requested])
    return frozenset(found)
