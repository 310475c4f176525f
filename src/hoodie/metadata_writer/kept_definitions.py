"""The definitions a table's indexes must have, when they are made and after every action.

1. Column statistics say which columns they have: when the index is made, and again when the schema has grown.
2. A record index says whether it is cut by partitions. Statistics of partitions and bloom filters say nothing.
3. Indexes with names are defined by who makes them.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from hoodie.metadata import COLUMN_STATS, RECORD_INDEX, IndexDefinition
from hoodie.metadata_writer.index_state import kept_definition
from hoodie.metadata_writer.indexed_columns import column_stats_definition
from hoodie.metadata_writer.indexes.column_stats import columns_now, columns_of_update
from hoodie.metadata_writer.indexes.record_index import is_partitioned, record_index_definition
from hoodie.metadata_writer.metadata_index import IndexContext
from hoodie.metadata_writer.table_columns import columns_before
from hoodie.metadata_writer.update import TableUpdate


def definitions_for(context: IndexContext, partitions: Collection[str]) -> dict[str, IndexDefinition]:
    """All definitions of a table that is about to get these partitions."""
    found = dict(context.definitions)
    if RECORD_INDEX in partitions:
        found[RECORD_INDEX] = record_index_definition(partitioned=is_partitioned(context))
    if COLUMN_STATS in partitions:
        schema = columns_before(context)
        columns = () if schema is None else columns_now(context, schema)
        found[COLUMN_STATS] = column_stats_definition(columns, context.handle.profile)
    return found


def definitions_after(context: IndexContext, update: TableUpdate) -> Mapping[str, IndexDefinition]:
    """All definitions of a table after an action: those it has, unless its columns have changed."""
    known = kept_definition(context, COLUMN_STATS)
    if known is None or update.schema is None:
        return context.definitions
    columns = columns_of_update(context, update)
    if columns == known.source_fields:
        return context.definitions
    return {**context.definitions, COLUMN_STATS: replace(known, source_fields=columns)}
