"""Which partitions of the metadata table a table keeps, and the source of each.

1. A partition's source is chosen by its name; indexes of their own names also need their definition.
2. A partition is made when an option asks for it, and dropped when an option, set by the caller, says no (unless
   `hoodie.metadata.auto.delete.partitions` forbids that). An option that nobody gave drops nothing.
3. Indexes with names are asked for and dropped by options as `asked_indexes` says. With `hoodie.metadata.index.async` a
   write makes none of all these but `files`: that is left to `build_index`, beside writers.
4. Without a word a table of version 8 and later has column statistics, and with partitions those of partitions, as
   Hudi 1.x makes them; one of version 6 has files alone, as Hudi 0.15 does.
5. Statistics of partitions need those of columns, secondary indexes need the record index: they go together.
"""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.errors import Invalid, Unsupported
from hoodie.metadata import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX
from hoodie.metadata.partitions import EXPRESSION_PREFIX, SECONDARY_PREFIX
from hoodie.metadata_writer.index_functions import parse_function
from hoodie.metadata_writer.index_state import kept_definition
from hoodie.metadata_writer.indexed_columns import COLUMN_LIST, indexed_columns
from hoodie.metadata_writer.indexes.bloom_filters import BloomFiltersIndex
from hoodie.metadata_writer.indexes.column_stats import ColumnStatsIndex
from hoodie.metadata_writer.indexes.expression_index import ExpressionIndex, bloom_options
from hoodie.metadata_writer.indexes.files import FilesIndex
from hoodie.metadata_writer.indexes.partition_stats import PartitionStatsIndex
from hoodie.metadata_writer.indexes.record_index import (
    GLOBAL_ENABLE,
    PARTITIONED_ENABLE,
    RecordLevelIndex,
    is_partitioned,
)
from hoodie.metadata_writer.indexes.secondary_index import SecondaryIndex
from hoodie.metadata_writer.metadata_index import IndexContext, MetadataIndex
from hoodie.metadata_writer.partition_state import kept_partitions
from hoodie.metadata_writer.requested_indexes import dropped_by_name
from hoodie.metadata_writer.table_columns import columns_before
from hoodie.state.handle import TableHandle

COLUMN_STATS_ENABLE = "hoodie.metadata.index.column.stats.enable"
PARTITION_STATS_ENABLE = "hoodie.metadata.index.partition.stats.enable"
BLOOM_ENABLE = "hoodie.metadata.index.bloom.filter.enable"
AUTO_DELETE = "hoodie.metadata.auto.delete.partitions"
ASYNC = "hoodie.metadata.index.async"


def index_of(partition: str, context: IndexContext) -> MetadataIndex | None:
    """The source of a partition; None for one that nobody here can keep."""
    match partition:
        case "files":
            return FilesIndex()
        case "column_stats":
            return ColumnStatsIndex()
        case "partition_stats":
            return PartitionStatsIndex()
        case "bloom_filters":
            return BloomFiltersIndex()
        case "record_index":
            return RecordLevelIndex()
    return _named_source(partition, context)


def wanted_partitions(context: IndexContext) -> tuple[str, ...]:
    """The partitions that a write with these options makes where they are not there, `files` first. Those of indexes
    with names are said by `asked_indexes`.

    Raises:
        Invalid, Unsupported: an index that is asked for cannot be kept for this table.
    """
    config, handle = context.options.config, context.handle
    if config.flag(ASYNC):
        return (FILES,)
    rules, wanted = handle.profile.indexes, [FILES]
    if config.flag(COLUMN_STATS_ENABLE) if config.is_set(COLUMN_STATS_ENABLE) else rules.column_stats_by_default:
        wanted.append(COLUMN_STATS)
        if rules.can_have(PARTITION_STATS) and handle.config.partition_fields and config.flag(PARTITION_STATS_ENABLE):
            wanted.append(PARTITION_STATS)
    if config.flag(BLOOM_ENABLE):
        wanted.append(BLOOM_FILTERS)
    if config.flag(GLOBAL_ENABLE) or config.flag(PARTITIONED_ENABLE):
        wanted.append(RECORD_INDEX)
    dropped = dropped_by_name(config, wanted)
    if RECORD_INDEX in wanted and RECORD_INDEX not in dropped:
        ensure_record_index(handle, partitioned=is_partitioned(context))
    return tuple(name for name in wanted if name not in dropped)


def unwanted_partitions(context: IndexContext) -> tuple[str, ...]:
    """The partitions there are that options set by the caller say no to, or to drop, and those of whose columns they
    name others: such an index is made anew.
    """
    config, handle = context.options.config, context.handle
    record_index = PARTITIONED_ENABLE if is_partitioned(context) else GLOBAL_ENABLE
    switches = {
        COLUMN_STATS: COLUMN_STATS_ENABLE,
        PARTITION_STATS: PARTITION_STATS_ENABLE,
        BLOOM_FILTERS: BLOOM_ENABLE,
        RECORD_INDEX: record_index,
    }
    kept = kept_partitions(handle)
    drops = config.flag(AUTO_DELETE)
    found = {name for name, key in switches.items() if drops and config.is_set(key) and not config.flag(key)}
    if not config.flag(ASYNC) and _has_other_columns(context):
        found.add(COLUMN_STATS)
    if COLUMN_STATS in found:
        found.add(PARTITION_STATS)
    if RECORD_INDEX in found:
        found |= {name for name in kept if name.startswith(SECONDARY_PREFIX)}
    return tuple(sorted((found & set(kept)) | dropped_by_name(config, kept)))


def ordered(partitions: Iterable[str]) -> tuple[str, ...]:
    """Partitions in the order they are made and written: `files` first, then by name."""
    return tuple(sorted(set(partitions), key=lambda name: (name != FILES, name)))


def _named_source(partition: str, context: IndexContext) -> MetadataIndex | None:
    """The source of a secondary or expression index, if its definition is one that is understood here."""
    definition = context.definitions.get(partition)
    if definition is None or len(definition.source_fields) != 1:
        return None
    if partition.startswith(SECONDARY_PREFIX):
        return SecondaryIndex(definition)
    if partition.startswith(EXPRESSION_PREFIX) and definition.kind in (COLUMN_STATS, BLOOM_FILTERS):
        try:
            parse_function(definition.function, definition.options)
            bloom_options(context.options.config, definition.options)
        except (Invalid, Unsupported):
            return None
        return ExpressionIndex(definition)
    return None


def _has_other_columns(context: IndexContext) -> bool:
    """Whether the options name other columns for column statistics than those they have."""
    definition, config = kept_definition(context, COLUMN_STATS), context.options.config
    schema = columns_before(context) if definition is not None and config.is_set(COLUMN_LIST) else None
    if definition is None or schema is None or not definition.source_fields:
        return False
    handle = context.handle
    return set(indexed_columns(schema, handle.config, handle.profile, config)) != set(definition.source_fields)


def ensure_record_index(handle: TableHandle, *, partitioned: bool) -> None:
    """Checks that the table can have a record index.

    Raises:
        Invalid, Unsupported: it cannot.
    """
    if not handle.config.populate_meta_fields:
        raise Invalid(
            "A record index needs rows that carry their keys, and hoodie.populate.meta.fields=false",
            remedy=f"Set {GLOBAL_ENABLE}=false",
        )
    if partitioned and not handle.profile.indexes.has_partitioned_record_index:
        raise Unsupported(
            "Tables of version 6 have record indexes for the whole table only",
            remedy=f"Set {GLOBAL_ENABLE}=true instead of {PARTITIONED_ENABLE}, or upgrade the table",
        )
