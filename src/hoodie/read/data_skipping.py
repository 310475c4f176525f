"""What reading takes from a metadata table: the list of files, and which slices a filter rules out.

1. Everything here may be left out: the rows are the same without it. A metadata table that should be there and is
   damaged is an error all the same, since what it lists may be wrong.
2. Slices that were listed by it get the real sizes of their log files, and only those that are left to read. In version
   6 it lists what dead writers left behind or in a log file with its size as well, so what was committed is asked of
   the commits.
3. Skipping asks about single columns by name: not where files have columns by id (`ColumnIds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from hoodie.engine import Engine
from hoodie.metadata import MetadataTable, Question, open_metadata_table, with_log_sizes
from hoodie.read.read_facts import load_read_facts
from hoodie.read.read_options import ReadOptions
from hoodie.read.read_plan import ReadPlan, plan_read
from hoodie.read.row_filter import Conjunct, RowFilter, all_of
from hoodie.read.slice_read import SliceRead, with_log_files
from hoodie.read.whole_logs import logs_of, with_whole_logs
from hoodie.records.condition import ANYTHING, AllOf
from hoodie.spec import CUSTOM, TableConfig
from hoodie.storage import Storage
from hoodie.timeline import Timeline
from hoodie.view import View, load_view


def load_plan_with_metadata(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    options: ReadOptions,
    *,
    view: View | None = None,
    engine: Engine | None = None,
) -> ReadPlan:
    """The plan of a query, with the help of the table's metadata table; `view` is used when there is one.

    Raises:
        Corrupt: the metadata table should be there and is not, or is damaged.
        Invalid, Unsupported: see `plan_read`.
    """
    metadata = open_metadata_table(storage, config, timeline)
    is_listed = metadata is not None and view is None
    if view is None:
        listing = None if metadata is None else metadata.files()
        view = load_view(storage, config, timeline, listing=listing, engine=engine)
    plan = plan_read(view, config, load_read_facts(storage, config, view, options), options)
    if metadata is not None:
        plan = without_ruled_out(plan, metadata, options)
    if is_listed and timeline.profile.slicing == "completion":
        return _with_committed_logs(plan)
    if is_listed:
        plan = with_real_log_sizes(plan, storage)
    return replace(plan, files=with_whole_logs(storage, timeline, plan.files, engine))


def without_ruled_out(plan: ReadPlan, metadata: MetadataTable, options: ReadOptions) -> ReadPlan:
    """`plan` without the slices that cannot hold a row of its filter, as far as the metadata table can tell.

    Raises:
        Corrupt: the metadata table is damaged.
    """
    row_filter = plan.rows.filter
    slices = [file for file in plan.files if isinstance(file, SliceRead)]
    if row_filter is None or not options.skip_data or len(slices) < len(plan.files):
        return plan
    kept: Sequence[SliceRead] = slices
    if row_filter.condition is not ANYTHING:
        question = Question(
            row_filter.condition,
            plan.table_schema,
            of_newest=options.query == "snapshot" and options.as_of is None,
            by_name=plan.rows.ids is None,
            path_columns=plan.path_columns,
        )
        kept = metadata.may_match(slices, question)
    kept = _by_expressions(plan, metadata, row_filter, kept)
    return replace(plan, files=tuple(kept), skipped_files=plan.skipped_files + len(slices) - len(kept))


def _by_expressions(
    plan: ReadPlan, metadata: MetadataTable, row_filter: RowFilter, slices: Sequence[SliceRead]
) -> Sequence[SliceRead]:
    """The slices for which conjuncts that are Arrow expressions, and nothing more, may be true."""
    stored = frozenset(plan.table_schema.names) - plan.path_columns
    asked = [part for part in row_filter.conjuncts if _says_nothing(part) and part.columns and part.columns <= stored]
    if not asked or plan.rows.ids is not None or len(slices) < 2:
        return slices
    # Loads Arrow's datasets, which conditions in SQL do without.
    from hoodie.read.expression_skipping import slices_that_may_match  # noqa: PLC0415

    is_custom = metadata.store.config.merge_mode == CUSTOM
    decided = [part for part in slices if not (is_custom and part.logs)]
    names = frozenset().union(*(part.columns for part in asked))
    columns = pa.schema([field for field in plan.table_schema if field.name in names])
    kept = slices_that_may_match(metadata, decided, all_of(part.expression for part in asked), columns)
    left_out = {id(part) for part in decided} - {id(part) for part in kept}
    return [part for part in slices if id(part) not in left_out]


def _says_nothing(part: Conjunct) -> bool:
    return isinstance(part.condition, AllOf) and not part.condition.parts


def _with_committed_logs(plan: ReadPlan) -> ReadPlan:
    """`plan` with all bytes of its log files committed, as they are listed: where one write makes a log file and nobody
    appends to it, the size that write said is the file's. One that is shorter, or gone, is found when it is read.
    """
    sized = {path: replace(one, committed_bytes=one.size_bytes) for path, one in logs_of(plan.files).items()}
    return replace(plan, files=tuple(with_log_files(file, sized) for file in plan.files)) if sized else plan


def with_real_log_sizes(plan: ReadPlan, storage: Storage) -> ReadPlan:
    """`plan` with the log files of its slices as large as they are on storage, and what the metadata table lists as
    what was committed: one call for each of them.

    Raises:
        Corrupt: one of them is gone, or shorter than the metadata table says.
    """
    logs = logs_of(plan.files)
    if not logs:
        return plan
    sized = {
        path: replace(one, committed_bytes=logs[path].size_bytes)
        for path, one in with_log_sizes(storage, list(logs.values())).items()
    }
    return replace(plan, files=tuple(with_log_files(file, sized) for file in plan.files))
