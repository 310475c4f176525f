"""The write operations of a copy-on-write table, from rows to a completed instant.

1. Order of events: evaluate the input once, tag, plan, open the instant, write files, finalise, complete. For bad rows
   found in the first step nothing has been written at all.
2. A bulk insert writes while it reads, so its instant is opened first; the caller takes it back when the input turns
   out bad.
3. Every operation is `plan` over values and `run` through an engine; this module only puts them in order.

The caller holds the table's writer exclusion, has rolled back failed writes, and undoes this one when it raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.engine import Arrangement, Engine, Source
from hoodie.errors import Conflict, Invalid
from hoodie.handle import TableHandle
from hoodie.index import FileHits, LookupTask, Positions, find_in_file
from hoodie.records import newer_wins, to_avro
from hoodie.records.deletion import deletion_columns, is_deleted
from hoodie.spec import (
    EMPTY_REPLACE,
    CommitMetadata,
    Instant,
    InstantTime,
    WriteStat,
    delete_partition_request,
    encode_requested_replace,
    keys,
    marker_dir,
    new_file_id,
    workload_profile,
)
from hoodie.timeline import Timeline, create_requested, load_commit_metadata, to_inflight
from hoodie.view import FileSlice, View, load_view
from hoodie.write.bulk import BulkTask, run_bulk_insert
from hoodie.write.combine import (
    EMPTY,
    keys_of,
    ordering_values,
    plan_combine,
    root_columns,
    run_combine,
    same_keys,
    sorted_by_key,
)
from hoodie.write.commit import Committed, Outcome, drop_leftovers, finish
from hoodie.write.file_sizing import average_record_bytes
from hoodie.write.file_task import FileTask, WriteTarget, write_file
from hoodie.write.incoming import KEY, Incoming, RowsRef
from hoodie.write.intake import Keying, Spool, load_partition_paths, local_job, run_intake
from hoodie.write.options import DuplicatePolicy, WriteOptions
from hoodie.write.overwrite import finish_overwrite
from hoodie.write.plan import (
    PartitionMap,
    PlannedFile,
    SliceHits,
    place_deletes,
    place_inserts,
    place_upserts,
    plan_files,
    plan_work,
    without,
)
from hoodie.write.replace import plan_replaced
from hoodie.write.reserved import ensure_free, load_reserved

_SPOOL_SUFFIX = ".spool"
_SORTED = (
    Arrangement.GLOBAL_SORT,
    Arrangement.PARTITION_SORT,
    Arrangement.PARTITION_PATH_REPARTITION_AND_SORT,
)


@dataclass(frozen=True, slots=True)
class Engines:
    """Where a commit may run: threads of the driver, or spread over the cluster (the same object without one)."""

    local: Engine
    spread: Engine


@dataclass(frozen=True, slots=True)
class Write:
    """One write operation, ready to run.

    `schema` is what rows are cast to, `table_schema` what the table has afterwards (data columns only; None: a delete
    in a table of which nobody knows the schema). `instant` is the write's own. `overwritten` is the table of another
    kind whose place this one takes: the write is pending there until the switch.
    """

    handle: TableHandle
    timeline: Timeline
    options: WriteOptions
    engines: Engines
    schema: pa.Schema
    table_schema: pa.Schema | None
    instant: InstantTime
    overwritten: TableHandle | None = None


class InstantTaken(Conflict):
    """Another writer began an instant of the very same time: what is on storage under it is that writer's, not ours."""


def run_write(write: Write, source: Source) -> Committed:
    """The outcome of the operation `write.options.operation` with the rows of `source`.

    Raises:
        Invalid: rows without key, bad partition values, duplicates under policy `fail`.
        Conflict: another writer was at work. Fenced: another writer rolled this write back.
    """
    options = write.options
    competes = options.index.is_global and (options.combine or options.looks_up)
    keying = Keying(options.keys, write.schema, write.instant, arrival=competes, carried=options.carried_keys)
    if options.writes_while_reading:
        return _bulk_insert(write, source, keying)
    spool = Spool(write.handle.storage, marker_dir(write.instant) + _SPOOL_SUFFIX, write.options.inline_bytes)
    try:
        incoming = run_intake(source, keying, spool)
        committed = _write_tagged(write, incoming)
    except BaseException:
        drop_leftovers(write.handle, write.instant + _SPOOL_SUFFIX)
        raise
    if not incoming.in_memory:
        drop_leftovers(write.handle, write.instant + _SPOOL_SUFFIX)
    return committed


