"""The record indexes: the metadata table knows the file group of every key, in the table or in each partition.

1. It would find keys in log files, too. Still new rows do not go there: it can be dropped, and the next writer may come
   with an index that reads base files, as Hudi's default does. It would store such keys again.
2. Where the table has no such index, base files are read instead, with a warning, as in Hudi.
3. The index itself is kept by `hoodie.metadata_writer`, with every write of whatever index.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.index.index_kind import IndexKind
from hoodie.index.keyed_rows import HeldKeys, KeyedRows
from hoodie.index.located_keys import located
from hoodie.index.simple_index import SimpleIndex
from hoodie.index.write_index import Candidate, IndexedTable, IndexTraits, PlainIndex, PlainIndexedWrite
from hoodie.metadata import RECORD_INDEX, MetadataTable, open_metadata_table
from hoodie.spec import TableConfig

log = logging.getLogger(__name__)

_LOCAL_KEYS: Final = 200_000
"""Keys up to which the driver asks the index itself: starting tasks elsewhere takes longer."""


@dataclass(frozen=True, slots=True)
class RecordIndex(PlainIndex):
    """Asks the metadata table; `without` is asked where that has no record index."""

    traits: IndexTraits
    without: SimpleIndex

    def begin(self, table: IndexedTable, rows: KeyedRows) -> RecordIndexedWrite:
        return RecordIndexedWrite(self, table, rows)


@dataclass(frozen=True, slots=True)
class RecordIndexedWrite(PlainIndexedWrite):
    """A `RecordIndex` at work."""

    index: RecordIndex
    table: IndexedTable
    rows: KeyedRows

    def tag(self, asked: KeyedRows) -> list[Candidate]:
        table = self.table
        metadata = _opened(table, table.local if len(asked) <= _LOCAL_KEYS else table.spread)
        if metadata is None:
            without = self.index.without
            if table.timeline.completed_writes():
                _warn(table, without.traits)
            return without.begin(table, self.rows).tag(asked)
        if self.index.traits.is_global:
            keys = HeldKeys(*asked.keys().load())
            return located(keys, metadata.locate(keys.keys), table.slices, vouched=True)
        found: list[Candidate] = []
        for partition in asked.partitions:
            keys = HeldKeys(*asked.keys(partition).load())
            inside = table.slices_of.get(partition, ())
            found += located(keys, metadata.locate(keys.keys, (partition,)), inside, vouched=True)
        return found


def _opened(table: IndexedTable, engine: Engine) -> MetadataTable | None:
    """The metadata table, if its record index can be asked; a table without commits has no keys to ask for."""
    handle = table.handle
    if not table.timeline.completed_writes() or RECORD_INDEX not in handle.config.metadata_partitions:
        return None
    metadata = open_metadata_table(handle.storage, handle.config, table.timeline, engine)
    return metadata if metadata is not None and metadata.has(RECORD_INDEX) else None


def _warn(table: IndexedTable, without: IndexTraits) -> None:
    log.warning(
        "table %s has no record index: keys are looked up in base files (%s). "
        "hoodie.metadata.global.record.level.index.enable=true makes one",
        table.handle.config.name,
        without.name,
    )


def _make(traits: IndexTraits, config: Config, table: TableConfig) -> RecordIndex:
    del config, table
    name = "GLOBAL_SIMPLE" if traits.is_global else "SIMPLE"
    return RecordIndex(traits, SimpleIndex(IndexTraits(name, traits.is_global, traits.moves_partitions)))


KINDS: Final = (
    IndexKind(
        "RECORD_INDEX",
        _make,
        is_global=True,
        moves_key="hoodie.record.index.update.partition.path",
        names=("GLOBAL_RECORD_LEVEL_INDEX",),
    ),
    IndexKind("RECORD_LEVEL_INDEX", _make),
)
