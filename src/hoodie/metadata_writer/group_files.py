"""Files of one file group of the metadata table: encoded from records, written whole.

1. Records travel as entries: a key and its Avro bytes; a key without bytes is a delete. Where there are many of them
   they wait in spill files, one record batch for each file group, and only their places travel.
2. A log file holds HFile blocks of bounded size, then one block of deletes. A base file is one HFile.
3. File names are decided before anything is written, and a file that is written again has the same content: a task
   may run twice.
4. The key field of records is blank: the entry has it.

It does not know which group an entry belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskId
from hoodie.hfile import HFileOptions, encode_hfile
from hoodie.hfile.file_info import MAX_RECORD_KEY, MIN_RECORD_KEY
from hoodie.logs import Deletes, encode_block, encode_deletes
from hoodie.metadata.encode_records import encode_records
from hoodie.metadata.records import KEY
from hoodie.metadata_writer.metadata_index import MetadataRecords
from hoodie.spec import AvroGeneration, BlockKind, HeaderKey, InstantTime, metadata_record_schema
from hoodie.storage import Storage

BLOCK_BYTES = 64 * 1024 * 1024
"""Bytes of values in one HFile block of a log file."""

_SMALL_BYTES = 32 * 1024 * 1024
_VALUE = "value"
_SPILLED = pa.ipc.IpcWriteOptions(compression="lz4")
_LAST_WINS = HFileOptions(level=1, last_wins=True)
_ENTRIES = pa.schema([pa.field(KEY, pa.string()), pa.field(_VALUE, pa.large_binary())])


@dataclass(frozen=True, slots=True)
class Spilled:
    """Entries of one file group in a spill file: the record batch `batch` of the file at `path`."""

    path: str
    batch: int


Entries: TypeAlias = pa.RecordBatch | Spilled


@dataclass(frozen=True, slots=True, eq=False)
class GroupFile:
    """A file to write: where, for which instant, and the entries it gets. `storage` is the metadata table's."""

    storage: Storage
    path: str
    partition: str
    instant: InstantTime
    avro_generation: AvroGeneration
    entries: tuple[Entries, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written."""

    path: str
    size_bytes: int
    puts: int
    deletes: int


def entries_of(records: MetadataRecords, generation: AvroGeneration) -> pa.RecordBatch:
    """The entries of records: columns key, value (null: a delete)."""
    deleted = records.deletes.cast(pa.string())
    if isinstance(deleted, pa.ChunkedArray):
        deleted = deleted.combine_chunks()
    keys, values = encode_records(records.rows, generation)
    if len(deleted):
        keys = pa.concat_arrays([keys, deleted])
        values = pa.concat_arrays([values, pa.nulls(len(deleted), pa.large_binary())])
    return pa.RecordBatch.from_arrays([keys, values.cast(pa.large_binary())], schema=_ENTRIES)


def spill(storage: Storage, path: str, groups: Sequence[pa.RecordBatch]) -> None:
    """A spill file with one record batch for each group."""
    with storage.open_output(path) as out, pa.ipc.new_file(out, _ENTRIES, options=_SPILLED) as writer:
        for batch in groups:
            writer.write_batch(batch)


def write_log(_: TaskId, task: GroupFile) -> Written:
    """The log file that was written."""
    entries = _load(task)
    is_delete = entries.column(_VALUE).is_null()
    puts, deletes = entries.filter(pc.invert(is_delete)), entries.filter(is_delete)
    deletes = deletes.filter(pc.invert(pc.is_in(deletes.column(KEY), value_set=puts.column(KEY))))
    header = {HeaderKey.INSTANT_TIME: task.instant}
    content = [
        encode_block(
            BlockKind.HFILE_DATA,
            {**header, HeaderKey.SCHEMA: metadata_record_schema(task.avro_generation)},
            encode_hfile(
                part.column(KEY),
                part.column(_VALUE),
                schema=metadata_record_schema(task.avro_generation),
                options=_LAST_WINS,
            ),
        )
        for part in _pieces(puts)
    ]
    if deletes.num_rows or not content:
        content.append(encode_block(BlockKind.DELETE, header, _deletes(deletes.column(KEY), task.partition)))
    size = _store(task, b"".join(content))
    return Written(task.path, size, puts.num_rows, deletes.num_rows)


def write_base(_: TaskId, task: GroupFile) -> Written:
    """The base file that was written. Deletes among the entries are left out."""
    entries = _load(task)
    puts = entries.filter(entries.column(_VALUE).is_valid())
    keys = puts.column(KEY)
    info = {}
    if len(keys):
        bounds = pc.min_max(keys.cast(pa.large_binary()))
        info = {MIN_RECORD_KEY: bounds["min"].as_py(), MAX_RECORD_KEY: bounds["max"].as_py()}
    content = encode_hfile(
        keys, puts.column(_VALUE), schema=metadata_record_schema(task.avro_generation), info=info, options=_LAST_WINS
    )
    return Written(task.path, _store(task, content), puts.num_rows, 0)


@cache
def empty_log(instant: InstantTime) -> bytes:
    """The content of the log file that makes a file group: a block of no deletes."""
    return encode_block(BlockKind.DELETE, {HeaderKey.INSTANT_TIME: instant}, _deletes(pa.array([], pa.string()), ""))


def _deletes(keys: pa.Array, partition: str) -> bytes:
    partitions = pa.array([partition], pa.string()).take(pa.array(np.zeros(len(keys), np.int32)))
    return encode_deletes(Deletes(keys, partitions, (), np.ones(len(keys), np.bool_)))


def _pieces(entries: pa.RecordBatch) -> list[pa.RecordBatch]:
    """The entries in parts of at most `BLOCK_BYTES` of values each."""
    if not entries.num_rows:
        return []
    if entries.nbytes <= BLOCK_BYTES:
        return [entries]
    ends = np.cumsum(pc.binary_length(entries.column(_VALUE)).to_numpy())
    marks = np.searchsorted(ends, np.arange(BLOCK_BYTES, ends[-1] + BLOCK_BYTES, BLOCK_BYTES), side="right")
    cuts = np.unique(np.concatenate([[0], marks, [entries.num_rows]])).tolist()
    return [entries.slice(start, end - start) for start, end in pairwise(cuts)]


def _load(task: GroupFile) -> pa.RecordBatch:
    parts = [_spilled(task.storage, one) if isinstance(one, Spilled) else one for one in task.entries]
    table = pa.Table.from_batches(parts, _ENTRIES).combine_chunks()
    return next(iter(table.to_batches()), pa.RecordBatch.from_pylist([], _ENTRIES))


def _spilled(storage: Storage, place: Spilled) -> pa.RecordBatch:
    with storage.open_input(place.path) as source:
        return pa.ipc.open_file(source).get_batch(place.batch)


def _store(task: GroupFile, content: bytes) -> int:
    if len(content) <= _SMALL_BYTES:
        task.storage.put(task.path, content)
    else:
        with task.storage.open_output(task.path) as out:
            out.write(content)
    return len(content)
