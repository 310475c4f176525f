"""The one pass over the input of a write: give every row its key and partition path, keep it inline or spool it.

1. A row is evaluated once. Nothing downstream asks the source again.
2. A task keeps its rows inline while they are few; past `inline_bytes` it spools everything it sees, so memory in a
   task stays below `inline_bytes` plus one batch.
3. Data columns are cast to the write schema here, so that every later step deals with one schema.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from hoodie.engine import ArrowSource, Engine, Source, TaskId
from hoodie.errors import Invalid
from hoodie.index import Buckets
from hoodie.records import KeyGenerator, RowOrigin, align
from hoodie.spec import is_partition_metafile
from hoodie.storage import Storage
from hoodie.write.exact_values import ensure_exact_values
from hoodie.write.incoming import (
    ARRIVAL,
    KEY,
    PARTITION,
    Incoming,
    MemoryRows,
    Part,
    SpooledRows,
    in_memory,
    split_by_partition,
)
from hoodie.write.read_back import ensure_distinct_keys, ensure_read_back

_SPOOL_CODEC = "lz4"
_TASK_BITS = 40  # rows one task can number


@dataclass(frozen=True, slots=True)
class KeyedForm:
    """The form rows of the input are given: with key and partition path in front, in the types of the table.

    `schema` is the write schema: data columns only, types as stored. `instant` names the write (auto keys carry it).
    With `arrival` rows remember where in the input they stood. With `carried` a row's key is the one it was read with:
    in a table that makes keys automatically it is the only name a row has. `storage` is the table's: what partitions it
    holds is looked up for values that a new partition could not give back.
    """

    generator: KeyGenerator
    schema: pa.Schema
    instant: str
    arrival: bool = False
    carried: bool = False
    storage: Storage | None = None

    def holds(self, partition: str) -> bool:
        """Whether the table has the partition already."""
        return self.storage is not None and any(
            is_partition_metafile(file.path.rpartition("/")[2]) for file in self.storage.list_dir(partition).files
        )

    @property
    def keyed_schema(self) -> pa.Schema:
        more = [pa.field(ARRIVAL, pa.int64())] if self.arrival else []
        return pa.schema([pa.field(KEY, pa.string()), pa.field(PARTITION, pa.string()), *more, *self.schema])


@dataclass(frozen=True, slots=True)
class Spool:
    """Where rows go that are too many to stay inline. With `buckets` the rows of a partition lie apart by bucket, so
    that who wants those of one bucket reads no others.
    """

    storage: Storage
    folder: str
    inline_bytes: int
    buckets: Buckets | None = None


@dataclass(frozen=True, slots=True)
class _SpooledPart:
    partition: str
    bucket: int
    rows: int
    data: SpooledRows


def key_rows(form: KeyedForm, task_id: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of `form.keyed_schema`, one for each non-empty input batch."""
    seen = 0
    for batch in batches:
        if batch.num_rows:
            yield key_batch(form, task_id, seen, batch)
            seen += batch.num_rows


