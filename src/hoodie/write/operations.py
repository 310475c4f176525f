"""The write operations of a copy-on-write table, from rows to a completed instant.

1. Order of events: evaluate the input once, tag, plan, open the instant, write files, finalise, complete. For bad rows
   found in the first step nothing has been written at all.
2. A bulk insert writes while it reads, so its instant is opened first and rolled back when the input turns out bad.
3. Every operation is `plan` over values and `run` through an engine; this module only puts them in order.

The caller holds the table's writer exclusion and has rolled back failed writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.engine import Engine, Source
from hoodie.errors import Invalid
from hoodie.handle import TableHandle
from hoodie.index import LookupTask, find_in_file
from hoodie.records import newer_wins, to_avro
from hoodie.spec import (
    EMPTY_REPLACE,
    CommitMetadata,
    Instant,
    WriteStat,
    delete_partition_request,
    encode_requested_replace,
    marker_dir,
    new_file_id,
    workload_profile,
)
from hoodie.timeline import Timeline, create_requested, load_commit_metadata, new_instant_time, to_inflight
from hoodie.view import FileSlice, View, load_view
from hoodie.write.bulk import BulkTask, run_bulk_insert
from hoodie.write.combine import KeptKeys, plan_combine, run_combine
from hoodie.write.commit import Committed, drop_leftovers, finish
from hoodie.write.file_sizing import average_record_bytes
from hoodie.write.file_task import FileTask, WriteTarget, write_file
from hoodie.write.incoming import KEY, Incoming, RowsRef
from hoodie.write.intake import Keying, Spool, local_job, run_intake
from hoodie.write.options import DuplicatePolicy, WriteOptions
from hoodie.write.plan import (
    EMPTY,
    PartitionMap,
    PlannedFile,
    SliceHits,
    place_deletes,
    place_inserts,
    place_upserts,
    plan_files,
    plan_work,
)
from hoodie.write.replace import plan_replaced

_LOOKED_AT_COMMITS = 10


@dataclass(frozen=True, slots=True)
class Engines:
    """Where a commit may run: threads of the driver, or spread over the cluster (the same object when there is none)."""

    local: Engine
    spread: Engine


@dataclass(frozen=True, slots=True)
class Write:
    """One write operation, ready to run.

    `schema` is the write schema and `table_schema` what the table has afterwards (both data columns only).
    """

    handle: TableHandle
    timeline: Timeline
    options: WriteOptions
    engines: Engines
    schema: pa.Schema
    table_schema: pa.Schema


def run_write(write: Write, source: Source) -> Committed:
    """The outcome of the operation `write.options.operation` with the rows of `source`.

    Raises:
        Invalid: rows without key, bad partition values, duplicates under policy `fail`.
        Fenced: another writer rolled this write back.
    """
    handle = write.handle
    requested = new_instant_time(handle.env, handle.config.timezone, write.timeline.last_time())
    keying = Keying(write.options.keys, write.schema, requested)
    try:
        if write.options.writes_while_reading:
            return _bulk_insert(write, source, keying)
        return _write_tagged(write, _intake(write, source, keying), requested)
    finally:
        drop_leftovers(handle, f"{requested}{_SPOOL_SUFFIX}")


_SPOOL_SUFFIX = ".spool"


def delete_partitions(write: Write, partitions: Sequence[str]) -> Committed:
    """The outcome of replacing every file group of `partitions` by nothing."""
    handle = write.handle
    requested = new_instant_time(handle.env, handle.config.timezone, write.timeline.last_time())
    view = load_view(handle.storage, handle.config, write.timeline, partitions=partitions)
    replaced = plan_replaced(view.slices_at(), partitions)
    inflight = _open(write, requested, "replacecommit", workload_profile(write.options.operation.upper(), {}))
    return _finish(write, inflight, [], replaced, partitions)


def _intake(write: Write, source: Source, keying: Keying) -> Incoming:
    folder = marker_dir(keying.instant) + _SPOOL_SUFFIX
    return run_intake(source, keying, Spool(write.handle.storage, folder, write.options.inline_bytes))


def _write_tagged(write: Write, incoming: Incoming, requested: str) -> Committed:
    options = write.options
    touched = None if options.index.is_global and options.looks_up else incoming.partitions
    view = load_view(write.handle.storage, write.handle.config, write.timeline, partitions=touched)
    slices = view.slices_at()
    held = sum(one.base.size_bytes for one in slices if one.base is not None)
    engine = local_job(incoming, held, options.local_job_bytes, write.engines.spread, write.engines.local)
    kept = _combine(write, incoming, engine)
    files = _plan(write, incoming, kept, slices, engine)
    replaced = _replaced(write, incoming, view)
    action = "commit" if replaced is None else "replacecommit"
    inflight = _open(write, requested, action, workload_profile(options.operation.upper(), plan_work(files)))
    stats = engine.run(write_file, _tasks(write, incoming, files, requested), options.operation)
    return _finish(write, inflight, stats, replaced, {one.partition for one in slices})


def partitions_of(write: Write, source: Source) -> tuple[str, ...]:
    """Partition paths of the rows of `source`: what a partition delete with rows means."""
    keying = Keying(write.options.keys, write.schema, "")
    return _intake(write, source, keying).partitions


def _combine(write: Write, incoming: Incoming, engine: Engine) -> Any:
    options = write.options
    if not options.combine:
        return incoming.positions()
    decides = options.merge_rule.ordered_in_input and options.operation != "delete"
    ordering = options.ordering if decides else ()
    tasks = plan_combine(incoming, ordering, whole_input=options.index.is_global and options.looks_up)
    return run_combine(tasks, engine)


def _plan(
    write: Write, incoming: Incoming, kept: Any, slices: Sequence[FileSlice], engine: Engine
) -> tuple[PlannedFile, ...]:
    options = write.options
    partitions = PartitionMap(*_partition_starts(incoming))
    if options.operation == "delete":
        return place_deletes(_look_up(write, incoming, kept, slices, engine, partitions)).files
    if options.is_overwrite:
        placement, fillable = place_inserts(kept, partitions), {}
    elif options.operation == "upsert":
        hits = _look_up(write, incoming, kept, slices, engine, partitions)
        placement = place_upserts(kept, hits, partitions, move_partitions=options.moves_partitions)
        fillable = _fillable(slices)
    else:
        kept = _without_duplicates(write, incoming, kept, slices, engine, partitions)
        placement, fillable = place_inserts(kept, partitions), _fillable(slices)
    record_bytes = average_record_bytes(_commits(write), options.sizing)
    return plan_files(placement, fillable, record_bytes, options.sizing)


def _partition_starts(incoming: Incoming) -> tuple[tuple[str, ...], Any]:
    starts: dict[str, int] = {}
    for part in incoming.parts:
        starts.setdefault(part.partition, part.offset)
    return tuple(starts), np.array(list(starts.values()), dtype=np.int64)


def _look_up(
    write: Write,
    incoming: Incoming,
    kept: Any,
    slices: Sequence[FileSlice],
    engine: Engine,
    partitions: PartitionMap,
) -> list[SliceHits]:
    options = write.options
    if not incoming.rows:
        return []
    whole = KeptKeys(incoming, kept) if options.index.is_global else None
    by_partition = (
        {}
        if whole
        else {name: KeptKeys(incoming.of(name), positions) for name, positions in partitions.split(kept).items()}
    )
    also = options.ordering if options.moves_partitions and options.merge_rule.ordered_against_stored else ()
    searched = [one for one in slices if one.base is not None and (whole or one.partition in by_partition)]
    tasks = [
        LookupTask(
            write.handle.storage,
            one.base.path if one.base is not None else "",
            whole or by_partition[one.partition],
            options.index,
            options.prune_by_ranges,
            None if options.populate_meta_fields else options.keys,
            also,
        )
        for one in searched
    ]
    found = engine.run(find_in_file, tasks, "index")
    return [
        SliceHits(one, hits.rows, hits.positions, _wins(write, incoming, hits))
        for one, hits in zip(searched, found, strict=True)
        if len(hits.rows)
    ]


def _wins(write: Write, incoming: Incoming, hits: Any) -> Any:
    if hits.stored is None:
        return np.ones(len(hits.positions), dtype=bool)
    rows = incoming.select(hits.positions).load()
    names = write.options.ordering
    return newer_wins([rows.column(name) for name in names], [hits.stored.column(name) for name in names])


def _without_duplicates(
    write: Write, incoming: Incoming, kept: Any, slices: Sequence[FileSlice], engine: Engine, partitions: PartitionMap
) -> Any:
    policy = write.options.duplicate_policy
    if policy is DuplicatePolicy.NONE:
        return kept
    hits = _look_up(write, incoming, kept, slices, engine, partitions)
    present = np.unique(np.concatenate([hit.positions for hit in hits])) if hits else EMPTY
    if policy is DuplicatePolicy.FAIL and len(present):
        key = incoming.select(present[:1]).load().column(KEY)[0].as_py()
        raise Invalid(
            f"{len(present)} of the rows to insert have keys the table already holds, for example {key!r}",
            remedy="Use operation upsert, or hoodie.datasource.insert.dup.policy=drop to skip them",
            keys=len(present),
        )
    return np.setdiff1d(kept, present)


def _fillable(slices: Sequence[FileSlice]) -> Mapping[str, list[FileSlice]]:
    fillable: dict[str, list[FileSlice]] = {}
    for one in slices:
        if one.base is not None:
            fillable.setdefault(one.partition, []).append(one)
    return fillable


def _replaced(write: Write, incoming: Incoming, view: View) -> Mapping[str, tuple[str, ...]] | None:
    if not write.options.is_overwrite:
        return None
    if write.options.operation == "insert_overwrite":
        return plan_replaced(view.slices_at(), incoming.partitions)
    whole = load_view(write.handle.storage, write.handle.config, write.timeline)
    return plan_replaced(whole.slices_at(), whole.partitions)


def _commits(write: Write) -> Iterator[CommitMetadata]:
    """Metadata of the newest completed commits, newest first; read only as far as the caller goes."""
    done = [one for one in write.timeline.completed_writes() if one.action == "commit"]
    for instant in reversed(done[-_LOOKED_AT_COMMITS:]):
        yield load_commit_metadata(write.handle.storage, write.handle.profile, instant)


def _tasks(write: Write, incoming: Incoming, files: Sequence[PlannedFile], requested: str) -> list[FileTask]:
    target = _target(write, requested)
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


def _target(write: Write, requested: str) -> WriteTarget:
    options = write.options
    return WriteTarget(
        storage=write.handle.storage,
        env=write.handle.env,
        instant=requested,
        schema=write.table_schema,
        dropped=options.dropped_columns,
        populate_meta_fields=options.populate_meta_fields,
        table_name=write.handle.config.name,
        delete_marker=options.delete_marker,
        options=options.base_file,
    )


def _bulk_insert(write: Write, source: Source, keying: Keying) -> Committed:
    handle = write.handle
    replaced, known = None, frozenset[str]()
    if write.options.is_overwrite:
        view = load_view(handle.storage, handle.config, write.timeline)
        replaced, known = (
            plan_replaced(view.slices_at(), view.partitions),
            frozenset(one.partition for one in view.slices_at()),
        )
    inflight = _open(write, keying.instant, "commit" if replaced is None else "replacecommit", None)
    task = BulkTask(_target(write, keying.instant), keying, write.options.sizing.max_file_bytes)
    stats = run_bulk_insert(source, task, write.options.arrangement)
    return _finish(write, inflight, stats, replaced, known)


def _open(write: Write, requested: str, action: str, profile_of_work: CommitMetadata | None) -> Instant:
    """The inflight instant, after its requested file was created."""
    handle = write.handle
    plan = b""
    if action == "replacecommit":
        request = EMPTY_REPLACE
        if write.options.operation == "delete_partition":
            request = delete_partition_request(handle.profile.dialect)
        plan = encode_requested_replace(request, handle.profile.dialect)
    instant = create_requested(handle.storage, handle.profile, requested, action, plan)
    payload = b"" if profile_of_work is None else handle.profile.commit_codec.encode(profile_of_work, action)
    return to_inflight(handle.storage, handle.profile, instant, payload)


def _finish(
    write: Write,
    inflight: Instant,
    stats: Sequence[WriteStat],
    replaced: Mapping[str, tuple[str, ...]] | None,
    known_partitions: Any,
) -> Committed:
    extra = {**write.options.extra_metadata, "schema": to_avro(write.table_schema, write.handle.config.name)}
    return finish(write.handle, inflight, write.options.operation, stats, extra, replaced, known_partitions)
