"""HBASE: a table of HBase knows where each key of the table is stored, in the rows that Hudi's index had up to 0.15.

1. A row is believed when its write has completed and its file group is there. A key whose row is not believed (the
   write failed or is being written, its group was clustered or replaced) may still be stored: it is looked for in all
   base files, as by GLOBAL_BLOOM. Hudi takes such a key for new.
2. New keys, and those that move to another partition, get their rows before the write completes, under the table lock:
   so no completed write is without them, whoever dies. Rows of deleted keys stay, unlike Hudi's: a rollback or restore
   brings the keys back, and who does not find a row takes the key for new. A row whose group has not got the key is no
   error; whether log files have a key is not known, so that nothing may depend on it (`tells_stored_keys`).
3. What another index has written is not in HBase, and its keys would be stored again: as with every index outside of
   the table, all its writers name it. So the table remembers it (`index_kinds`).
4. New rows of merge-on-read tables go to base files, while Hudi sends them to log files: whoever comes without the
   index finds them. Keys that Hudi has put into logs are found by their rows.
5. A write that fails takes its rows back. One that died is left to rule 1; with `hoodie.index.hbase.rollback.sync` its
   rollback takes the rows back as well, which lets HBase look at every row of the index.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.errors import Invalid
from hoodie.index.hbase_client import Gateway
from hoodie.index.hbase_locations import INDEX_ROWS, HBaseLocations, Pacing
from hoodie.index.index_kind import IndexKind
from hoodie.index.key_lookup import KeysTask, LookupTask, find_in_file, read_keys
from hoodie.index.keyed_rows import HeldKeys, KeyedRows, Positions
from hoodie.index.located_keys import LOCATIONS, located
from hoodie.index.simple_index import ensure_base_files
from hoodie.index.write_index import (
    Candidate,
    IndexedTable,
    IndexTraits,
    MovedFile,
    PlainIndex,
    PlainIndexedWrite,
    WrittenGroup,
)
from hoodie.records import KeyGenerator
from hoodie.spec import InstantTime, TableConfig
from hoodie.storage import Storage

log = logging.getLogger(__name__)

_PORT: Final = 9090


@dataclass(frozen=True, slots=True)
class HBaseIndex(PlainIndex):
    """Asks HBase. `rolls_back`: also for writes that died."""

    traits: IndexTraits
    locations: HBaseLocations
    rolls_back: bool = False

    def begin(self, table: IndexedTable, rows: KeyedRows) -> HBaseIndexedWrite:
        return HBaseIndexedWrite(self, table, rows)

    def roll_back(self, storage: Storage, instant: InstantTime) -> None:
        """See `RollsBack`."""
        del storage
        if self.rolls_back:
            log.info("took back %d rows of %s in HBase", self.locations.roll_back(instant), instant)

    def follow(
        self,
        storage: Storage,
        files: Sequence[MovedFile],
        instant: InstantTime,
        engine: Engine,
        generator: KeyGenerator | None,
    ) -> None:
        """See `FollowsRewrites`: the keys of each file are read, and their rows say that they are there."""
        tasks = [KeysTask(storage, file.path, generator) for file in files]
        for file, keys in zip(files, engine.run(read_keys, tasks, "index"), strict=True):
            self.locations.put(_index_rows(keys, file.partition, file.file_id, instant))


@dataclass(slots=True, eq=False)
class HBaseIndexedWrite(PlainIndexedWrite):
    """An `HBaseIndex` at work. `met`: the rows of keys that were looked for, whatever they are worth; `mended`: rows of
    keys that were found elsewhere; `stored`: keys whose rows this write has put.
    """

    index: HBaseIndex
    table: IndexedTable
    rows: KeyedRows
    met: pa.Table = field(default_factory=INDEX_ROWS.empty_table)
    mended: pa.Table = field(default_factory=INDEX_ROWS.empty_table)
    stored: pa.Array | None = None

    def tag(self, asked: KeyedRows) -> list[Candidate]:
        table = self.table
        if not table.timeline.completed_writes():
            return []
        keys = HeldKeys(*asked.keys().load())
        self.met = self.index.locations.find(keys.keys)
        believed = _believed(table, self.met)
        known = self.met.filter(pa.array(believed))
        doubtful = self.met.filter(pa.array(~believed)).column("record_key").combine_chunks()
        if len(doubtful):
            self.mended = _searched(self.index.traits, table, keys, doubtful)
            known = pa.concat_tables([known, self.mended])
        return located(keys, known.select(LOCATIONS.names), table.slices, vouched=True)

    def before_commit(self, groups: Sequence[WrittenGroup]) -> None:
        """Stores where new and moved keys are. Asked again for the same write, it stores the same."""
        new = [
            _index_rows(self._keys(group.inserted), group.partition, group.file_id, self.table.instant)
            for group in groups
            if len(group.inserted)
        ]
        rows = _last_of_each(pa.concat_tables([self.mended, *new]))
        if len(rows):
            self.stored = rows.column("record_key").combine_chunks()
            self.index.locations.put(rows)

    def withdraw(self) -> None:
        """Rows of this write say again what they said before; others have been put by others since."""
        if self.stored is None:
            return
        locations = self.index.locations
        now = locations.find(self.stored)
        own = now.filter(pc.equal(now.column("commit"), self.table.instant))
        before = _of_keys(self.met, own)
        locations.put(before)
        locations.delete(own.filter(pc.invert(_are_keys_of(own, before))))
        self.stored = None

    def _keys(self, positions: Positions) -> pa.Array:
        """The keys at positions, which may lie in several partitions."""
        return self.rows.keys(at=np.sort(positions)).load()[0]


def _believed(table: IndexedTable, rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows name a write that has completed and a file group that is there."""
    commits = rows.column("commit").combine_chunks().dictionary_encode()
    completed = np.array([table.timeline.is_committed(one) for one in commits.dictionary.to_pylist()], dtype=bool)
    live = pa.array(["/".join(piece.group_id) for piece in table.slices], pa.string())
    places = pc.binary_join_element_wise(rows.column("partition"), rows.column("file_id"), "/")
    there = pc.is_in(places, value_set=live).combine_chunks().to_numpy(zero_copy_only=False)
    if not len(completed):
        return np.zeros(len(rows), dtype=bool)
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = completed[commits.indices.to_numpy()] & there
    return found