def key_batch(form: KeyedForm, task_id: TaskId, first_row: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """One batch with key and partition path in front; `first_row` is its place among the rows of this task."""
    rows = _aligned(batch, form)
    keys = (
        _carried_keys(batch)
        if form.carried
        else form.generator.record_keys(rows, RowOrigin(form.instant, task_id.partition, first_row))
    )
    if not form.carried:
        ensure_distinct_keys(rows, form.generator.options)
    partitions = form.generator.partition_paths(rows)
    ensure_read_back(rows, partitions, form.generator.options, form.holds)
    more = []
    if form.arrival:
        start = (task_id.partition << _TASK_BITS) + first_row
        more.append(pa.array(np.arange(start, start + batch.num_rows, dtype=np.int64)))
    return pa.RecordBatch.from_arrays([keys, partitions, *more, *rows.columns], schema=form.keyed_schema)


def _aligned(batch: pa.RecordBatch, form: KeyedForm) -> pa.RecordBatch:
    """The rows in the types of the table; refuses those that would have other values there."""
    rows = align(batch, form.schema)
    ensure_exact_values(batch, form.schema)
    return rows


def _carried_keys(batch: pa.RecordBatch) -> pa.Array:
    keys = batch.column(KEY).cast(pa.string())
    if keys.null_count:
        raise Invalid(
            f"{keys.null_count} rows have no {KEY}, which names the row in a table with automatic keys",
            remedy="Insert new rows and update rows read from the table in two writes",
            column=KEY,
        )
    return keys


def prepare_input(source: Source, form: KeyedForm, spool: Spool) -> Incoming:
    """All rows of `source`, keyed. Evaluates the source once.

    Raises:
        Invalid: a row has no key, or a partition path that would leave the table.
    """
    table = source.small(spool.inline_bytes)
    if table is not None:
        batches = key_rows(form, TaskId(0, 0, 0), iter(table.combine_chunks().to_batches()))
        return in_memory(pa.Table.from_batches(list(batches), form.keyed_schema))
    return _joined(form.keyed_schema, spool, source.consume(partial(_spool_rows, form, spool), "prepare input"))


def in_driver(source: Source, limit_bytes: int) -> Source:
    """The rows of `source` in this process, where they are known to take no more than so many bytes; else `source`."""
    table = source.small(limit_bytes)
    return source if table is None else ArrowSource(table)


def load_partition_paths(source: Source, form: KeyedForm) -> tuple[str, ...]:
    """The distinct partition paths of the rows of `source`, sorted. Evaluates the source once and keeps no rows."""
    found = source.consume(partial(_partition_paths, form), "prepare input")
    return tuple(sorted(set(itertools.chain.from_iterable(found))))


def _partition_paths(form: KeyedForm, _: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[frozenset[str]]:
    for batch in batches:
        if batch.num_rows:
            paths = form.generator.partition_paths(_aligned(batch, form))
            yield frozenset(paths.unique().to_pylist())


def _joined(schema: pa.Schema, spool: Spool, results: list[pa.Table | _SpooledPart]) -> Incoming:
    """All parts by partition path and bucket; within one in the order of arrival, which decides between equal rows."""
    if all(isinstance(one, pa.Table) for one in results):
        return in_memory(pa.concat_tables(results) if results else schema.empty_table())
    found: list[tuple[str, int, int, MemoryRows | SpooledRows]] = []
    for one in results:
        if isinstance(one, _SpooledPart):
            found.append((one.partition, one.bucket, one.rows, one.data))
        else:
            for name, rows in split_by_partition(one):
                found.extend((name, n, piece.num_rows, MemoryRows(piece)) for n, piece in _by_bucket(spool, rows))
    parts: list[Part] = []
    offset = 0
    for partition, _, rows, data in sorted(found, key=lambda one: one[:2]):
        parts.append(Part(partition, offset, rows, data))
        offset += rows
    return Incoming(tuple(parts), schema)


def _spool_rows(
    form: KeyedForm, spool: Spool, task_id: TaskId, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.Table | _SpooledPart]:
    keyed = key_rows(form, task_id, batches)
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in keyed:
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes > spool.inline_bytes:
            yield from _write_spool(form, spool, task_id, held, keyed)
            return
    if held:
        yield pa.Table.from_batches(held, form.keyed_schema)


def _write_spool(
    form: KeyedForm, spool: Spool, task_id: TaskId, held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]
) -> Iterator[_SpooledPart]:
    path = f"{spool.folder}/{task_id.token}.arrow"
    where: dict[tuple[str, int], list[tuple[int, int]]] = {}
    written = 0
    with spool.storage.open_output(path) as sink:
        options = pa.ipc.IpcWriteOptions(compression=_SPOOL_CODEC)
        with pa.ipc.new_file(sink, form.keyed_schema, options=options) as writer:
            for chunk in _chunks(form, held, rest, spool.inline_bytes):
                for partition, rows in split_by_partition(chunk):
                    for bucket, piece in _by_bucket(spool, rows):
                        for batch in piece.combine_chunks().to_batches():
                            writer.write_batch(batch)
                            where.setdefault((partition, bucket), []).append((written, batch.num_rows))
                            written += 1
    for (partition, bucket), batches in where.items():
        data = SpooledRows(spool.storage, path, tuple(batches))
        yield _SpooledPart(partition, bucket, sum(rows for _, rows in batches), data)


def _by_bucket(spool: Spool, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """The rows of one partition by bucket, in the order of arrival; all of them as bucket 0 where there are none."""
    if spool.buckets is None:
        yield 0, rows
        return
    keys = rows.column(KEY)
    numbers = spool.buckets.numbers(keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys)
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    sorted_rows = rows.take(pa.array(order))
    for number, first, end in zip(found.tolist(), starts, [*starts[1:], len(order)], strict=True):
        yield number, sorted_rows.slice(first, end - first)


def _chunks(
    form: KeyedForm, held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch], limit_bytes: int
) -> Iterator[pa.Table]:
    """Tables of about `limit_bytes`, so that a partition's rows come in few, large batches."""
    group, size = list(held), sum(batch.nbytes for batch in held)
    held.clear()
    for batch in rest:
        if size > limit_bytes:
            yield pa.Table.from_batches(group, form.keyed_schema)
            group, size = [], 0
        group.append(batch)
        size += batch.nbytes
    if group:
        yield pa.Table.from_batches(group, form.keyed_schema)


def local_job(incoming: Incoming, touched_bytes: int, limit_bytes: int, spread: Engine, local: Engine) -> Engine:
    """The engine for the rest of a commit: the driver's own threads for a small job, else `spread`.

    Small means: no row was spooled and input plus base files to rewrite stay within `hoodie.engine.local.max.bytes`.
    """
    held = sum(part.data.table.nbytes for part in incoming.parts if isinstance(part.data, MemoryRows))
    return local if incoming.in_memory and held + touched_bytes <= limit_bytes else spread
