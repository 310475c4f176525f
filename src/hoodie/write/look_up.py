"""Where the keys of a write are stored: from incoming rows to hits in file slices, by the write's index.

1. The index names candidates: a slice, and the rows whose keys may be in it. Indexes of base files name every slice, a
   bucket index the slice of each bucket, the record index exactly the slice a key is in.
2. Where a base file will be written anew, its rows have to be found: the key column of candidates is read.
3. Where changes go to log files and the candidates are certain, nothing is read. Hits then have row -1.
4. A record index that the table does not have is replaced by reading base files, with a warning, as in Hudi.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine
from hoodie.errors import Invalid
from hoodie.index import FileHits, IndexKind, KeySet, LookupTask, Positions, find_in_file
from hoodie.metadata import BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX, FileOf, MetadataTable, open_metadata_table
from hoodie.records import BloomFilter, newer_wins
from hoodie.records.condition import Comparison
from hoodie.records.deletion import is_deleted
from hoodie.view import FileSlice
from hoodie.write.buckets import BucketHomes
from hoodie.write.combine import HeldKeys, keys_of, ordering_values, root_columns
from hoodie.write.incoming import KEY, Incoming
from hoodie.write.job import Write
from hoodie.write.plan import PartitionMap, SliceHits
from hoodie.write.settled_hits import settle_hits
from hoodie.write.skeletons import stitched_rows

log = logging.getLogger(__name__)

_LOCAL_KEYS = 200_000
"""Keys up to which the driver asks the record index itself: starting tasks elsewhere takes longer."""
_MAX_FILTERS = 500
"""Bloom filters that are loaded for one write; with more files those in footers are asked, one file at a time."""

_WITHOUT_RECORDS = {
    IndexKind.RECORD_INDEX: IndexKind.GLOBAL_SIMPLE,
    IndexKind.RECORD_LEVEL_INDEX: IndexKind.SIMPLE,
}


@dataclass(frozen=True, slots=True)
class Question:
    """Rows whose keys are looked for: positions of `unique` in `incoming`, one for each key."""

    incoming: Incoming
    unique: Positions
    partitions: PartitionMap


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A slice and keys that may be in it. Where the index is certain that they are, `positions` says whose they are.
    `bloom` is the bloom filter of its base file, where the metadata table knows it.
    """

    slice: FileSlice
    keys: KeySet
    positions: Positions | None = None
    bloom: BloomFilter | None = None


def look_up(
    write: Write, asked: Question, slices: Sequence[FileSlice], engine: Engine, homes: BucketHomes | None
) -> list[SliceHits]:
    """Where the keys of the asked rows are stored; hits in one slice each.

    Raises:
        Invalid: some of the table's keys are where this index does not look.
    """
    if not len(asked.unique):
        return []
    options = write.options
    kind, candidates = _candidates(write, asked, slices, engine, homes)
    also = _stored_ordering(write)
    if options.changes_logs and kind.names_groups and also is None:
        return [_unseen(one) for one in candidates]
    searched = [(one, one.slice.base) for one in candidates if one.slice.base is not None]
    looked_in = [one.slice for one, _ in searched]
    tasks = [
        LookupTask(
            write.handle.storage,
            base.path,
            one.keys,
            kind,
            options.prune_by_ranges,
            None if options.populate_meta_fields else options.keys,
            also,
            one.bloom,
            None if also is None else stitched_rows(write, one.slice),
        )
        for one, base in searched
    ]
    found, gone = settle_hits(write, looked_in, engine.run(find_in_file, tasks, "index"), asked.partitions, engine)
    hits = [
        SliceHits(one, seen.rows, seen.positions, _wins(write, asked, one, seen), places)
        for one, seen, places in zip(looked_in, found, gone, strict=True)
        if len(seen.rows)
    ]
    return _with_logged(candidates, hits) if options.changes_logs and kind.names_groups else hits


