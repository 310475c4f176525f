"""Placing the rows of a write: from keyed input and hits of the index to the files that are written.

1. One row of each key is looked for. What an operation does with hits and with the other rows is decided here, over
   positions; how files take them is `plan`.
2. Reads what decides: key columns of candidates, ordering values, and metadata of commits for the size of a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hoodie.engine import BulkInsertSortMode, Engine
from hoodie.errors import Invalid
from hoodie.index import IndexedWrite, Positions
from hoodie.records.deletion import deletion_columns, is_deleted
from hoodie.spec import (
    CommitMetadata,
)
from hoodie.timeline import load_commit_metadata
from hoodie.view import FileSlice, GroupId
from hoodie.write.combine import plan_combine, run_combine, same_keys, sorted_by_key
from hoodie.write.file_sizing import average_record_bytes, fillable_beside_logs
from hoodie.write.incoming import KEY, Incoming
from hoodie.write.incoming_keys import partition_map
from hoodie.write.job import Write
from hoodie.write.log_place import Compactions
from hoodie.write.options import DuplicatePolicy
from hoodie.write.plan import (
    EMPTY,
    PlannedFile,
    SliceHits,
    place_deletes,
    place_inserts,
    place_upserts,
    plan_assigned_files,
    plan_files,
    without,
)
from hoodie.write.skeletons import with_source_bytes
from hoodie.write.tag import UntaggedRows, tag_rows

_SORTED = (
    BulkInsertSortMode.GLOBAL_SORT,
    BulkInsertSortMode.PARTITION_SORT,
    BulkInsertSortMode.PARTITION_PATH_REPARTITION_AND_SORT,
)


@dataclass(frozen=True, slots=True)
class Placed:
    """The `files` to write. `kept`: file groups with stored keys whose incoming rows are left out."""

    files: tuple[PlannedFile, ...]
    kept: frozenset[GroupId] = frozenset()


def plan_placed_files(  # noqa: PLR0917
    write: Write,
    incoming: Incoming,
    slices: Sequence[FileSlice],
    compactions: Compactions,
    engine: Engine,
    index: IndexedWrite,
) -> Placed:
    """The files to write. `unique` has one row for each key, `free` the rows that may become new rows of the table."""
    options = write.options
    rows = incoming.positions()
    unique = _combined(write, incoming, engine) if options.combine or options.looks_up else rows
    partitions = partition_map(incoming)
    untagged = UntaggedRows(incoming, unique, partitions)
    hits = tag_rows(write, untagged, index, compactions, engine) if options.looks_up else []
    if options.operation == "delete" and options.looks_up:
        return Placed(place_deletes(hits).files)
    free = unique if options.combine else _without_twins(write, incoming, rows, unique, hits)
    free = without(free, _deletes(write, incoming))
    if options.partial is not None:
        # What a partial row does not say of a new key nobody knows: it has nothing to update.
        return Placed(place_upserts(EMPTY, [hit.stored for hit in hits], partitions, move_partitions=False).files)
    kept: frozenset[GroupId] = frozenset()
    if options.operation == "upsert" and options.looks_up:
        placement = place_upserts(free, hits, partitions, move_partitions=options.index.traits.moves_partitions)
    else:
        free = _not_stored(write, incoming, free, hits)
        kept = frozenset(hit.slice.group_id for hit in hits if len(hit.present))
        is_sorted = options.operation == "bulk_insert" and options.sort_mode in _SORTED
        placement = place_inserts(sorted_by_key(incoming, free) if is_sorted else free, partitions, hits)
    assigned = index.assign(placement.inserts) if options.index.traits.assigns_groups else None
    if assigned is not None:
        return Placed(plan_assigned_files(placement, assigned, to_logs=options.changes_logs), kept)
    record_bytes = average_record_bytes(_commits(write), options.sizing) if placement.inserts else 1
    files = plan_files(placement, _fillable(write, slices, compactions), record_bytes, options.sizing)
    return Placed(files, kept)


def _combined(write: Write, incoming: Incoming, engine: Engine) -> Positions:
    options = write.options
    decides = options.merge_rule.ordered_in_input and options.operation != "delete"
    ordering = options.ordering if decides else ()
    tasks = plan_combine(incoming, ordering, options.delete_marker, whole_input=options.index.traits.is_global)
    return run_combine(tasks, write.engines.local if incoming.in_memory else engine)


def _without_twins(
    write: Write, incoming: Incoming, rows: Positions, unique: Positions, hits: Sequence[SliceHits]
) -> Positions:
    """`rows` without those that lost against another row of their key, where that key is stored: a stored row gets one
    update. Of keys that are new every row is kept: nobody asked to combine them.
    """
    if not hits:
        return rows
    found = np.unique(np.concatenate([hit.positions for hit in hits]))
    losers = without(rows, unique)
    return without(rows, same_keys(incoming, found, losers, whole_input=write.options.index.traits.is_global))


def _deletes(write: Write, incoming: Incoming) -> Positions:
    """Positions of the rows that are deletes: they may change stored rows but never become one."""
    names = deletion_columns(incoming.schema, write.options.delete_marker)
    if not names:
        return EMPTY
    deleted: Positions = incoming.positions()[is_deleted(incoming.column_table(names), write.options.delete_marker)]
    return deleted


def _not_stored(write: Write, incoming: Incoming, free: Positions, hits: Sequence[SliceHits]) -> Positions:
    """`free` without the keys the table holds already.

    Raises:
        Invalid: there are such, and the policy is to refuse.
    """
    present = np.unique(np.concatenate([hit.present for hit in hits])) if hits else EMPTY
    if write.options.duplicate_policy is DuplicatePolicy.FAIL and len(present):
        key = incoming.select(present[:1]).load().column(KEY)[0].as_py()
        raise Invalid(
            f"{len(present)} of the keys to insert are in the table already, for example {key!r}",
            remedy="Use operation upsert, or hoodie.datasource.insert.dup.policy=drop to skip them",
            keys=len(present),
        )
    return without(free, present)


def _fillable(write: Write, slices: Sequence[FileSlice], compactions: Compactions) -> Mapping[str, list[FileSlice]]:
    """Per partition the slices that may take new rows."""
    options = write.options
    fillable: dict[str, list[FileSlice]] = {}
    if options.fills_small_files:
        clustered = write.plans.clustered()
        for one in slices:
            is_open = one.base is not None or options.inserts_to_logs
            if is_open and one.group_id not in clustered and one.group_id not in compactions:
                fillable.setdefault(one.partition, []).append(with_source_bytes(write, one))
    if options.log is None or options.inserts_to_logs:
        return fillable
    return {name: fillable_beside_logs(group, options.sizing) for name, group in fillable.items()}


def _commits(write: Write) -> Iterator[CommitMetadata]:
    """Metadata of completed commits, newest first; read only as far as the caller goes."""
    for instant in reversed(write.timeline.completed_writes()):
        yield load_commit_metadata(write.handle.storage, write.handle.profile, instant)
