"""A secondary index: which rows have a value in some column, by their record keys.

1. A key of the index is value and record key in one text; there is nothing else in its records.
2. Rows of one value lie side by side, so a value is a prefix. In indexes of version V2 they lie in one file group; in
   older ones every group may have some.
3. Values are texts. Which text a number has is not asked here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.metadata.index_definitions import IndexDefinition
from hoodie.metadata.keys import parse_secondary_key, secondary_prefix
from hoodie.metadata.merge import merge_newest
from hoodie.metadata.partitions import group_of_keys
from hoodie.metadata.records import KEY, Wanted
from hoodie.metadata.store import MetadataStore
from hoodie.spec import keys

MATCHES: Final = pa.schema([pa.field("value", pa.string()), pa.field("record_key", pa.string(), nullable=False)])
"""Columns of what `secondary_matches` gives."""


def secondary_matches(store: MetadataStore, index: IndexDefinition, values: Collection[str | None]) -> pa.Table:
    """Record keys of the rows that have one of the values (None is NULL): rows of `MATCHES`, in no particular order.

    Raises:
        Corrupt: the index is damaged. Invalid: it is not a secondary index, or not ready.
    """
    if index.kind != "secondary_index":
        raise Invalid(f"{index.name} is an index of kind {index.kind}, not a secondary index")
    prefixes = sorted({secondary_prefix(value) for value in values})
    groups = store.groups(index.name)
    everywhere = Wanted(prefixes=tuple(prefixes))
    wanted: dict[str, Wanted] = {group.file_id: everywhere for group in groups}
    if index.version == "V2":
        numbers = group_of_keys(pa.array(prefixes, pa.string()), len(groups)).tolist()
        by_number: dict[int, list[str]] = {}
        for prefix, number in zip(prefixes, numbers, strict=True):
            by_number.setdefault(number, []).append(prefix)
        wanted = {groups[number].file_id: Wanted(prefixes=tuple(found)) for number, found in by_number.items()}
    path = f"{keys.METADATA_TABLE_DIR}/{index.name}"
    pairs = [
        parse_secondary_key(key, path)
        for parts in store.read(index.name, wanted, ())
        if parts
        for key in merge_newest(parts).column(KEY).to_pylist()
    ]
    found, rows = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.table([pa.array(found, pa.string()), pa.array(rows, pa.string())], schema=MATCHES)