def delete_partitions(write: Write, partitions: Sequence[str]) -> Committed:
    """The outcome of replacing every file group of `partitions` by nothing."""
    handle = write.handle
    view = load_view(handle.storage, handle.config, write.timeline, partitions=partitions)
    replaced = plan_replaced(view.slices_at(), partitions)
    inflight = _open(write, "replacecommit", workload_profile(write.options.recorded_operation, {}), replaced, ())
    return _finish(write, inflight, [], replaced, partitions)


def partitions_of(write: Write, source: Source) -> tuple[str, ...]:
    """Partition paths of the rows of `source`: what a partition delete with rows means."""
    return load_partition_paths(
        source, Keying(write.options.keys, write.schema, write.instant, carried=write.options.carried_keys)
    )


def _write_tagged(write: Write, incoming: Incoming) -> Committed:
    options = write.options
    view = _view(write, incoming)
    slices = view.slices_at()
    touches = options.looks_up or options.fills_small_files
    held = sum(one.base.size_bytes for one in slices if one.base is not None) if touches else 0
    engine = local_job(incoming, held, options.local_job_bytes, write.engines.spread, write.engines.local)
    files = _plan(write, incoming, slices, engine)
    replaced = _replaced(write, incoming.partitions, slices)
    action = "commit" if replaced is None else "replacecommit"
    work = workload_profile(options.recorded_operation, plan_work(files))
    inflight = _open(write, action, work, replaced or {}, files)
    stats = engine.run(write_file, _tasks(write, incoming, files), options.operation)
    return _finish(write, inflight, stats, replaced, {one.partition for one in slices})


def _view(write: Write, incoming: Incoming) -> View:
    """The part of the table this write has to know."""
    options = write.options
    everywhere = options.replaces == "table" or (options.index.is_global and options.looks_up)
    partitions = None if everywhere else incoming.partitions
    return load_view(write.handle.storage, write.handle.config, write.timeline, partitions=partitions)


def _plan(write: Write, incoming: Incoming, slices: Sequence[FileSlice], engine: Engine) -> tuple[PlannedFile, ...]:
    """The files to write. `unique` has one row for each key, `free` the rows that may become new rows of the table."""
    options = write.options
    rows = incoming.positions()
    unique = _combined(write, incoming, engine) if options.combine or options.looks_up else rows
    partitions = PartitionMap(*_partition_starts(incoming))
    hits = _look_up(write, incoming, unique, slices, engine, partitions) if options.looks_up else []
    if options.operation == "delete" and options.looks_up:
        return place_deletes(hits).files
    free = unique if options.combine else _without_twins(write, incoming, rows, unique, hits)
    free = without(free, _deletes(write, incoming))
    if options.operation == "upsert" and options.looks_up:
        placement = place_upserts(free, hits, partitions, move_partitions=options.moves_partitions)
    else:
        free = _not_stored(write, incoming, free, hits)
        is_sorted = options.operation == "bulk_insert" and options.arrangement in _SORTED
        placement = place_inserts(sorted_by_key(incoming, free) if is_sorted else free, partitions)
    record_bytes = average_record_bytes(_commits(write), options.sizing) if placement.inserts else 1
    return plan_files(placement, _fillable(write, slices), record_bytes, options.sizing)


def _combined(write: Write, incoming: Incoming, engine: Engine) -> Positions:
    options = write.options
    decides = options.merge_rule.ordered_in_input and options.operation != "delete"
    ordering = options.ordering if decides else ()
    tasks = plan_combine(incoming, ordering, options.delete_marker, whole_input=options.index.is_global)
    return run_combine(tasks, write.engines.local if incoming.in_memory else engine)


