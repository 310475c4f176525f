"""Writing the definitions of indexes: `.hoodie/.index_defs/index.json`, and the property that names the file.

1. The file is replaced as a whole; members that nobody here knows are not kept, Hudi does not have any.
2. It goes before a partition is announced in the table's properties and after it is taken back: a definition without
   its partition means at worst that Hudi makes the index anew, a partition without its definition is damage.

Grammar and example: docs/format/index-definitions.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from hoodie.metadata import IndexDefinition
from hoodie.metadata.index_definitions import DEFAULT_PATH
from hoodie.spec import keys
from hoodie.state.handle import TableHandle
from hoodie.timeline import store_table_config


def encode_index_definitions(definitions: Mapping[str, IndexDefinition]) -> bytes:
    """The file's bytes, definitions in the order given."""
    document = {
        name: {
            "indexName": one.name,
            "indexType": one.kind,
            "indexFunction": one.function,
            "sourceFields": list(one.source_fields),
            "indexOptions": dict(one.options),
            "version": one.version,
        }
        for name, one in definitions.items()
    }
    return json.dumps({"indexDefinitions": document}, indent=2, separators=(",", " : ")).encode()


def store_index_definitions(handle: TableHandle, definitions: Mapping[str, IndexDefinition]) -> TableHandle:
    """The handle of a table that has exactly these definitions."""
    handle.storage.put(DEFAULT_PATH, encode_index_definitions(definitions))
    if handle.config.raw.get(keys.INDEX_DEFS_PATH):
        return handle
    changed = handle.config.with_changes({keys.INDEX_DEFS_PATH: DEFAULT_PATH})
    return replace(handle, config=store_table_config(handle.storage, handle.config, changed, handle.env))
