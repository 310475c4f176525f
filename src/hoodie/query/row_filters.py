"""The filter that the options of a read ask for, understood for the columns it is about."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.filters import RowFilter, filter_of
from hoodie.filters.row_filter import joined
from hoodie.query.read_options import ReadOptions


def row_filter_of(options: ReadOptions, schema: pa.Schema) -> RowFilter | None:
    """The filter, and in incremental queries the conditions, as one; None where there is none.

    Raises:
        Invalid: one does not fit the columns of `schema`.
    """
    filters = [] if options.filter is None else [options.filter]
    if options.query == "incremental":
        filters += options.conditions
    return joined([_understood(condition, schema, options.timezone) for condition in filters])


def _understood(given: Any, schema: pa.Schema, timezone: str) -> RowFilter:
    if isinstance(given, RowFilter):
        return given
    if isinstance(given, str):
        # Loads sqlglot, a quarter of the imports of a worker or a command, which mostly have no SQL to parse.
        from hoodie.filters.sql import parse_row_filter  # noqa: PLC0415

        return parse_row_filter(given, schema, timezone=timezone)
    if isinstance(given, pc.Expression):
        return filter_of(given, schema)
    raise Invalid(
        f"A filter is SQL text or an Arrow expression, not {type(given).__name__}",
        remedy="Write filter=\"city = 'rio'\", or filter=pyarrow.compute.field('city') == 'rio'",
    )
