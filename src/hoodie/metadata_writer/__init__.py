"""Keeps the metadata table true: made, updated by every action, compacted, taken back."""

from hoodie.metadata_writer.build_index import IndexBuildResult, build_index
from hoodie.metadata_writer.definitions import store_index_definitions
from hoodie.metadata_writer.drop_index import drop_index
from hoodie.metadata_writer.file_facts import FileFacts
from hoodie.metadata_writer.index_contents import index_troubles
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.index_needs import rewrite_needs, write_needs
from hoodie.metadata_writer.indexes.bloom_filters import bloom_filters_index
from hoodie.metadata_writer.indexes.column_stats import column_stats_index
from hoodie.metadata_writer.indexes.expression_index import expression_index
from hoodie.metadata_writer.indexes.partition_stats import partition_stats_index
from hoodie.metadata_writer.indexes.record_index import record_index
from hoodie.metadata_writer.indexes.registry import describe_index
from hoodie.metadata_writer.indexes.secondary_index import secondary_index
from hoodie.metadata_writer.known import KnownMetadata
from hoodie.metadata_writer.look import look_at_metadata
from hoodie.metadata_writer.metadata_handle import open_metadata_handle
from hoodie.metadata_writer.metadata_index import (
    IndexRequest,
    MetadataIndex,
    MetadataIndexKind,
    MetadataRecords,
    Records,
    RecordTask,
)
from hoodie.metadata_writer.options import ENABLE as METADATA_ENABLE
from hoodie.metadata_writer.options import MetadataOptions
from hoodie.metadata_writer.participant import MetadataParticipant
from hoodie.metadata_writer.record import (
    compact_metadata,
    drop_partitions,
    ensure_metadata,
    is_recorded,
    rebuild_partitions,
    record_update,
    remake_withdrawn,
    restore_metadata,
    told_before_the_end,
    undo_update,
)
from hoodie.metadata_writer.skeletons import skeleton_sources
from hoodie.metadata_writer.slice_rows import SliceRows, slice_rows
from hoodie.metadata_writer.update import TableUpdate

__all__ = [
    "METADATA_ENABLE",
    "FileFacts",
    "IndexBuildResult",
    "IndexContext",
    "IndexRequest",
    "KnownMetadata",
    "MetadataIndex",
    "MetadataIndexKind",
    "MetadataOptions",
    "MetadataParticipant",
    "MetadataRecords",
    "RecordTask",
    "Records",
    "SliceRows",
    "TableUpdate",
    "bloom_filters_index",
    "build_index",
    "column_stats_index",
    "compact_metadata",
    "describe_index",
    "drop_index",
    "drop_partitions",
    "ensure_metadata",
    "expression_index",
    "index_troubles",
    "is_recorded",
    "look_at_metadata",
    "open_metadata_handle",
    "partition_stats_index",
    "rebuild_partitions",
    "record_index",
    "record_update",
    "remake_withdrawn",
    "restore_metadata",
    "rewrite_needs",
    "secondary_index",
    "skeleton_sources",
    "slice_rows",
    "store_index_definitions",
    "told_before_the_end",
    "undo_update",
    "write_needs",
]