def _candidates(
    write: Write, asked: Question, slices: Sequence[FileSlice], engine: Engine, homes: BucketHomes | None
) -> tuple[IndexKind, list[_Candidate]]:
    options = write.options
    kind = options.index
    if homes is not None:
        return kind, _by_bucket(asked, homes)
    if kind.asks_metadata:
        table = _record_index(write, write.engines.local if len(asked.unique) <= _LOCAL_KEYS else engine)
        if table is not None:
            return kind, _by_record_index(asked, slices, table, kind)
        kind = _WITHOUT_RECORDS[kind]
    found = _by_files(write, asked, slices, kind)
    if kind.uses_bloom and options.prune_by_metadata and options.populate_meta_fields:
        found = _pruned(write, found, engine)
    return kind, found


def _by_files(write: Write, asked: Question, slices: Sequence[FileSlice], kind: IndexKind) -> list[_Candidate]:
    incoming, unique = asked.incoming, asked.unique
    whole = keys_of(incoming, unique) if kind.is_global else None
    by_partition: Mapping[str, KeySet] = (
        {}
        if whole is not None
        else {name: keys_of(incoming.of(name), rows) for name, rows in asked.partitions.split(unique).items()}
    )
    found = [
        _Candidate(one, whole if whole is not None else by_partition[one.partition])
        for one in slices
        if whole is not None or one.partition in by_partition
    ]
    hidden = next((one.slice for one in found if one.slice.base is None), None)
    if hidden is not None:
        raise Invalid(
            f"File group {hidden.file_id} has log files only, where index {kind.value} does not find keys",
            remedy="Write with the index the table was made with (hoodie.index.type), or compact the table first",
            table=write.handle.config.name,
        )
    return found


def _pruned(write: Write, found: list[_Candidate], engine: Engine) -> list[_Candidate]:
    """The candidates whose key range in the metadata table may have one of their keys, with their bloom filters."""
    handle = write.handle
    table = None
    if handle.config.has_metadata_table:
        table = open_metadata_table(handle.storage, handle.config, write.timeline, engine)
    if table is None:
        return found
    if write.options.prune_by_ranges and table.has(COLUMN_STATS):
        kept = []
        for keys in {id(one.keys): one.keys for one in found}.values():
            same = [one for one in found if one.keys is keys]
            ranges = table.ranges(KEY, [_file_of(one) for one in same], pa.string())
            passing = ranges.may_pass(Comparison(KEY, "in", keys.load()[0]))
            kept += [one for one, stays in zip(same, passing.tolist(), strict=True) if stays]
        found = kept
    if not table.has(BLOOM_FILTERS) or len(found) > _MAX_FILTERS:
        return found
    blooms = table.bloom_filters([_file_of(one) for one in found])
    return [replace(one, bloom=blooms.get(_file_of(one))) for one in found]


def _file_of(one: _Candidate) -> FileOf:
    assert one.slice.base is not None
    return FileOf(one.slice.partition, one.slice.base.name.text)


def _by_bucket(asked: Question, homes: BucketHomes) -> list[_Candidate]:
    found: list[_Candidate] = []
    for partition, positions in asked.partitions.split(asked.unique).items():
        rows = asked.incoming.of(partition)
        held = keys_of(rows, positions)
        for number, wanted in homes.split(positions).items():
            one = homes.slices.get((partition, number))
            if one is None:
                continue
            if isinstance(held, HeldKeys):
                keys: KeySet = HeldKeys(held.keys.take(pa.array(np.searchsorted(positions, wanted))), wanted)
            else:
                keys = keys_of(rows.holding(wanted), wanted)
            found.append(_Candidate(one, keys, wanted))
    return found


def _by_record_index(
    asked: Question, slices: Sequence[FileSlice], table: MetadataTable, kind: IndexKind
) -> list[_Candidate]:
    if kind.is_global:
        return _located(keys_of(asked.incoming, asked.unique), slices, table.locate)
    found: list[_Candidate] = []
    for partition, positions in asked.partitions.split(asked.unique).items():
        keys = keys_of(asked.incoming.of(partition), positions)
        inside = [one for one in slices if one.partition == partition]
        found += _located(keys, inside, lambda texts, only=partition: table.locate(texts, (only,)))
    return found


