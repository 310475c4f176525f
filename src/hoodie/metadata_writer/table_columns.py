"""The data columns of a table, as those who index its files need to know them.

Read once per update from the newest commit that says them, and only when somebody asks for what the write does not
know already.
"""

from __future__ import annotations

import pyarrow as pa

from hoodie.errors import Unsupported
from hoodie.metadata_writer.metadata_index import IndexContext
from hoodie.metadata_writer.update import TableUpdate
from hoodie.records import without_meta
from hoodie.state.table_schema import load_newest_schema

_MEMO = "columns before"


def columns_before(context: IndexContext) -> pa.Schema | None:
    """The table's columns before the action; None where nobody ever said them, and where they go by ids, not names."""
    if context.known is not None and context.known.columns is not None:
        return context.known.columns
    if _MEMO not in context.memo:
        handle = context.handle
        try:
            found = load_newest_schema(handle.storage, handle.config, context.timeline)
        except Unsupported:
            found = None
        context.memo[_MEMO] = found
    known: pa.Schema | None = context.memo[_MEMO]
    return known


def remember_columns(context: IndexContext, before: pa.Schema) -> None:
    """Tells the context the table's columns before the action, which somebody has read already."""
    context.memo[_MEMO] = before


def columns_after(context: IndexContext, update: TableUpdate) -> pa.Schema | None:
    """The table's columns after the action."""
    return without_meta(update.schema) if update.schema is not None else columns_before(context)
