"""What the metadata table knows: files, statistics of columns, bloom filters, where keys are."""

from hoodie.metadata.column_stats import FileOf
from hoodie.metadata.index_definitions import IndexDefinition, load_index_definitions, parse_index_definitions
from hoodie.metadata.metadata_table import MetadataTable, open_metadata_table
from hoodie.metadata.partitions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    group_of_keys,
)
from hoodie.metadata.prune import Question, slices_that_may_match
from hoodie.metadata.ranges import Ranges
from hoodie.metadata.store import MetadataState
from hoodie.metadata.validate import validate_metadata_table

__all__ = [
    "BLOOM_FILTERS",
    "COLUMN_STATS",
    "FILES",
    "PARTITION_STATS",
    "RECORD_INDEX",
    "FileOf",
    "IndexDefinition",
    "MetadataState",
    "MetadataTable",
    "Question",
    "Ranges",
    "group_of_keys",
    "load_index_definitions",
    "open_metadata_table",
    "parse_index_definitions",
    "slices_that_may_match",
    "validate_metadata_table",
]
