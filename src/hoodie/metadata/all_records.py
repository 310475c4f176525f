"""Every record of a partition of the metadata table, merged: what a scan of it as a table would give.

Records come in Avro's columns, which partition needs which is known elsewhere. For looking at a metadata table; readers
ask for what they need.
"""

from __future__ import annotations

import pyarrow as pa

from hoodie.metadata.file_entries import FILES_MAP, merge_entries
from hoodie.metadata.merge import STATS, merge_newest, merge_stats
from hoodie.metadata.partitions import FILES
from hoodie.metadata.records import KEY, TYPE, Part, concat_records
from hoodie.metadata.store import MetadataStore


def all_records(store: MetadataStore, partition: str) -> pa.Table:
    """The records of a partition, group by group: `key`, `type` and the columns of its schema.

    Raises:
        Corrupt: a file is damaged. Invalid: the partition is not available.
    """
    merged = [merged_records(partition, parts) for parts in store.read(partition) if parts]
    return concat_records(merged) if merged else pa.table({KEY: pa.array([], pa.string())})


def merged_records(partition: str, parts: list[Part]) -> pa.Table:
    """The records of one file group of a partition after merging its parts, oldest first; tombstones stay."""
    if partition == FILES:
        return _files(parts)
    has_stats = any(part.rows is not None and STATS in part.rows.column_names for part in parts)
    return merge_stats(parts) if has_stats else merge_newest(parts)


def _files(parts: list[Part]) -> pa.Table:
    entries = merge_entries(parts)
    newest = merge_newest([part if part.rows is None else _only_types(part) for part in parts])
    types = dict(zip(newest.column(KEY).to_pylist(), newest.column(TYPE).to_pylist(), strict=True))
    files = pa.StructArray.from_arrays(
        [pa.array(entries.sizes, pa.int64()), pa.array(entries.is_deleted, pa.bool_())], ["size", "isDeleted"]
    )
    maps = pa.MapArray.from_arrays(pa.array(entries.starts, pa.int32()), pa.array(entries.names, pa.string()), files)
    return pa.table(
        {
            KEY: pa.array(entries.keys, pa.string()),
            TYPE: pa.array([types[key] for key in entries.keys], pa.int32()),
            FILES_MAP: maps,
        }
    )


def _only_types(part: Part) -> Part:
    assert part.rows is not None
    return Part(part.path, part.keys, part.rows.select([KEY, TYPE]))
