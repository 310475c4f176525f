"""Which slices of a plan are ruled out: by the table's buckets, and by statistics and indexes of its metadata table.

1. Everything here may be left out: the rows are the same without it.
2. Skipping asks about single columns by name: not where files have columns by id (`ColumnIds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie.filters import RowFilter
from hoodie.filters.row_filter import Conjunct, all_of
from hoodie.metadata import MetadataTable, Question
from hoodie.query.bucket_pruning import slices_of_named_buckets
from hoodie.query.read_options import ReadOptions
from hoodie.query.read_plan import ReadPlan
from hoodie.records.condition import ANYTHING, AllOf
from hoodie.slices import SliceRead
from hoodie.spec import CUSTOM, TableConfig
from hoodie.storage import Storage
from hoodie.timeline import Timeline


@dataclass(frozen=True, slots=True, eq=False)
class SkippingSources:
    """What tells of a table where rows cannot be: its properties and rings, and its metadata table, if there is one."""

    storage: Storage
    config: TableConfig
    timeline: Timeline
    metadata: MetadataTable | None


def without_ruled_out(plan: ReadPlan, sources: SkippingSources, options: ReadOptions) -> ReadPlan:
    """`plan` without the slices that cannot hold a row of its filter, as far as `sources` can tell.

    Raises:
        Corrupt: the metadata table, or a ring of hash buckets, is damaged.
    """
    row_filter = plan.rows.filter
    slices = [file for file in plan.files if isinstance(file, SliceRead)]
    if row_filter is None or not options.skip_data or len(slices) < len(plan.files):
        return plan
    possible: Sequence[SliceRead] = slices
    if sources.metadata is not None:
        possible = _by_metadata(plan, sources.metadata, row_filter, possible, options)
    if options.prune_buckets:  # last, as rings are read for each partition that is left
        possible = slices_of_named_buckets(plan, sources.storage, sources.config, sources.timeline, possible)
    return replace(plan, files=tuple(possible), skipped_files=plan.skipped_files + len(slices) - len(possible))


def _by_metadata(
    plan: ReadPlan,
    metadata: MetadataTable,
    row_filter: RowFilter,
    slices: Sequence[SliceRead],
    options: ReadOptions,
) -> Sequence[SliceRead]:
    possible = slices
    if row_filter.condition is not ANYTHING:
        question = Question(
            row_filter.condition,
            plan.table_schema,
            of_newest=options.query == "snapshot" and options.as_of is None,
            by_name=plan.rows.ids is None,
            path_columns=plan.path_columns,
        )
        possible = metadata.may_match(slices, question)
    return _by_expressions(plan, metadata, row_filter, possible)


def _by_expressions(
    plan: ReadPlan, metadata: MetadataTable, row_filter: RowFilter, slices: Sequence[SliceRead]
) -> Sequence[SliceRead]:
    """The slices for which conjuncts that are Arrow expressions, and nothing more, may be true."""
    stored = frozenset(plan.table_schema.names) - plan.path_columns
    conjuncts = [
        part for part in row_filter.conjuncts if _says_nothing(part) and part.columns and part.columns <= stored
    ]
    if not conjuncts or plan.rows.ids is not None or len(slices) < 2:
        return slices
    # Loads Arrow's datasets, which conditions in SQL do without.
    from hoodie.query.expression_skipping import slices_that_may_match  # noqa: PLC0415

    is_custom = metadata.store.config.merge_mode == CUSTOM
    decided = [part for part in slices if not (is_custom and part.logs)]
    names = frozenset().union(*(part.columns for part in conjuncts))
    columns = pa.schema([field for field in plan.table_schema if field.name in names])
    possible = slices_that_may_match(metadata, decided, all_of(part.expression for part in conjuncts), columns)
    left_out = {id(part) for part in decided} - {id(part) for part in possible}
    return [part for part in slices if id(part) not in left_out]


def _says_nothing(part: Conjunct) -> bool:
    return isinstance(part.condition, AllOf) and not part.condition.parts