def _partition_starts(incoming: Incoming) -> tuple[tuple[str, ...], Any]:
    starts: dict[str, int] = {}
    for part in incoming.parts:
        starts.setdefault(part.partition, part.offset)
    return tuple(starts), np.array(list(starts.values()), dtype=np.int64)


def _look_up(  # noqa: PLR0917
    write: Write,
    incoming: Incoming,
    unique: Positions,
    slices: Sequence[FileSlice],
    engine: Engine,
    partitions: PartitionMap,
) -> list[SliceHits]:
    """Where the keys of the rows `unique` are stored."""
    options = write.options
    if not len(unique):
        return []
    whole = keys_of(incoming, unique) if options.index.is_global else None
    by_partition = (
        {}
        if whole
        else {name: keys_of(incoming.of(name), positions) for name, positions in partitions.split(unique).items()}
    )
    moves = options.moves_partitions and options.operation == "upsert"
    ordered = moves and options.merge_rule.ordered_against_stored and options.ordering
    also = pa.schema([write.schema.field(name) for name in root_columns(options.ordering)]) if ordered else None
    searched = [(one, one.base) for one in slices if one.base is not None and (whole or one.partition in by_partition)]
    tasks = [
        LookupTask(
            write.handle.storage,
            base.path,
            whole or by_partition[one.partition],
            options.index,
            options.prune_by_ranges,
            None if options.populate_meta_fields else options.keys,
            also,
        )
        for one, base in searched
    ]
    found = engine.run(find_in_file, tasks, "index")
    return [
        SliceHits(one, hits.rows, hits.positions, _wins(write, incoming, partitions, one, hits))
        for (one, _), hits in zip(searched, found, strict=True)
        if len(hits.rows)
    ]


def _wins(write: Write, incoming: Incoming, partitions: PartitionMap, one: FileSlice, hits: FileHits) -> Any:
    """Per hit whether the incoming row beats the stored one; asked only of rows that would leave their partition."""
    wins = np.ones(len(hits.positions), dtype=bool)
    away = partitions.elsewhere(hits.positions, one.partition)
    if hits.stored is None or not away.any():
        return wins
    rows = incoming.select(hits.positions[away]).load()
    stored = hits.stored.filter(pa.array(away))
    names = write.options.ordering
    deleted = pa.array(is_deleted(rows, write.options.delete_marker))
    wins[away] = newer_wins(ordering_values(rows, names), ordering_values(stored, names), deleted)
    return wins


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
    return without(rows, same_keys(incoming, found, losers, whole_input=write.options.index.is_global))


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
    present = np.unique(np.concatenate([hit.positions for hit in hits])) if hits else EMPTY
    if write.options.duplicate_policy is DuplicatePolicy.FAIL and len(present):
        key = incoming.select(present[:1]).load().column(KEY)[0].as_py()
        raise Invalid(
            f"{len(present)} of the keys to insert are in the table already, for example {key!r}",
            remedy="Use operation upsert, or hoodie.datasource.insert.dup.policy=drop to skip them",
            keys=len(present),
        )
    return without(free, present)


def _fillable(write: Write, slices: Sequence[FileSlice]) -> Mapping[str, list[FileSlice]]:
    """Per partition the slices that may take new rows."""
    fillable: dict[str, list[FileSlice]] = {}
    if write.options.fills_small_files:
        reserved = load_reserved(write.handle.storage, write.timeline)
        for one in slices:
            if one.base is not None and one.group_id not in reserved:
                fillable.setdefault(one.partition, []).append(one)
    return fillable


def _replaced(
    write: Write, partitions: Sequence[str], slices: Sequence[FileSlice]
) -> Mapping[str, tuple[str, ...]] | None:
    """File groups the new rows take the place of; None for a write that replaces none."""
    match write.options.replaces:
        case "nothing":
            return None
        case "partitions":
            return plan_replaced(slices, partitions)
        case "table":
            return plan_replaced(slices, {one.partition for one in slices})


def _commits(write: Write) -> Iterator[CommitMetadata]:
    """Metadata of completed commits, newest first; read only as far as the caller goes."""
    for instant in reversed(write.timeline.completed_writes()):
        yield load_commit_metadata(write.handle.storage, write.handle.profile, instant)


