"""The rows of one write after a single pass over the input: keyed, split by partition path, in memory or spooled.

1. Every incoming row has a position: its place in the concatenation of all parts. Plans speak of rows by position only.
2. A part holds rows of one partition path. Its data is an Arrow table in memory, or record batches of an Arrow IPC file
   below the table's `.hoodie/.temp/<instant>.spool/` folder. Only the batches that hold a wanted row are read.
3. Rows carry the two columns `_hoodie_record_key` and `_hoodie_partition_path` in front of the data columns. Where keys
   are unique in the table, `_hoodie_arrival` follows: it orders rows of different partition paths as they came.

This module does not know what will become of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from hoodie.index import Positions
from hoodie.records import KEY_FIELD, PARTITION_PATH_FIELD
from hoodie.storage import Storage, translated

KEY = KEY_FIELD
PARTITION = PARTITION_PATH_FIELD
ARRIVAL = "_hoodie_arrival"


@dataclass(frozen=True, slots=True)
class MemoryRows:
    """Rows held by value."""

    table: pa.Table

    def load(self, columns: Sequence[str] | None = None) -> pa.Table:
        return self.table if columns is None else self.table.select(list(columns))

    def take(self, at: Positions) -> pa.Table:
        return self.table.take(pa.array(at))


@dataclass(frozen=True, slots=True)
class SpooledRows:
    """Rows in some record batches of one spool file: (number of the batch in the file, its rows)."""

    storage: Storage
    path: str
    batches: tuple[tuple[int, int], ...]

    def load(self, columns: Sequence[str] | None = None) -> pa.Table:
        with self.storage.open_input(self.path) as file, translated("read", self.path):
            schema = pa.ipc.open_file(file).schema
            wanted = None if columns is None else [schema.get_field_index(name) for name in columns]
            reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=wanted))
            table = pa.Table.from_batches([reader.get_batch(n) for n, _ in self.batches], reader.schema)
        return table if columns is None else table.select(list(columns))

    def take(self, at: Positions) -> pa.Table:
        """Rows `at` in that order. Memory: them, and one batch of the file."""
        order = np.argsort(at, kind="stable")
        ascending = at[order]
        pieces: list[pa.RecordBatch] = []
        first = 0
        with self.storage.open_input(self.path) as file, translated("read", self.path):
            reader = pa.ipc.open_file(file)
            for number, rows in self.batches:
                low, high = np.searchsorted(ascending, [first, first + rows])
                if low < high:
                    pieces.append(reader.get_batch(number).take(pa.array(ascending[low:high] - first)))
                first += rows
            table = pa.Table.from_batches(pieces, reader.schema)
        return table if np.array_equal(at, ascending) else table.take(pa.array(np.argsort(order)))


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive positions of one partition path."""

    partition: str
    offset: int
    rows: int
    data: MemoryRows | SpooledRows


@dataclass(frozen=True, slots=True)
class RowsRef:
    """Some incoming rows in a wanted order, as a write task carries them."""

    pieces: tuple[tuple[MemoryRows | SpooledRows, Positions | None], ...]
    order: Positions | None
    schema: pa.Schema

    def load(self) -> pa.Table:
        """The rows, keyed schema, in the order that was asked for."""
        tables = [data.load() if at is None else data.take(at) for data, at in self.pieces]
        table = pa.concat_tables(tables) if tables else self.schema.empty_table()
        return table if self.order is None else table.take(pa.array(self.order))


