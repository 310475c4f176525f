"""INMEMORY: this process remembers in which file group of which table it has put each key. For tests and toy tables.

1. What is remembered is good for one state of a table: the writes that are on its timeline. After a write of another
   process, a rollback, a compaction, or in a new process, key columns are read anew, whole: that costs memory for every
   key of the partition. Hudi takes what its process does not remember for new, and stores such keys twice.
2. It never vouches: a key that was deleted stays remembered, and key columns of candidates are read as for SIMPLE. So
   new rows of merge-on-read tables go to base files, while Hudi sends them to log files.
3. Keys are unique in their partition, as in Hudi's map, whose keys are pairs of key and partition path. One that is
   stored twice is remembered in both places.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config import Config
from hoodie.index.index_kind import IndexKind
from hoodie.index.key_lookup import KeysTask, read_keys
from hoodie.index.keyed_rows import HeldKeys, KeyedRows
from hoodie.index.located_keys import LOCATIONS, located
from hoodie.index.simple_index import ensure_base_files
from hoodie.index.write_index import Candidate, IndexedTable, IndexTraits, PlainIndex, PlainIndexedWrite, WrittenGroup
from hoodie.spec import InstantTime, TableConfig
from hoodie.storage import Storage
from hoodie.timeline import Timeline


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    """What the process knows of a table: locations of the keys of some partitions, as of the completed `writes`."""

    writes: frozenset[InstantTime]
    locations: Mapping[str, pa.Table] = field(default_factory=dict)

    def holds_at(self, timeline: Timeline) -> bool:
        """Whether nothing was written or rolled back since; writes that were archived meanwhile are as they were."""
        active = {instant for instant in self.writes if not timeline.is_before_start(instant)}
        return active == _writes(timeline)


_NOTHING: Final = Remembered(frozenset())
_TABLES: Final[dict[str, Remembered]] = {}
_GUARD: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class InMemoryIndex(PlainIndex):
    """Asks what this process remembers of the table."""

    traits: IndexTraits

    def begin(self, table: IndexedTable, rows: KeyedRows) -> InMemoryIndexedWrite:
        with _GUARD:
            known = _TABLES.get(table.handle.storage.uri, _NOTHING)
        if not known.holds_at(table.timeline):
            known = Remembered(_writes(table.timeline))
        return InMemoryIndexedWrite(self.traits, table, rows, dict(known.locations))


@dataclass(frozen=True, slots=True, eq=False)
class InMemoryIndexedWrite(PlainIndexedWrite):
    """An `InMemoryIndex` at work. `locations` are those of partitions whose keys are known, more when they are read."""

    traits: IndexTraits
    table: IndexedTable
    rows: KeyedRows
    locations: dict[str, pa.Table]

    def tag(self, asked: KeyedRows) -> list[Candidate]:
        found: list[Candidate] = []
        for partition in asked.partitions:
            inside = self.table.slices_of.get(partition, ())
            ensure_base_files(self.traits, self.table, inside)
            if partition not in self.locations:
                self.locations[partition] = _read_locations(self.table, partition)
            keys = HeldKeys(*asked.keys(partition).load())
            known = self.locations[partition]
            matching = known.filter(pc.is_in(known.column("record_key"), value_set=keys.keys))
            found += located(keys, matching, inside, vouched=False)
        return found

    def after_commit(self, groups: Sequence[WrittenGroup]) -> None:
        """Remembers where new keys are, in partitions of which all keys are known: others are read when asked for."""
        locations = {name: known for name, known in self.locations.items() if name not in self.table.replaced}
        for partition in {group.partition for group in groups}.intersection(locations):
            new = [_inserted(self.rows, group) for group in groups if group.partition == partition]
            locations[partition] = pa.concat_tables([locations[partition], *new])
        writes = _writes(self.table.timeline) | {self.table.instant}
        with _GUARD:
            _TABLES[self.table.handle.storage.uri] = Remembered(writes, locations)


def forget(storage: Storage, instant: InstantTime) -> None:
    """Forgets a table: what was remembered is not what it is after a rollback."""
    del instant
    with _GUARD:
        _TABLES.pop(storage.uri, None)


def _writes(timeline: Timeline) -> frozenset[InstantTime]:
    return frozenset(instant.requested for instant in timeline.completed_writes())


def _read_locations(table: IndexedTable, partition: str) -> pa.Table:
    """Locations of all keys in base files of a partition."""
    pieces = table.slices_of.get(partition, ())
    storage, generator = table.handle.storage, table.generator
    tasks = [KeysTask(storage, piece.base.path, generator) for piece in pieces if piece.base is not None]
    read = table.spread.run(read_keys, tasks, "index")
    found = [_locations(keys, partition, piece.file_id) for piece, keys in zip(pieces, read, strict=True)]
    return pa.concat_tables([LOCATIONS.empty_table(), *found])


def _inserted(rows: KeyedRows, group: WrittenGroup) -> pa.Table:
    keys, _ = rows.keys(group.partition, np.sort(group.inserted)).load()
    return _locations(keys, group.partition, group.file_id)


def _locations(keys: pa.Array, partition: str, file_id: str) -> pa.Table:
    places = [pa.repeat(pa.scalar(text, pa.string()), len(keys)) for text in (partition, file_id)]
    return pa.Table.from_arrays([keys, *places], schema=LOCATIONS)


def _make(traits: IndexTraits, config: Config, table: TableConfig) -> InMemoryIndex:
    del config, table
    return InMemoryIndex(replace(traits, follows_keys=True))


KINDS: Final = (IndexKind("INMEMORY", _make, roll_back=forget),)