def _tasks(write: Write, incoming: Incoming, files: Sequence[PlannedFile]) -> list[FileTask]:
    target = _target(write)
    tasks = []
    for file in files:
        wanted = np.concatenate([file.update_positions, file.insert_positions])
        old = file.slice.base if file.slice is not None else None
        tasks.append(
            FileTask(
                target=target,
                partition=file.partition,
                file_id=new_file_id(write.handle.env.uuid(), 0) if file.slice is None else file.slice.file_id,
                old_path=None if old is None else old.path,
                old_instant="" if old is None else old.name.instant,
                rows=incoming.select(wanted) if len(wanted) else RowsRef((), None, incoming.schema),
                update_rows=file.update_rows,
                drop_rows=file.drop_rows,
                merge_rule=write.options.merge_rule,
                ordering=write.options.ordering,
            )
        )
    return tasks


def _target(write: Write) -> WriteTarget:
    options = write.options
    return WriteTarget(
        storage=write.handle.storage,
        env=write.handle.env,
        instant=write.instant,
        schema=write.schema if write.table_schema is None else write.table_schema,
        dropped=options.dropped_columns,
        populate_meta_fields=options.populate_meta_fields,
        blank="" if options.operation == "bulk_insert" else None,
        table_name=write.handle.config.name,
        delete_marker=options.delete_marker,
        options=options.base_file,
    )


def _bulk_insert(write: Write, source: Source, keying: Keying) -> Committed:
    handle = write.handle
    replaced, known = None, frozenset[str]()
    if write.options.replaces == "table":
        slices = load_view(handle.storage, handle.config, write.timeline).slices_at()
        known = frozenset(one.partition for one in slices)
        replaced = plan_replaced(slices, known)
    inflight = _open(write, "commit" if replaced is None else "replacecommit", None, replaced or {}, ())
    task = BulkTask(_target(write), keying, write.options.sizing.max_file_bytes)
    stats = run_bulk_insert(source, task, write.options.arrangement)
    return _finish(write, inflight, stats, replaced, known)


def _open(
    write: Write,
    action: str,
    workload: CommitMetadata | None,
    replaced: Mapping[str, tuple[str, ...]],
    files: Iterable[PlannedFile],
) -> Instant:
    """The inflight instant, after its requested file was created.

    Raises:
        Conflict: the write wants file groups of a pending clustering, or its instant exists.
    """
    home = write.overwritten or write.handle
    changed = [file.slice.group_id for file in files if file.slice is not None]
    changed.extend((partition, file_id) for partition, ids in replaced.items() for file_id in ids)
    if changed:
        ensure_free(changed, load_reserved(home.storage, write.timeline))
    plan = b""
    if action == "replacecommit":
        request = EMPTY_REPLACE
        if write.options.operation == "delete_partition":
            request = delete_partition_request(home.profile.dialect)
        plan = encode_requested_replace(request, home.profile.dialect)
    try:
        instant = create_requested(home.storage, home.profile, write.instant, action, plan)
    except Conflict as error:
        raise InstantTaken(error.cause, remedy=error.remedy, **error.facts) from error
    payload = b"" if workload is None else home.profile.commit_codec.encode(workload, action)
    return to_inflight(home.storage, home.profile, instant, payload)


def _finish(
    write: Write,
    inflight: Instant,
    stats: Sequence[WriteStat],
    replaced: Mapping[str, tuple[str, ...]] | None,
    known_partitions: Iterable[str],
) -> Committed:
    options, extra = write.options, dict(write.options.extra_metadata)
    if write.table_schema is not None:
        extra[keys.SCHEMA_EXTRA] = to_avro(write.table_schema, write.handle.config.name)
    outcome = Outcome(options.recorded_operation, tuple(stats), extra, replaced)
    if write.overwritten is not None:
        done = finish_overwrite(write.overwritten, write.handle, inflight, outcome)
    else:
        done = finish(write.handle, write.timeline, inflight, outcome, known_partitions)
    return outcome.committed(done, options.operation)
