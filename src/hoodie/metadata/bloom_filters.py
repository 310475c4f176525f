"""Bloom filters of base files: which of them may hold a key.

1. The stored bytes are the base64 text a footer has. A filter of a type nobody knows is left out, as if it was not
   there.
2. Files without a filter, log files among them, may hold every key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Corrupt, Unsupported
from hoodie.metadata.column_stats import FileOf
from hoodie.metadata.damage import REBUILD
from hoodie.metadata.keys import bloom_filter_key
from hoodie.metadata.listing import by_group
from hoodie.metadata.merge import merge_newest
from hoodie.metadata.partitions import BLOOM_FILTERS
from hoodie.metadata.records import KEY
from hoodie.metadata.store import MetadataStore
from hoodie.records import BloomFilter
from hoodie.spec import keys

BLOOM: Final = "BloomFilterMetadata"


def load_bloom_filters(
    store: MetadataStore, files: Iterable[FileOf], partition: str = BLOOM_FILTERS
) -> dict[FileOf, BloomFilter]:
    """The filters of those of the files that have one. `partition`: an expression index instead, whose filters are of
    the function's result.

    Raises:
        Corrupt: the metadata table or a filter is damaged. Invalid: the partition is not available.
    """
    names = {bloom_filter_key(file.partition, file.name): file for file in files}
    groups = store.read(partition, by_group(store, partition, list(names)), (BLOOM,))
    found: dict[FileOf, BloomFilter] = {}
    for merged in (merge_newest(parts) for parts in groups if parts):
        rows = zip(merged.column(KEY).to_pylist(), merged.column(BLOOM).to_pylist(), strict=True)
        for key, stored in rows:
            parsed = _parsed(stored, f"{keys.METADATA_TABLE_DIR}/{partition}")
            if parsed is not None and key in names:
                found[names[key]] = parsed
    return found


def _parsed(stored: Mapping[str, object] | None, path: str) -> BloomFilter | None:
    if stored is None or stored["isDeleted"]:
        return None
    text, kind = stored["bloomFilter"], stored["type"]
    assert isinstance(text, bytes)
    try:
        return BloomFilter.from_text(text.decode("ascii"), str(kind))
    except Unsupported:
        return None
    except (Corrupt, UnicodeDecodeError) as error:
        raise Corrupt(f"{path} has a damaged bloom filter: {error}", remedy=REBUILD, path=path) from error


def may_hold(bloom: BloomFilter, texts: pa.Array) -> bool:
    """Whether any of the texts may have been added to the filter."""
    return bool(bloom.contains(pc.drop_null(texts)).any())
