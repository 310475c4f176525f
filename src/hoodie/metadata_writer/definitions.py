"""The definitions of a table's indexes, `.hoodie/.index_defs/index.json`: which they must be, and writing them.

1. The file is replaced as a whole; members that nobody here knows are not kept, Hudi does not have any.
2. It goes before a partition is announced in the table's properties and after it is taken back: a definition without
   its partition means at worst that Hudi makes the index anew, a partition without its definition is damage.
3. Where the file is damaged, indexes with names are lost with it, as nothing else says what they index.

Grammar and example: docs/format/index-definitions.md.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import replace

from hoodie.errors import Corrupt
from hoodie.metadata import IndexDefinition, load_index_definitions
from hoodie.metadata.index_definitions import DEFAULT_PATH
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.indexes import registry
from hoodie.metadata_writer.indexes.registry import is_named, kind_of
from hoodie.metadata_writer.partition_state import maintained_partitions, withdraw
from hoodie.metadata_writer.update import TableUpdate
from hoodie.spec import keys
from hoodie.state.handle import TableHandle
from hoodie.timeline import store_table_config

log = logging.getLogger(__name__)


def definitions_for(context: IndexContext, partitions: Collection[str]) -> dict[str, IndexDefinition]:
    """All definitions of a table that is about to get these partitions."""
    made = {kind.name: kind.definition(context) for kind in registry.KINDS if kind.name in partitions}
    return {**context.definitions, **{name: found for name, found in made.items() if found is not None}}


def definitions_after(context: IndexContext, update: TableUpdate) -> Mapping[str, IndexDefinition]:
    """All definitions of a table after an action; the same mapping where none has changed."""
    after = {
        name: kind_of(name).definition_after(context, update, known)
        for name in context.definitions
        if (known := context.definition_of(name)) is not None
    }
    changed = any(context.definitions[name] != definition for name, definition in after.items())
    return {**context.definitions, **after} if changed else context.definitions


def encode_index_definitions(definitions: Mapping[str, IndexDefinition]) -> bytes:
    """The file's bytes, definitions in the order given."""
    document = {
        name: {
            "indexName": definition.name,
            "indexType": definition.kind,
            "indexFunction": definition.function,
            "sourceFields": list(definition.source_fields),
            "indexOptions": dict(definition.options),
            "version": definition.version,
        }
        for name, definition in definitions.items()
    }
    return json.dumps({"indexDefinitions": document}, indent=2, separators=(",", " : ")).encode()


def store_index_definitions(handle: TableHandle, definitions: Mapping[str, IndexDefinition]) -> TableHandle:
    """The handle of a table that has exactly these definitions."""
    handle.storage.put(DEFAULT_PATH, encode_index_definitions(definitions))
    if handle.config.raw.get(keys.INDEX_DEFS_PATH):
        return handle
    changed = handle.config.with_changes({keys.INDEX_DEFS_PATH: DEFAULT_PATH})
    return replace(handle, config=store_table_config(handle.storage, handle.config, changed, handle.env))


def with_readable_definitions(handle: TableHandle) -> TableHandle:
    """The handle of the table after a damaged file of definitions was replaced, and the indexes that only it knew were
    dropped, with a warning.

    Raises:
        Corrupt: the properties name a file outside the table.
    """
    try:
        load_index_definitions(handle.storage, handle.config)
    except Corrupt as damage:
        if damage.facts.get("path") != DEFAULT_PATH:
            raise
        kept = maintained_partitions(handle)
        lost = [name for name in kept if is_named(name)]
        log.warning(
            "table %s loses these indexes, make them again: %s (%s)",
            handle.config.name,
            ", ".join(lost) or "none",
            damage.cause,
        )
        recovered = {kind.name: kind.recovered(handle) for kind in registry.KINDS if kind.name in kept}
        handle = withdraw(handle, lost)
        return store_index_definitions(handle, {name: found for name, found in recovered.items() if found is not None})
    return handle
