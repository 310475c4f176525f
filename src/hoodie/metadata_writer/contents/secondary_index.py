"""Compares a secondary index with the values of its column in file slices.

1. Every row has an entry of its value and key.
2. There are not more entries than rows: what is too much is found by counting.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.metadata import IndexDefinition, MetadataTable
from hoodie.metadata.keys import secondary_keys
from hoodie.metadata.merge import merge_newest
from hoodie.metadata.records import KEY, Wanted
from hoodie.metadata_writer.contents.check import SliceShown, Trouble, index_path, some
from hoodie.metadata_writer.file_ranges import values_at
from hoodie.metadata_writer.indexes.secondary_index import value_texts
from hoodie.metadata_writer.layout import places
from hoodie.view import FileSlice

_NONE = pa.array([], pa.string())


class SecondaryIndexCheck:
    """The comparison of one secondary index."""

    def __init__(self, table: MetadataTable, definition: IndexDefinition) -> None:
        self._store = table.store
        self._definition = definition
        self._column = definition.source_fields[0]
        self._file_ids = [group.file_id for group in self._store.groups(definition.name)]
        self._rows = 0

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        """The column it is on."""
        del part
        return (self._column.partition(".")[0],)

    def compare(self, shown: SliceShown) -> Iterator[Trouble]:
        """Rows without entry."""
        if not shown.rows.num_rows:
            return
        texts = value_texts(values_at(shown.rows, self._column).combine_chunks())
        entries = secondary_keys(texts, shown.keys).unique()
        self._rows += len(entries)
        lost = entries.filter(pc.invert(pc.is_in(entries, value_set=self._known(entries))))
        if len(lost):
            part = shown.part
            where = f"{part.partition}/{part.file_id}".lstrip("/")
            yield self._path, f"lacks {some(lost)} entries for rows of {where}: scans by the index lose them"

    def finish(self) -> Iterator[Trouble]:
        """Entries without row."""
        there = sum(
            merge_newest(parts).num_rows
            for file_id in self._file_ids
            for parts in self._store.read(self._definition.name, {file_id: Wanted()}, ())
            if parts
        )
        if there > self._rows:
            yield self._path, f"has {there - self._rows:,} entries that no row has"

    @property
    def _path(self) -> str:
        return index_path(self._definition.name)

    def _known(self, entries: pa.Array) -> pa.Array:
        """Those of the entries that the index has."""
        at = (
            places(entries, self._file_ids, self._definition, "") if len(self._file_ids) > 1 else np.zeros(len(entries))
        )
        wanted = {
            self._file_ids[place]: Wanted(keys=entries.filter(pa.array(at == place)))
            for place in np.unique(at).astype(int).tolist()
        }
        groups = self._store.read(self._definition.name, wanted, ())
        return pa.concat_arrays([_NONE, *(merge_newest(parts)[KEY].combine_chunks() for parts in groups if parts)])
