"""The write operations, from rows to a completed instant.

1. Order of events: evaluate the input once, tag, plan, open the instant, write files, finalise, complete. For bad rows
   found in the first step nothing has been written at all.
2. A bulk insert writes while it reads, so its instant is opened first; the caller takes it back when the input turns
   out bad.
3. Every operation is `plan` over values and `run` through an engine; this module only puts them in order.
4. A merge-on-read table takes changes of stored rows in log files and new rows in base files; everything before that is
   the same for both kinds of table.

The caller holds the table lock, has rolled back failed writes, and undoes this one when it raises.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.engine import Arrangement, Engine, Source, TaskId
from hoodie.errors import Conflict, HudiError, Invalid
from hoodie.fileview import WriterView
from hoodie.index import Positions
from hoodie.records import to_avro
from hoodie.records.deletion import deletion_columns, is_deleted
from hoodie.spec import (
    EMPTY_REPLACE,
    REPLACE_COMMIT,
    CommitMetadata,
    Instant,
    WriteStat,
    delete_partition_request,
    encode_requested_replace,
    keys,
    marker_dir,
    new_file_id,
    workload_profile,
)
from hoodie.timeline import create_requested, load_commit_metadata, to_inflight
from hoodie.view import FileSlice, View
from hoodie.write.buckets import (
    BucketHomes,
    load_homes,
    plan_bucket_files,
    renewed_rings,
    settle_rings,
    spool_buckets,
    store_rings,
)
from hoodie.write.bulk import BulkTask, run_bulk_insert
from hoodie.write.change_log import change_logging_of
from hoodie.write.combine import plan_combine, run_combine, same_keys, sorted_by_key
from hoodie.write.commit import Committed, Outcome, fenced_when_gone, finish
from hoodie.write.file_sizing import average_record_bytes, fillable_beside_logs
from hoodie.write.file_task import FileTask, WriteTarget, write_file
from hoodie.write.incoming import KEY, Incoming, RowsRef
from hoodie.write.intake import Keying, Spool, load_partition_paths, local_job, run_intake
from hoodie.write.job import Write
from hoodie.write.log_place import Compactions, log_place, new_group_place, pending_compactions
from hoodie.write.log_task import LogOptions, LogTask, append_log
from hoodie.write.look_up import Question, look_up
from hoodie.write.options import DuplicatePolicy
from hoodie.write.overwrite import finish_overwrite
from hoodie.write.plan import (
    EMPTY,
    PartitionMap,
    PlannedFile,
    SliceHits,
    goes_to_log,
    place_deletes,
    place_inserts,
    place_upserts,
    plan_files,
    plan_work,
    without,
)
from hoodie.write.replace import plan_replaced
from hoodie.write.reserved import ensure_free, load_reserved
from hoodie.write.skeletons import load_skeleton_sources, stitched_rows, with_source_bytes

log = logging.getLogger(__name__)

_SPOOL_SUFFIX = ".spool"
_SORTED = (
    Arrangement.GLOBAL_SORT,
    Arrangement.PARTITION_SORT,
    Arrangement.PARTITION_PATH_REPARTITION_AND_SORT,
)


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
    keying = Keying(
        options.keys,
        write.schema,
        write.instant,
        arrival=competes,
        carried=options.carried_keys,
        storage=write.handle.storage,
    )
    if options.writes_while_reading:
        return _bulk_insert(write, source, keying)
    buckets = None if options.buckets is None else spool_buckets(options.buckets)
    spool = Spool(write.handle.storage, marker_dir(write.instant) + _SPOOL_SUFFIX, options.inline_bytes, buckets)
    try:
        incoming = run_intake(source, keying, spool)
        committed = _write_tagged(write, incoming)
    except BaseException:
        _drop_spooled(write, spool)
        raise
    if not incoming.in_memory:
        _drop_spooled(write, spool)
    return committed


def _drop_spooled(write: Write, spool: Spool) -> None:
    """Delete the input that waited in files. A failure costs disk space only, so it is logged."""
    try:
        write.handle.storage.delete_dir(spool.folder)
    except HudiError as error:
        log.warning("could not delete the spooled input of %s: %s", write.instant, error)


def delete_partitions(write: Write, partitions: Sequence[str]) -> Committed:
    """The outcome of replacing every file group of `partitions` by nothing."""
    view = _load_view(write, partitions)
    replaced = plan_replaced(view.slices_at(), partitions)
    inflight = _open(write, "replacecommit", workload_profile(write.options.recorded_operation, {}), replaced, ())
    asked = write.options.buckets
    with fenced_when_gone(write.handle, inflight):
        rings = () if asked is None or not asked.consistent else renewed_rings(write, asked, partitions, view)
        store_rings(write, rings)
        committed = _finish(write, inflight, [], replaced, partitions)
    settle_rings(write, rings)
    return committed


def partitions_of(write: Write, source: Source) -> tuple[str, ...]:
    """Partition paths of the rows of `source`: what a partition delete with rows means."""
    return load_partition_paths(
        source, Keying(write.options.keys, write.schema, write.instant, carried=write.options.carried_keys)
    )


def _write_tagged(write: Write, incoming: Incoming) -> Committed:
    options = write.options
    view = _view(write, incoming)
    write = replace(write, timeline=view.timeline)  # the view may have learnt which archived writes were committed
    slices = view.slices_at()
    touches = options.looks_up or options.fills_small_files
    if touches:
        write = replace(write, sources=load_skeleton_sources(write.handle, slices))
    sized = [with_source_bytes(write, one) for one in slices] if touches else []
    held = sum(one.base.size_bytes for one in sized if one.base is not None)
    engine = local_job(incoming, held, options.local_job_bytes, write.engines.spread, write.engines.local)
    compactions = pending_compactions(view)
    homes = None if options.buckets is None else load_homes(write, options.buckets, incoming, view, engine)
    files = _plan(write, incoming, slices, compactions, engine, homes)
    replaced = _replaced(write, incoming.partitions, slices)
    action = write.handle.config.write_action if replaced is None else REPLACE_COMMIT
    work = workload_profile(options.recorded_operation, plan_work(files))
    inflight = _open(write, action, work, replaced or {}, files)
    rings = () if homes is None else homes.rings
    tasks = _tasks(write, incoming, files, compactions)
    if all(isinstance(task, LogTask) for task in tasks):
        # Log files are written from the rows at hand: only these count, not the files they were looked up in.
        engine = local_job(incoming, 0, options.local_job_bytes, write.engines.spread, write.engines.local)
    with fenced_when_gone(write.overwritten or write.handle, inflight):
        store_rings(write, rings)
        written = engine.run(_write_task, tasks, options.operation)
        stats = [stat for group in written for stat in group]
        committed = _finish(write, inflight, stats, replaced, {one.partition for one in slices})
    settle_rings(write, rings)
    return committed


def _view(write: Write, incoming: Incoming) -> View:
    """The part of the table this write has to know."""
    options = write.options
    everywhere = options.replaces == "table" or (options.index.is_global and options.looks_up)
    partitions = None if everywhere else incoming.partitions
    return _load_view(write, partitions)


def _load_view(write: Write, partitions: Collection[str] | None = None) -> View:
    """The table, or some of its partitions, by its metadata table where it has one."""
    return WriterView(write.handle, write.timeline).load(partitions)


def _plan(  # noqa: PLR0917
    write: Write,
    incoming: Incoming,
    slices: Sequence[FileSlice],
    compactions: Compactions,
    engine: Engine,
    homes: BucketHomes | None,
) -> tuple[PlannedFile, ...]:
    """The files to write. `unique` has one row for each key, `free` the rows that may become new rows of the table."""
    options = write.options
    rows = incoming.positions()
    unique = _combined(write, incoming, engine) if options.combine or options.looks_up else rows
    partitions = PartitionMap(*_partition_starts(incoming))
    asked = Question(incoming, unique, partitions)
    hits = look_up(write, asked, slices, engine, homes) if options.looks_up else []
    if options.operation == "delete" and options.looks_up:
        return place_deletes(hits).files
    free = unique if options.combine else _without_twins(write, incoming, rows, unique, hits)
    free = without(free, _deletes(write, incoming))
    if options.partial is not None:
        # What a partial row does not say of a new key nobody knows: it has nothing to update.
        return place_upserts(EMPTY, [hit.stored for hit in hits], partitions, move_partitions=False).files
    if options.operation == "upsert" and options.looks_up:
        placement = place_upserts(free, hits, partitions, move_partitions=options.moves_partitions)
    else:
        free = _not_stored(write, incoming, free, hits)
        is_sorted = options.operation == "bulk_insert" and options.arrangement in _SORTED
        placement = place_inserts(sorted_by_key(incoming, free) if is_sorted else free, partitions, hits)
    if homes is not None:
        most = sum(len(homes.split(rows)) for rows in placement.inserts.values())
        uuids = [write.handle.env.uuid() for _ in range(most)]
        return plan_bucket_files(placement, homes, uuids, to_logs=options.changes_logs)
    record_bytes = average_record_bytes(_commits(write), options.sizing) if placement.inserts else 1
    return plan_files(placement, _fillable(write, slices, compactions), record_bytes, options.sizing)


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
        reserved = load_reserved(write.handle.storage, write.timeline)
        for one in slices:
            is_open = one.base is not None or options.inserts_to_logs
            if is_open and one.group_id not in reserved and one.group_id not in compactions:
                fillable.setdefault(one.partition, []).append(with_source_bytes(write, one))
    if options.log is None or options.inserts_to_logs:
        return fillable
    return {name: fillable_beside_logs(group, options.sizing) for name, group in fillable.items()}


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


def _tasks(
    write: Write, incoming: Incoming, files: Sequence[PlannedFile], compactions: Compactions
) -> list[FileTask | LogTask]:
    target = _target(write)
    options = write.options
    tasks: list[FileTask | LogTask] = []
    for file in files:
        if options.log is not None and options.changes_logs and goes_to_log(file, inserts_too=options.inserts_to_logs):
            tasks.append(_log_task(write, target, options.log, incoming, file, compactions))
        else:
            tasks.append(_file_task(write, target, incoming, file))
    return tasks


def _file_task(write: Write, target: WriteTarget, incoming: Incoming, file: PlannedFile) -> FileTask:
    return FileTask(
        target=target,
        partition=file.partition,
        file_id=_file_id(write, file),
        old=None if file.slice is None else file.slice.base,
        rows=_rows_of(incoming, file),
        update_rows=file.update_rows,
        drop_rows=file.drop_rows,
        merge_rule=write.options.merge_rule,
        ordering=write.options.ordering,
        stitched=stitched_rows(write, file.slice),
    )


def _log_task(  # noqa: PLR0917
    write: Write,
    target: WriteTarget,
    log: LogOptions,
    incoming: Incoming,
    file: PlannedFile,
    compactions: Compactions,
) -> LogTask:
    if file.slice is None:
        place = new_group_place(_file_id(write, file), write.instant)
    else:
        pending = compactions.get(file.slice.group_id)
        logs_changes = write.handle.config.cdc_enabled
        place = log_place(write.handle.profile.slicing, file.slice, write.instant, pending, logs_changes=logs_changes)
    keys_only = incoming.project([KEY])
    return LogTask(
        target=target,
        log=log,
        place=place,
        partition=file.partition,
        rows=_rows_of(incoming, file),
        update_rows=file.update_rows,
        gone=keys_only.select(file.drop_positions) if len(file.drop_positions) else _no_rows(keys_only),
        gone_rows=file.drop_rows,
        ordering=write.options.ordering,
        is_partial=write.options.partial is not None,
    )


def _write_task(task_id: TaskId, task: FileTask | LogTask) -> tuple[WriteStat, ...]:
    return append_log(task_id, task) if isinstance(task, LogTask) else (write_file(task_id, task),)


def _rows_of(incoming: Incoming, file: PlannedFile) -> RowsRef:
    """The rows of updates, then those of inserts."""
    wanted = np.concatenate([file.update_positions, file.insert_positions])
    return incoming.select(wanted) if len(wanted) else _no_rows(incoming)


def _no_rows(incoming: Incoming) -> RowsRef:
    return RowsRef((), None, incoming.schema)


def _file_id(write: Write, file: PlannedFile) -> str:
    if file.slice is not None:
        return file.slice.file_id
    return file.new_file_id or new_file_id(write.handle.env.uuid(), 0)


def _target(write: Write) -> WriteTarget:
    options = write.options
    schema = write.schema if write.table_schema is None else write.table_schema
    if options.partial is not None:
        schema = pa.schema([write.schema.field(name) for name in options.partial])
    return WriteTarget(
        storage=write.handle.storage,
        env=write.handle.env,
        instant=write.instant,
        schema=schema,
        dropped=options.dropped_columns,
        populate_meta_fields=options.populate_meta_fields,
        blank="" if options.operation == "bulk_insert" else None,
        table_name=write.handle.config.name,
        delete_marker=options.delete_marker,
        options=options.base_file,
        changes=change_logging_of(write.handle),
    )


def _bulk_insert(write: Write, source: Source, keying: Keying) -> Committed:
    handle = write.handle
    replaced, known = None, frozenset[str]()
    if write.options.replaces == "table":
        slices = _load_view(write).slices_at()
        known = frozenset(one.partition for one in slices)
        replaced = plan_replaced(slices, known)
    action = handle.config.write_action if replaced is None else REPLACE_COMMIT
    inflight = _open(write, action, None, replaced or {}, ())
    task = BulkTask(_target(write), keying, write.options.sizing.max_file_bytes)
    with fenced_when_gone(write.overwritten or handle, inflight):
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
    outcome = Outcome(
        options.recorded_operation, tuple(stats), extra, replaced, knows_inserts=not options.index.sees_logs
    )
    if write.overwritten is not None:
        done = finish_overwrite(write.overwritten, write.handle, inflight, outcome)
    else:
        done = finish(
            write.handle,
            write.timeline,
            inflight,
            outcome,
            known_partitions,
            write.engines.spread,
            write.guard,
            write.metadata,
        )
    return outcome.committed(done, options.operation)