@dataclass(frozen=True, slots=True)
class Incoming:
    """All rows of a write. `parts` are ordered by partition path, then by arrival."""

    parts: tuple[Part, ...]
    schema: pa.Schema
    _offsets: Positions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_offsets", np.array([part.offset for part in self.parts], dtype=np.int64))

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def in_memory(self) -> bool:
        return all(isinstance(part.data, MemoryRows) for part in self.parts)

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.partition for part in self.parts))

    def of(self, partition: str) -> Incoming:
        """Only the rows of `partition`; positions stay what they were."""
        return Incoming(tuple(part for part in self.parts if part.partition == partition), self.schema)

    def by_partition(self) -> dict[str, Incoming]:
        """The rows of each partition, in the order of their positions; `of` for all of them at once."""
        parts: dict[str, list[Part]] = {}
        for part in self.parts:
            parts.setdefault(part.partition, []).append(part)
        return {name: Incoming(tuple(group), self.schema) for name, group in parts.items()}

    def holding(self, wanted: Positions) -> Incoming:
        """Only the parts with some of the positions `wanted`; positions stay what they were."""
        owners = np.unique(np.searchsorted(self._offsets, wanted, side="right") - 1)
        return Incoming(tuple(self.parts[n] for n in owners.tolist()), self.schema)

    def project(self, columns: Sequence[str]) -> Incoming:
        """The same rows with some columns only. Rows in memory are cut down now: workers get no more of them."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        if self.schema == schema:
            return self
        parts = tuple(replace(part, data=_projected(part.data, columns)) for part in self.parts)
        return Incoming(parts, schema)

    def load(self) -> pa.Table:
        """All rows in position order; reads spool files."""
        return self.column_table(self.schema.names)

    def column_table(self, columns: Sequence[str]) -> pa.Table:
        """Named columns of all rows in position order, plus nothing else; reads spool files."""
        tables = [part.data.load(columns) for part in self.parts]
        if not tables:
            return pa.schema([self.schema.field(name) for name in columns]).empty_table()
        return pa.concat_tables(tables)

    def positions(self) -> Positions:
        """Positions of the rows `column_table` gives, in the same order."""
        ranges = [np.arange(part.offset, part.offset + part.rows, dtype=np.int64) for part in self.parts]
        return np.concatenate(ranges) if ranges else np.empty(0, dtype=np.int64)

    def own(self, ascending: Positions) -> Positions:
        """Those of the `ascending` positions that are of its rows. Cost: by its parts, whatever the others are."""
        edges = [np.searchsorted(ascending, (part.offset, part.offset + part.rows)) for part in self.parts]
        return np.concatenate([ascending[:0], *(ascending[first:end] for first, end in edges)])

    def select(self, wanted: Positions) -> RowsRef:
        """A reference to the rows at `wanted`, in that order. In-memory rows are cut out now, spooled when loaded."""
        pieces: list[tuple[MemoryRows | SpooledRows, Positions | None]] = []
        places: list[Positions] = []
        for part, where in self._split(wanted):
            local = wanted[where] - part.offset
            if isinstance(part.data, MemoryRows):
                pieces.append((MemoryRows(part.data.take(local)), None))
            else:
                pieces.append((part.data, local))
            places.append(where)
        if len(places) <= 1:
            return RowsRef(tuple(pieces), None, self.schema)
        order = np.empty(len(wanted), dtype=np.int64)
        order[np.concatenate(places)] = np.arange(len(wanted), dtype=np.int64)
        return RowsRef(tuple(pieces), order, self.schema)

    def _split(self, wanted: Positions) -> Iterator[tuple[Part, Positions]]:
        if not len(wanted):
            return
        owner = np.searchsorted(self._offsets, wanted, side="right") - 1
        order = np.argsort(owner, kind="stable")
        for where in np.split(order, np.flatnonzero(np.diff(owner[order])) + 1):
            yield self.parts[int(owner[where[0]])], where


def _projected(data: MemoryRows | SpooledRows, columns: Sequence[str]) -> MemoryRows | SpooledRows:
    if isinstance(data, SpooledRows):
        return data
    # A slice travels with all it was cut from; a copy does not.
    chosen = data.table.select(list(columns))
    return MemoryRows(chosen.take(pa.array(np.arange(chosen.num_rows))))


def in_memory(keyed: pa.Table) -> Incoming:
    """An `Incoming` over a keyed table held by value."""
    parts: list[Part] = []
    offset = 0
    for partition, table in split_by_partition(keyed):
        parts.append(Part(partition, offset, table.num_rows, MemoryRows(table)))
        offset += table.num_rows
    return Incoming(tuple(parts), keyed.schema)


def split_by_partition(
    keyed: pa.Table | pa.RecordBatch, columns: pa.Table | pa.RecordBatch | None = None
) -> list[tuple[str, pa.Table | pa.RecordBatch]]:
    """(partition path, its rows in arrival order) for every partition path present, ordered by path. `columns`: those
    of the rows that are wanted; all without.
    """
    wanted = keyed if columns is None else columns
    column = keyed.column(PARTITION)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    encoded = column.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    if len(names) <= 1:
        return [(names[0], wanted)] if names else []
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    rows = wanted.take(pa.array(order))
    pieces = [
        (name, rows.slice(end - size, size)) for name, end, size in zip(names, ends, np.bincount(codes), strict=True)
    ]
    return sorted(pieces, key=lambda piece: piece[0])
