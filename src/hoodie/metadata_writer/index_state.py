"""What is said about the indexes a table has now."""

from __future__ import annotations

from hoodie.metadata import IndexDefinition
from hoodie.metadata_writer.metadata_index import IndexContext


def kept_definition(context: IndexContext, partition: str) -> IndexDefinition | None:
    """The definition of an index that is ready, being built or made anew; a dropped one has none."""
    config = context.handle.config
    is_kept = partition in (*config.metadata_partitions, *config.metadata_partitions_inflight, *context.rebuilt)
    return context.definitions.get(partition) if is_kept else None
