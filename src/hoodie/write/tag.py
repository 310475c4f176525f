"""Tags the rows of a write with their locations: from incoming keys to hits in file slices.

1. The write's index names candidates: a slice, and rows whose keys may be in it.
2. Where a base file will be written anew, its rows have to be found: the key column of candidates is read.
3. Where changes go to log files and the index vouches for a candidate, nothing is read. Hits then have row -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.engine import Engine
from hoodie.index import Candidate, FileHits, IndexedWrite, LookupTask, Positions, find_in_file
from hoodie.records import newer_wins
from hoodie.records.deletion import is_deleted
from hoodie.view import FileSlice
from hoodie.write.combine import ordering_values, root_columns
from hoodie.write.incoming import Incoming
from hoodie.write.incoming_keys import chosen_keys
from hoodie.write.job import Write
from hoodie.write.log_place import Compactions
from hoodie.write.plan import UNKNOWN_ROW, PartitionMap, SliceHits
from hoodie.write.resolved_hits import resolve_hits
from hoodie.write.skeletons import stitched_rows


@dataclass(frozen=True, slots=True)
class UntaggedRows:
    """Rows whose keys are looked for: positions of `unique` in `incoming`, one for each key, ascending."""

    incoming: Incoming
    unique: Positions
    partitions: PartitionMap


def tag_rows(
    write: Write, rows: UntaggedRows, index: IndexedWrite, compactions: Compactions, engine: Engine
) -> list[SliceHits]:
    """Where the keys of rows are stored; hits in one slice each. Raises as `IndexedWrite.tag`."""
    if not len(rows.unique):
        return []
    options = write.options
    candidates = index.tag(chosen_keys(rows.incoming, rows.partitions, rows.unique))
    also = _stored_ordering(write)
    is_certain = options.changes_logs and all(candidate.vouched is not None for candidate in candidates)
    if is_certain and also is None:
        return [_unread_hits(candidate) for candidate in candidates]
    searched = [(candidate, candidate.slice.base) for candidate in candidates if candidate.slice.base is not None]
    looked_in = [candidate.slice for candidate, _ in searched]
    generator = None if options.populate_meta_fields else options.keys
    tasks = [
        LookupTask(
            write.handle.storage,
            base.path,
            candidate.keys,
            by_bloom=candidate.by_bloom,
            by_range=candidate.by_range,
            generator=generator,
            also=also,
            bloom=candidate.bloom,
            stitched=None if also is None else stitched_rows(write, candidate.slice),
            kept=write.kept,
        )
        for candidate, base in searched
    ]
    seen_keys = engine.run(find_in_file, tasks, "index")
    found, gone = resolve_hits(write, looked_in, seen_keys, rows.partitions, engine, compactions=compactions)
    hits = [
        SliceHits(piece, seen.rows, seen.positions, _wins(write, rows, piece, seen), places)
        for piece, seen, places in zip(looked_in, found, gone, strict=True)
        if len(seen.rows)
    ]
    return _with_logged(candidates, hits) if is_certain else hits


def _stored_ordering(write: Write) -> pa.Schema | None:
    """Columns whose stored values decide whether a row may leave its partition; None when nothing is to be decided."""
    options = write.options
    moves = options.index.traits.moves_partitions and options.operation == "upsert"
    if not (moves and options.merge_rule.ordered_against_stored and options.ordering):
        return None
    return pa.schema([write.schema.field(name) for name in root_columns(options.ordering)])


def _unread_hits(candidate: Candidate) -> SliceHits:
    """Hits in a slice whose files nobody looked into."""
    positions = candidate.keys.load()[1] if candidate.vouched is None else candidate.vouched
    unknown = np.full(len(positions), UNKNOWN_ROW, dtype=np.int64)
    return SliceHits(candidate.slice, unknown, positions, np.ones(len(positions), bool))


def _with_logged(candidates: Sequence[Candidate], hits: Sequence[SliceHits]) -> list[SliceHits]:
    """Hits, and those rows of the candidates that no base file has: they are in log files."""
    seen = {hit.slice.group_id: hit for hit in hits}
    found: list[SliceHits] = []
    for candidate in candidates:
        hit = seen.get(candidate.slice.group_id)
        logged = _unread_hits(candidate)
        if hit is None:
            found.append(logged)
            continue
        rest = ~np.isin(logged.positions, hit.positions)
        found.append(
            SliceHits(
                candidate.slice,
                np.append(logged.rows[rest], hit.rows),
                np.append(logged.positions[rest], hit.positions),
                np.append(logged.wins[rest], hit.wins),
            )
        )
    return found


def _wins(write: Write, untagged: UntaggedRows, piece: FileSlice, hits: FileHits) -> Any:
    """Per hit whether the incoming row beats the stored one; asked only of rows that would leave their partition."""
    wins = np.ones(len(hits.positions), dtype=bool)
    away = untagged.partitions.elsewhere(hits.positions, piece.partition)
    if hits.stored is None or not away.any():
        return wins
    rows = untagged.incoming.select(hits.positions[away]).load()
    stored = hits.stored.filter(pa.array(away))
    names = write.options.ordering
    deleted = pa.array(is_deleted(rows, write.options.delete_marker))
    wins[away] = newer_wins(ordering_values(rows, names), ordering_values(stored, names), deleted)
    return wins
