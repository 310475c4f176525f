"""Index hits in slices with log files, held against what the log says: a base row may be gone, or newer there.

1. Mostly the log need not be asked. A row of the same partition is updated by a row in the log whether it is gone or
   not, and the reader merges them.
2. It is asked where somebody decides now: whether a key counts as stored (insert that looks for duplicates), which of
   two rows with one key is alive (a key that was deleted and inserted anew), and what becomes of a row that an incoming
   one would take to another partition.
3. A key of the same partition that is gone and nowhere else is updated where it was: one key, one file group. But not
   where a compaction is planned: the base file it will write has no such row, and an index that knows keys of base
   files alone would not find the one in the log. Such a key counts as new.
4. Only the base rows that were hit meet the log, with the columns the merge looks at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine, TaskId
from hoodie.index import FileHits, Positions, StitchedRows
from hoodie.logs import BlockKind, blocks_to_merge, read_block_rows, read_blocks, read_deletes
from hoodie.merge import LogEntry, LogRows, MergeRules, collect_log, columns_needed, merge_rows, merge_rules_of
from hoodie.records import KEY_FIELD, KeyGenerator, align, iter_batches, with_meta
from hoodie.spec import LogBlock, keys
from hoodie.storage import Storage
from hoodie.timeline import Timeline
from hoodie.view import FileSlice
from hoodie.write.job import Write
from hoodie.write.log_place import Compactions
from hoodie.write.plan import PartitionMap
from hoodie.write.skeletons import stitched_rows

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Merging:
    """How the rows of a slice are merged: the table's rules, the columns (of the table, with keys) that they and the
    caller look at, and who makes keys where rows carry none.
    """

    rules: MergeRules
    columns: pa.Schema
    generator: KeyGenerator | None
    timeline: Timeline


@dataclass(frozen=True, slots=True)
class ResolveTask:
    """Some rows of the base file of a slice with log files; `rows` ascend. `stitched`: see `LookupTask`."""

    storage: Storage
    slice: FileSlice
    rows: Positions
    merging: Merging
    stitched: StitchedRows | None = None


@dataclass(frozen=True, slots=True, eq=False)
class MergedState:
    """Per row whether it is alive, and the merged values of the columns (NULL where it is not)."""

    alive: Mask
    values: pa.Table


def resolve_hits(
    write: Write,
    slices: Sequence[FileSlice],
    found: Sequence[FileHits],
    partitions: PartitionMap,
    engine: Engine,
    *,
    compactions: Compactions,
) -> tuple[list[FileHits], list[Positions]]:
    """The hits that count, aligned with `slices`, and for each slice the places among them that are gone there."""
    nowhere = [np.empty(0, dtype=np.int64) for _ in found]
    schema = write.table_schema
    if schema is None or not any(one.logs for one in slices):
        return list(found), nowhere
    planned = [one.group_id in compactions for one in slices]
    asks_all = _asks_all(write)
    suspects = _suspects(slices, found, partitions, [asks_all or one for one in planned])
    asked = [n for n, mask in enumerate(suspects) if mask.any()]
    if not asked:
        return list(found), nowhere
    merging = merging_of(write, schema, found)
    tasks = [
        ResolveTask(
            write.handle.storage, slices[n], found[n].rows[suspects[n]], merging, stitched_rows(write, slices[n])
        )
        for n in asked
    ]
    states = dict(zip(asked, engine.run(find_merged, tasks, "index"), strict=True))
    dead = [np.zeros(len(hits.rows), dtype=np.bool_) for hits in found]
    for n, state in states.items():
        dead[n][suspects[n]] = ~state.alive
    kept = _kept(slices, found, partitions, dead, planned)
    resolved = [
        _resolved(hits, kept[n], suspects[n], states[n]) if n in states else _chosen(hits, kept[n])
        for n, hits in enumerate(found)
    ]
    return resolved, [np.flatnonzero(dead[n][kept[n]]) for n in range(len(found))]


def find_merged(_: TaskId, task: ResolveTask) -> MergedState:
    """What the slice's log makes of the task's base rows.

    Raises:
        Corrupt: a file is damaged.
    """
    merging, base = task.merging, task.slice.base
    assert base is not None
    logs = (block for log in task.slice.logs for block in read_blocks(task.storage, log.path, log.size_bytes))
    blocks = blocks_to_merge(logs, counts=merging.timeline.is_committed)
    stored = _stored(merging)
    batches = iter_batches(task.storage, base.path, schema=stored) if task.stitched is None else task.stitched(stored)
    rows = _with_keys(pa.Table.from_batches(batches, stored).take(pa.array(task.rows)), merging)
    batch = rows.combine_chunks().to_batches()[0]
    entries = (_entry(task.storage, block, merging) for block in blocks)
    with collect_log(entries, merging.rules, merging.columns) as log:
        merged = pa.Table.from_batches(merge_rows(lambda: [batch], log), merging.columns)
    at = pc.index_in(batch.column(KEY_FIELD), value_set=merged.column(KEY_FIELD).combine_chunks())
    return MergedState(at.is_valid().to_numpy(zero_copy_only=False), merged.take(at))


def merging_of(write: Write, schema: pa.Schema, found: Sequence[FileHits]) -> Merging:
    """How rows with the data columns `schema` are merged, as far as it takes to tell again what `found` has of them.

    The delete marker is the one of this write, which the table may not store.
    """
    options = write.options
    marker, generator = options.delete_marker, None if options.populate_meta_fields else options.keys
    named = {} if marker is None else {keys.DELETE_FIELD: marker.field, keys.DELETE_MARKER: marker.marker}
    rules = merge_rules_of(write.handle.config, named)
    full = with_meta(schema)
    wanted = next((tuple(hits.stored.schema.names) for hits in found if hits.stored is not None), ())
    made = () if generator is None else tuple(name.partition(".")[0] for name in generator.options.record_fields)
    names = dict.fromkeys((*columns_needed(rules, wanted, full), *made))
    columns = pa.schema([full.field(name).with_nullable(True) for name in names])
    return Merging(rules, columns, generator, write.timeline)


def _asks_all(write: Write) -> bool:
    """Whether a key that a log file deleted must be told from a stored one: when rows are added unless they are there,
    and when columns are changed only if they are.
    """
    return write.options.operation == "insert" or write.options.partial is not None


def _suspects(
    slices: Sequence[FileSlice], found: Sequence[FileHits], partitions: PartitionMap, asks_all: Sequence[bool]
) -> list[Mask]:
    """Per hit whether it has to be known if it is alive: never where there is no log. `asks_all`: of each slice,
    whether it has to be known of all its hits.
    """
    positions = np.concatenate([hits.positions for hits in found]) if found else np.empty(0, dtype=np.int64)
    distinct, counts = np.unique(positions, return_counts=True)
    often = distinct[counts > 1]
    masks = []
    for one, hits, asks in zip(slices, found, asks_all, strict=True):
        mask = partitions.elsewhere(hits.positions, one.partition) | np.isin(hits.positions, often)
        masks.append((mask | asks) & bool(one.logs))
    return masks


def _kept(
    slices: Sequence[FileSlice],
    found: Sequence[FileHits],
    partitions: PartitionMap,
    dead: Sequence[Mask],
    planned: Sequence[bool],
) -> list[Mask]:
    """Per hit whether it counts: it is alive, or the first of its partition for a key that is dead everywhere, where no
    compaction is `planned`.
    """
    alive = [hits.positions[~gone] for hits, gone in zip(found, dead, strict=True)]
    taken = np.unique(np.concatenate(alive)) if alive else np.empty(0, dtype=np.int64)
    kept = []
    for one, hits, gone, is_planned in zip(slices, found, dead, planned, strict=True):
        here = ~partitions.elsewhere(hits.positions, one.partition)
        revived = gone & here & ~np.isin(hits.positions, taken) & (not is_planned)
        taken = np.union1d(taken, hits.positions[revived])
        kept.append(~gone | revived)
    return kept


def _resolved(hits: FileHits, kept: Mask, suspect: Mask, state: MergedState) -> FileHits:
    if hits.stored is None:
        return _chosen(hits, kept)
    places = np.arange(len(hits.rows), dtype=np.int64)
    places[suspect] = len(hits.rows) + np.arange(int(suspect.sum()))
    merged = align(state.values.select(hits.stored.schema.names), hits.stored.schema)
    stored = pa.concat_tables([hits.stored, merged]).take(pa.array(places))
    return _chosen(replace(hits, stored=stored), kept)


def _chosen(hits: FileHits, kept: Mask) -> FileHits:
    if kept.all():
        return hits
    stored = None if hits.stored is None else hits.stored.filter(pa.array(kept))
    return replace(hits, rows=hits.rows[kept], positions=hits.positions[kept], stored=stored)


def _stored(merging: Merging) -> pa.Schema:
    """The columns of the merge that files have."""
    made = None if merging.generator is None else KEY_FIELD
    return pa.schema([field for field in merging.columns if field.name != made])


def _with_keys(rows: pa.Table, merging: Merging) -> pa.Table:
    if merging.generator is None:
        return rows
    chunks = [merging.generator.record_keys(batch) for batch in rows.to_batches()]
    place = merging.columns.get_field_index(KEY_FIELD)
    return rows.add_column(place, merging.columns.field(place), pa.chunked_array(chunks, pa.string()))


def _entry(storage: Storage, block: LogBlock, merging: Merging) -> LogEntry:
    if block.kind is BlockKind.DELETE:
        return read_deletes(storage, block)
    stored = _stored(merging)
    rows = read_block_rows(storage, block, columns=stored.names)
    known = pa.schema([field for field in stored if field.name in rows.schema.names])
    rows = _with_keys(align(rows, known), merging)
    return LogRows(rows, frozenset(known.names) if block.is_partial else None)