def _searched(traits: IndexTraits, table: IndexedTable, keys: HeldKeys, doubtful: pa.Array) -> pa.Table:
    """Rows for those of the doubtful keys that some base file has, as `INDEX_ROWS`.

    Raises:
        Invalid: some file group has log files only, where they could be as well.
    """
    slices = table.slices
    try:
        ensure_base_files(traits, table, slices)
    except Invalid as error:
        raise Invalid(
            f"{len(doubtful)} keys were stored in HBase by a write that did not complete, or for file groups that are "
            "gone; some file groups have log files only, where nobody finds keys without the index",
            remedy="Compact the table, then write again",
            table=table.handle.config.name,
        ) from error
    mask = pc.is_in(keys.keys, value_set=doubtful)
    at = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
    some = HeldKeys(keys.keys.take(pa.array(at)), keys.positions[at])
    storage, generator = table.handle.storage, table.generator
    bases = [(piece, piece.base) for piece in slices if piece.base is not None]
    tasks = [
        LookupTask(storage, base.path, some, by_bloom=True, by_range=True, generator=generator) for _, base in bases
    ]
    found = [INDEX_ROWS.empty_table()]
    for (piece, base), hits in zip(bases, table.spread.run(find_in_file, tasks, "index"), strict=True):
        if len(hits.positions):
            stored = some.at(np.unique(hits.positions)).keys
            found.append(_index_rows(stored, piece.partition, piece.file_id, base.name.instant))
    return pa.concat_tables(found)


def _index_rows(keys: pa.Array, partition: str, file_id: str, commit: InstantTime) -> pa.Table:
    places = [pa.repeat(pa.scalar(text, pa.string()), len(keys)) for text in (partition, file_id, commit)]
    return pa.Table.from_arrays([keys, *places, pa.repeat(pa.scalar(0, pa.int64()), len(keys))], schema=INDEX_ROWS)


def _are_keys_of(rows: pa.Table, others: pa.Table) -> pa.ChunkedArray:
    """Which rows are of keys of the others."""
    return pc.is_in(rows.column("record_key"), value_set=others.column("record_key").combine_chunks())


def _of_keys(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows of keys of the others."""
    return rows.filter(_are_keys_of(rows, others))


def _last_of_each(rows: pa.Table) -> pa.Table:
    """The last row of each key."""
    numbered = rows.append_column("at", pa.array(np.arange(len(rows))))
    last = numbered.group_by("record_key").aggregate([("at", "max")]).column("at_max")
    return rows.take(last)


def _make(traits: IndexTraits, config: Config, table: TableConfig) -> HBaseIndex:
    del table
    pacing = Pacing(
        config.integer("hoodie.index.hbase.get.batch.size"),
        config.integer("hoodie.index.hbase.put.batch.size"),
        config.integer("hoodie.index.hbase.max.qps.per.region.server") or None,
        config.number("hoodie.index.hbase.qps.fraction"),
        _pause_ms(config, "hoodie.index.hbase.sleep.ms.for.get.batch"),
        _pause_ms(config, "hoodie.index.hbase.sleep.ms.for.put.batch"),
    )
    gateway = Gateway(*_address(config), _needed(config, "hoodie.index.hbase.table"))
    traits = replace(traits, tells_stored_keys=False, follows_keys=True, joins_commit=True)
    return HBaseIndex(traits, HBaseLocations(gateway, pacing), config.flag("hoodie.index.hbase.rollback.sync"))


def _pause_ms(config: Config, key: str) -> int:
    return config.integer(key) if config.is_set(key) else 0


def _address(config: Config) -> tuple[str, int]:
    """Host and port of the gateway: what the options say, else the usual port of the first host of the quorum."""
    key = "hoodie.index.hbase.thrift.address"
    if not config.is_set(key):
        return _needed(config, "hoodie.index.hbase.zkquorum").partition(",")[0].partition(":")[0], _PORT
    host, _, port = config.text(key).rpartition(":")
    if not host or not port.isdigit():
        raise Invalid(f"{key}={config.text(key)} is no address", remedy="Write host:port", key=key)
    return host, int(port)


def _needed(config: Config, key: str) -> str:
    if not config.is_set(key):
        raise Invalid(f"Index HBASE needs {key}", remedy="Set it to what the other writers have", key=key)
    return config.text(key)


KINDS: Final = (
    IndexKind(
        "HBASE",
        _make,
        is_global=True,
        moves_key="hoodie.hbase.index.update.partition.path",
        lies_outside=True,
    ),
)
