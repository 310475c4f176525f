"""What the indexes of a table need to know of the files that a write is about to make."""

from __future__ import annotations

import pyarrow as pa

from hoodie.engine import LocalEngine
from hoodie.metadata_writer.file_facts import IndexNeeds
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.indexes import registry
from hoodie.metadata_writer.known import KnownMetadata
from hoodie.metadata_writer.options import MetadataOptions
from hoodie.metadata_writer.partition_state import maintained_partitions
from hoodie.metadata_writer.update import TableUpdate
from hoodie.state.handle import TableHandle
from hoodie.timeline import Timeline


def index_needs(
    handle: TableHandle,
    timeline: Timeline,
    known: KnownMetadata | None,
    options: MetadataOptions,
    schema: pa.Schema | None,
) -> IndexNeeds:
    """The needs of a write after which the table has the data columns `schema`. Nothing where too little is `known` to
    tell: the files are read then. No call.
    """
    needs = IndexNeeds()
    if known is None or known.columns is None:
        return needs
    context = IndexContext(handle, timeline, LocalEngine(1), options, known.definitions, schema, known=known)
    kept = maintained_partitions(handle)
    for kind in registry.KINDS:
        if any(map(kind.owns, kept)):
            needs = needs.joined(kind.file_needs(context, TableUpdate("", "", schema=schema)))
    return needs
