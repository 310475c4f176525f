"""What the indexes of a table need to know of the files that a write is about to make."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt
from hoodie.metadata import FILES, IndexDefinition, load_index_definitions
from hoodie.metadata_writer.file_facts import IndexNeeds
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.indexes import registry
from hoodie.metadata_writer.known import KnownMetadata
from hoodie.metadata_writer.options import MetadataOptions
from hoodie.metadata_writer.partition_state import maintained_partitions
from hoodie.metadata_writer.update import TableUpdate
from hoodie.state.handle import TableHandle
from hoodie.timeline import Timeline


def write_needs(
    handle: TableHandle,
    timeline: Timeline,
    known: KnownMetadata | None,
    options: MetadataOptions,
    schema: pa.Schema | None,
) -> IndexNeeds:
    """The needs of a write after which the table has the data columns `schema`. Nothing where too little is `known` to
    tell: the files are read then. No call.
    """
    if known is None or known.columns is None:
        return IndexNeeds()
    return _needs(handle, timeline, known.definitions, options, (known.columns, schema))


def rewrite_needs(handle: TableHandle, timeline: Timeline, options: MetadataOptions, schema: pa.Schema) -> IndexNeeds:
    """The needs of a rewrite of a table with the data columns `schema`, which it leaves as they are. Nothing where the
    definitions of indexes are damaged: the files are read then. One read; none for a table without indexes.
    """
    if set(maintained_partitions(handle)) <= {FILES}:
        return IndexNeeds()
    try:
        definitions = load_index_definitions(handle.storage, handle.config)
    except Corrupt:
        return IndexNeeds()
    return _needs(handle, timeline, definitions, options, (schema, schema))


def _needs(
    handle: TableHandle,
    timeline: Timeline,
    definitions: Mapping[str, IndexDefinition],
    options: MetadataOptions,
    columns: tuple[pa.Schema, pa.Schema | None],
) -> IndexNeeds:
    """The needs of all indexes; `columns` are those of the table before and after."""
    before, after = columns
    context = IndexContext(handle, timeline, LocalEngine(1), options, definitions, after)
    context.remember_columns(before)
    needs = IndexNeeds()
    kept = maintained_partitions(handle)
    for kind in registry.KINDS:
        if any(map(kind.owns, kept)):
            needs = needs.joined(kind.file_needs(context, TableUpdate("", "", schema=after)))
    return needs
