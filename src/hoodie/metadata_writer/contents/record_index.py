"""Compares `record_index` with the keys of file slices.

1. Every key of a slice must be found in its file group; a key that is in several groups of a table, in any of them.
2. An index says of no group more keys than it has: what is too much is found by counting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.metadata import RECORD_INDEX, MetadataTable
from hoodie.metadata.merge import merge_newest
from hoodie.metadata.record_index import LOCATION, locations
from hoodie.metadata.records import Wanted
from hoodie.metadata_writer.contents.check import SliceShown, Trouble, index_path, some
from hoodie.metadata_writer.slice_rows import SliceRows
from hoodie.view import FileSlice, GroupId

_PATH = index_path(RECORD_INDEX)


class RecordIndexCheck:
    """The comparison of the record index. `slices` are the live ones of the table, `rows` reads their keys."""

    def __init__(self, table: MetadataTable, slices: Mapping[GroupId, FileSlice], rows: SliceRows) -> None:
        self._table = table
        self._slices = slices
        self._rows = rows
        self._found: Counter[GroupId] = Counter()
        definition = table.definitions.get(RECORD_INDEX)
        self._is_partitioned = definition is not None and definition.is_partitioned

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        """No columns but the key."""
        del part
        return ()

    def compare(self, shown: SliceShown) -> Iterator[Trouble]:
        """Keys of the slice that the index does not know, or has elsewhere."""
        part, asked = shown.part, shown.keys.unique()
        known = self._table.locate(asked, [part.partition] if self._is_partitioned else None)
        is_here = pc.and_(pc.equal(known["partition"], part.partition), pc.equal(known["file_id"], part.file_id))
        here, elsewhere = known.filter(is_here), known.filter(pc.invert(is_here))
        self._found[part.group_id] = here.num_rows
        lost = asked.filter(pc.invert(pc.is_in(asked, value_set=known["record_key"].combine_chunks())))
        if len(lost):
            yield _PATH, f"does not know {some(lost)} of the keys of {_name(part.group_id)}: look-ups lose their rows"
        moved = self._wrong(elsewhere)
        if len(moved):
            yield _PATH, f"has {some(moved)} of the keys of {_name(part.group_id)} in other file groups"

    def finish(self) -> Iterator[Trouble]:
        """Keys that the index has in groups which do not hold them."""
        said: Counter[GroupId] = Counter()
        store = self._table.store
        for group in store.groups(RECORD_INDEX):
            for parts in store.read(RECORD_INDEX, {group.file_id: Wanted()}, (LOCATION,)):
                if parts:
                    found = locations(merge_newest(parts), store.config.timezone)
                    said.update(_counted(found))
        for group_id, count in sorted(said.items()):
            held = self._found[group_id]
            if count > held:
                yield _PATH, f"has {count - held:,} keys in {_name(group_id)} that are not there"

    def _wrong(self, elsewhere: pa.Table) -> pa.Array:
        """The keys that are not in the groups where they are said to be: others are there more than once."""
        wrong = [pa.array([], pa.string())]
        for group_id in _counted(elsewhere):
            own = pc.and_(pc.equal(elsewhere["partition"], group_id[0]), pc.equal(elsewhere["file_id"], group_id[1]))
            asked = elsewhere.filter(own)["record_key"].combine_chunks()
            there = self._rows.keys(self._slices.get(group_id))
            wrong.append(asked.filter(pc.invert(pc.is_in(asked, value_set=there))))
        return pa.concat_arrays(wrong)


def _counted(found: pa.Table) -> Counter[GroupId]:
    rows = found.group_by(["partition", "file_id"]).aggregate([([], "count_all")]).to_pylist()
    return Counter({(one["partition"], one["file_id"]): one["count_all"] for one in rows})


def _name(group_id: GroupId) -> str:
    partition, file_id = group_id
    return f"{partition}/{file_id}" if partition else file_id
