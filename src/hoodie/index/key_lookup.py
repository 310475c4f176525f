"""Which incoming rows already live in a base file, and at which row of it.

1. One task looks at one base file and one set of keys. It reads the key column only: of few keys those row groups and
   pages that may have one by their bounds. Where the footer is asked not even that, unless its key range and bloom
   filter let a key through.
2. A key that stands several times in a file is found at each of its rows.
3. The answer is exact: a bloom hit is confirmed on the key column.

Log files are not looked at: whoever asks knows that keys of its index are not in log files only, or asks about rows of
base files that it was told of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from hoodie.engine import TaskId
from hoodie.index.keyed_rows import KeySet, Positions
from hoodie.records import (
    KEY_FIELD,
    BaseFooter,
    BloomFilter,
    KeyGenerator,
    KeyRange,
    OneInput,
    OpenInputs,
    iter_batches,
    opened_once,
    read_columns,
)
from hoodie.records.base_file import InputStorage
from hoodie.records.value_rows import places_of_values, rows_with_values
from hoodie.storage import Storage

StitchedRows: TypeAlias = Callable[[pa.Schema], Iterator[pa.RecordBatch]]
"""Gives the rows of a base file, in file order and in a schema, where the file itself has its meta columns only."""


@dataclass(frozen=True, slots=True)
class LookupTask:
    """One base file to look into. No key is there twice in `keys`.

    `by_bloom` and `by_range`: whether bloom filter and key range of the footer are asked first. `generator` makes the
    keys when the file has no key column (`hoodie.populate.meta.fields=false`).
    `also` has columns whose stored values the caller needs for each hit, in the types it wants them; they come from
    `stitched` where there is that. `bloom` is the file's bloom filter, where somebody knows it: a file without any of
    the keys is then not opened. `kept`: a file with hits stays open there, for who writes it anew in this process.
    """

    storage: Storage
    path: str
    keys: KeySet
    by_bloom: bool = False
    by_range: bool = False
    generator: KeyGenerator | None = None
    also: pa.Schema | None = None
    bloom: BloomFilter | None = None
    stitched: StitchedRows | None = None
    kept: OpenInputs | None = None


@dataclass(frozen=True, slots=True)
class FileHits:
    """Hits in one base file, ordered by file row: `rows[i]` of the file holds the key of incoming `positions[i]`.

    `stored` has the columns `also` of those rows (nulls where the file lacks one), or None when none were asked for.
    """

    path: str
    rows: Positions
    positions: Positions
    stored: pa.Table | None


def find_in_file(_: TaskId, task: LookupTask) -> FileHits:
    """Hits of the task's keys in its base file.

    Raises:
        Corrupt: the base file cannot be read; names it.
    """
    keys, positions = task.keys.load()
    if task.bloom is not None:
        passed = task.bloom.contains(keys)
        keys, positions = keys.filter(pa.array(passed)), positions[passed]
    if not len(keys):
        empty = np.empty(0, dtype=np.int64)
        return FileHits(task.path, empty, empty, None if task.also is None else task.also.empty_table())
    with opened_once(task.storage, task.kept) as storage:
        hits = _found(task, storage, keys, positions)
        if len(hits.rows):
            storage.keep(task.path)
        return hits


@dataclass(frozen=True, slots=True)
class KeysTask:
    """One base file whose keys are all wanted; `generator` as in `LookupTask`."""

    storage: Storage
    path: str
    generator: KeyGenerator | None


def read_keys(_: TaskId, task: KeysTask) -> pa.Array:
    """All keys of the task's base file (string), in the order of its rows.

    Raises:
        Corrupt: the base file cannot be read; names it.
    """
    with opened_once(task.storage) as storage:
        keys = _stored_keys(storage, task.path, task.generator, storage.footer(task.path))
        return keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys


def _found(task: LookupTask, storage: OneInput, keys: pa.Array, positions: Positions) -> FileHits:
    footer = storage.footer(task.path)
    if (task.by_bloom or task.by_range) and task.generator is None:
        keys, positions = _candidates(task, footer, keys, positions)
    if not len(keys):
        return _hits(task, storage, footer, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    if task.generator is None:
        rows, places = rows_with_values(storage, task.path, KEY_FIELD, keys, footer=footer)
    else:
        rows, places = places_of_values(_stored_keys(storage, task.path, task.generator, footer), keys)
    return _hits(task, storage, footer, rows, positions[places])


def _candidates(
    task: LookupTask, footer: BaseFooter, keys: pa.Array, positions: Positions
) -> tuple[pa.Array, Positions]:
    keep = np.ones(len(keys), dtype=bool)
    if task.by_range and footer.min_key is not None and footer.max_key is not None:
        # The footer's range is in Java's string order, which is not the order of UTF-8 bytes.
        keep = KeyRange(footer.min_key, footer.max_key).mask(keys).to_numpy(zero_copy_only=False).copy()
    bloom = footer.bloom() if task.by_bloom and task.bloom is None else None
    if bloom is not None and keep.any():
        at = np.flatnonzero(keep)
        keep[at] = bloom.contains(keys.take(pa.array(at)))
    return keys.filter(pa.array(keep)), positions[keep]


def _stored_keys(storage: InputStorage, path: str, generator: KeyGenerator | None, footer: BaseFooter) -> Any:
    if generator is None:
        return read_columns(storage, path, [KEY_FIELD], footer=footer).column(KEY_FIELD)
    table = read_columns(storage, path, _roots(generator), footer=footer)
    chunks = [generator.record_keys(batch) for batch in table.to_batches()]
    return pa.chunked_array(chunks, pa.string())


def _roots(generator: KeyGenerator) -> list[str]:
    """Top-level columns that hold the key fields."""
    return list(dict.fromkeys(name.partition(".")[0] for name in generator.options.record_fields))


def _hits(
    task: LookupTask, storage: InputStorage, footer: BaseFooter, rows: Positions, positions: Positions
) -> FileHits:
    if task.also is None:
        return FileHits(task.path, rows, positions, None)
    batches: Iterator[pa.RecordBatch] = iter(())
    if len(rows) and task.stitched is not None:
        batches = task.stitched(task.also)
    elif len(rows):
        batches = iter_batches(storage, task.path, schema=task.also, footer=footer)
    stored = pa.Table.from_batches(batches, task.also).take(pa.array(rows))
    return FileHits(task.path, rows, positions, stored)