def _located(held: KeySet, slices: Sequence[FileSlice], locate: Any) -> list[_Candidate]:
    """A candidate for each slice that has some of the keys; a place that is no live slice is none (an index may know
    file groups that were replaced).
    """
    keys, positions = held.load()
    groups = {"/".join(one.group_id): one for one in slices}
    where = locate(keys)
    places = pc.binary_join_element_wise(where.column("partition"), where.column("file_id"), "/").combine_chunks()
    coded = places.dictionary_encode()
    codes = coded.indices.to_numpy()
    found: list[_Candidate] = []
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(coded.dictionary)))
    rows = pc.index_in(where.column("record_key").combine_chunks(), value_set=keys).to_numpy(zero_copy_only=False)
    for place, chosen in zip(coded.dictionary.to_pylist(), np.split(rows[order], starts[1:]), strict=False):
        if place in groups:
            at = np.sort(chosen)
            found.append(_Candidate(groups[place], HeldKeys(keys.take(pa.array(at)), positions[at]), positions[at]))
    return found


def _record_index(write: Write, engine: Engine) -> MetadataTable | None:
    """The metadata table, if its record index can be asked; a table without commits has no keys to ask for."""
    handle = write.handle
    if not write.timeline.completed_writes():
        return None
    if RECORD_INDEX in handle.config.metadata_partitions:
        table = open_metadata_table(handle.storage, handle.config, write.timeline, engine)
        if table is not None and table.has(RECORD_INDEX):
            return table
    log.warning(
        "table %s has no record index: keys are looked up in base files (%s). "
        "hoodie.metadata.global.record.level.index.enable=true makes one",
        handle.config.name,
        _WITHOUT_RECORDS[write.options.index].value,
    )
    return None


def _stored_ordering(write: Write) -> pa.Schema | None:
    """Columns whose stored values decide whether a row may leave its partition; None when nothing is to be decided."""
    options = write.options
    moves = options.moves_partitions and options.operation == "upsert"
    if not (moves and options.merge_rule.ordered_against_stored and options.ordering):
        return None
    return pa.schema([write.schema.field(name) for name in root_columns(options.ordering)])


def _unseen(one: _Candidate) -> SliceHits:
    """Hits in a slice whose files nobody looked into."""
    positions = one.keys.load()[1] if one.positions is None else one.positions
    return SliceHits(one.slice, np.full(len(positions), -1, dtype=np.int64), positions, np.ones(len(positions), bool))


def _with_logged(candidates: Sequence[_Candidate], hits: Sequence[SliceHits]) -> list[SliceHits]:
    """Hits, and those certain candidates that no base file has: their rows are in log files."""
    seen = {hit.slice.group_id: hit for hit in hits}
    found: list[SliceHits] = []
    for one in candidates:
        hit = seen.get(one.slice.group_id)
        logged = _unseen(one)
        if hit is None:
            found.append(logged)
            continue
        rest = ~np.isin(logged.positions, hit.positions)
        found.append(
            SliceHits(
                one.slice,
                np.append(logged.rows[rest], hit.rows),
                np.append(logged.positions[rest], hit.positions),
                np.append(logged.wins[rest], hit.wins),
            )
        )
    return found


def _wins(write: Write, asked: Question, one: FileSlice, hits: FileHits) -> Any:
    """Per hit whether the incoming row beats the stored one; asked only of rows that would leave their partition."""
    wins = np.ones(len(hits.positions), dtype=bool)
    away = asked.partitions.elsewhere(hits.positions, one.partition)
    if hits.stored is None or not away.any():
        return wins
    rows = asked.incoming.select(hits.positions[away]).load()
    stored = hits.stored.filter(pa.array(away))
    names = write.options.ordering
    deleted = pa.array(is_deleted(rows, write.options.delete_marker))
    wins[away] = newer_wins(ordering_values(rows, names), ordering_values(stored, names), deleted)
    return wins
