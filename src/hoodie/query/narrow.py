"""A plan with less in it: fewer columns, one more condition, and so perhaps fewer files.

Who runs a plan (Spark's optimizer, for one) may learn only later what is really needed. The state of the table, its
slices and how they are merged stay as they were planned.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa

from hoodie.filters import RowFilter
from hoodie.filters.row_filter import joined
from hoodie.query.partition_choice import matching_partitions
from hoodie.query.read_plan import ReadPlan
from hoodie.query.result_schema import projected
from hoodie.records import COMMIT_TIME_FIELD
from hoodie.slices import FileRead


def narrowed(plan: ReadPlan, columns: Collection[str], row_filter: RowFilter | None = None) -> ReadPlan:
    """`plan` for `columns` of its result, in this order, and only for rows that satisfy `row_filter`, too.

    Files whose partition values rule the condition out are left out. No storage call.

    Raises:
        Invalid: the result has no such column.
    """
    filters = [condition for condition in (plan.rows.filter, row_filter) if condition is not None]
    both = joined(filters)
    result = projected(plan.schema, columns)
    looked_at = both.columns if both is not None else frozenset()
    if plan.rows.commit_times is not None:
        looked_at |= {COMMIT_TIME_FIELD}
    extra = [field for field in plan.table_schema if field.name in looked_at and field.name not in result.names]
    rows = replace(plan.rows, schema=result, needed=pa.schema([*result, *extra]), filter=both)
    files = plan.files if row_filter is None else _matching(plan, row_filter)
    return replace(plan, rows=rows, files=files, skipped_files=plan.skipped_files + len(plan.files) - len(files))


def _matching(plan: ReadPlan, row_filter: RowFilter) -> tuple[FileRead, ...]:
    """The files whose partition values do not rule the filter out."""
    values = {file.partition: dict(file.partition_values) for file in plan.files}
    types = pa.schema([field for field in plan.table_schema if field.name in plan.path_columns])
    partitions = matching_partitions(values, types, row_filter)
    return tuple(file for file in plan.files if file.partition in partitions)
