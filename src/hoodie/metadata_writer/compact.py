"""Compaction of the metadata table: log files of its groups into new base files.

1. It is due after so many delta commits, and waits while one of them does not count yet: the instant of the table that
   it belongs to is pending. What it merged could not be taken back.
2. Version 6 has one more condition (the log of a later commit is named by the slice it finds): nothing of the table is
   pending that is not newer than the last delta commit. Its instant is that delta commit's with the suffix 001; later
   versions take a new time.
3. The plan is stored first. A compaction that dies is finished by the next writer, before it writes anything: the files
   have the same names and content again.
4. Tombstones have done their work once everything is merged; they are left out.
5. Records of two releases are in the schema of the newer one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine, LocalEngine, TaskId
from hoodie.hfile import encode_hfile
from hoodie.metadata.all_records import merged_records
from hoodie.metadata.commit_order import in_commit_order
from hoodie.metadata.damage import naming_metadata_table
from hoodie.metadata.encode_records import encode_records
from hoodie.metadata.file_entries import FILES_MAP
from hoodie.metadata.merge import STATS
from hoodie.metadata.records import read_group
from hoodie.metadata.valid_instants import valid_instants
from hoodie.metadata.whole_groups import SeenGroup, ensure_whole
from hoodie.metadata_writer.delta_commit import COMPACT, finish
from hoodie.metadata_writer.slots import base_name, base_stat
from hoodie.metadata_writer.undo import last_compaction
from hoodie.spec import (
    COMPACTION,
    DELTA_COMMIT,
    AvroGeneration,
    Instant,
    InstantTime,
    State,
    encode_container,
    metadata_record_schema,
)
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage
from hoodie.timeline import Timeline, create_requested, ensure_newest, new_instant_time, to_inflight
from hoodie.view import FileSlice, list_files, view_of

log = logging.getLogger(__name__)

_LISTING = LocalEngine(16)
_IS_TIGHT = "isTightBound"
_DELETABLE = (STATS, "BloomFilterMetadata", "SecondaryIndexMetadata")


def compact_if_due(
    handle: TableHandle, metadata: TableHandle, engine: Engine, compact_after: int, partitions: Sequence[str]
) -> Instant | None:
    """The completed compaction of the metadata table `metadata` of `handle`, if one was due. `partitions` are those
    that are maintained. One that died is finished before: the slices it began have no base files yet.
    """
    table = timeline_of(handle)
    timeline = finish_compactions(metadata, table, timeline_of(metadata), engine)
    if not has_enough(metadata, timeline, compact_after):
        return None
    instant = plan_instant(metadata, table, timeline)
    if instant is None:
        return None
    parts = [one for one in _slices(metadata, timeline, partitions, instant) if one.logs]
    if not parts:
        return None
    plan = _plan(parts)
    requested = create_requested(metadata.storage, metadata.profile, instant, COMPACTION, plan)
    ensure_newest(metadata.storage, metadata.profile, requested, timeline.instants, metadata.config.timezone)
    inflight = to_inflight(metadata.storage, metadata.profile, requested, is_new=True)
    return _run(metadata, table, timeline, inflight, parts, engine)


def finish_compactions(metadata: TableHandle, table: Timeline, timeline: Timeline, engine: Engine) -> Timeline:
    """The timeline of the metadata table after its pending compactions were completed."""
    plans = PendingPlans(metadata.storage, timeline)
    for one in plans.instants(COMPACTION):
        log.info("finishing the compaction %s of the metadata table", one.requested)
        groups = set(plans.groups(one))
        found = _slices(metadata, timeline, sorted({partition for partition, _ in groups}), one.requested)
        parts = [part for part in found if part.group_id in groups]
        inflight = one if one.state is State.INFLIGHT else to_inflight(metadata.storage, metadata.profile, one)
        _run(metadata, table, timeline, inflight, parts, engine)
        timeline = timeline_of(metadata)
    return timeline


def has_enough(metadata: TableHandle, timeline: Timeline, compact_after: int) -> bool:
    """Whether there are as many delta commits since the last compaction."""
    since = last_compaction(timeline) or ""
    commits = (one for one in timeline.completed() if one.action == DELTA_COMMIT)
    return sum(metadata.profile.clock.of(one) > since for one in commits) >= compact_after


def plan_instant(metadata: TableHandle, table: Timeline, timeline: Timeline) -> InstantTime | None:
    """The instant of a compaction that is made now; None while none may be."""
    commits = [one for one in timeline.completed() if one.action == DELTA_COMMIT]
    counting = valid_instants(table, timeline)
    if not commits or any(one.requested not in counting for one in commits):
        return None
    instants, last = metadata.profile.metadata_instants, max(one.requested for one in commits)
    if instants.has_to_wait(one for one in table.pending() if one.requested <= last):
        return None
    return instants.compaction(last) or new_instant_time(metadata.env, metadata.config.timezone, timeline.last_time())


def _slices(
    metadata: TableHandle, timeline: Timeline, partitions: Sequence[str], instant: InstantTime
) -> tuple[FileSlice, ...]:
    """The newest slice of each file group that began before `instant`."""
    files = list_files(metadata.storage, partitions, engine=_LISTING)
    groups = view_of(timeline, files, {}, PendingPlans(metadata.storage, timeline).compactions()).groups
    newest = (next((part for part in group.slices if part.base_instant < instant), None) for group in groups)
    return tuple(in_commit_order(part, timeline) for part in newest if part is not None and not part.is_empty)


def _run(  # noqa: PLR0917
    metadata: TableHandle,
    table: Timeline,
    timeline: Timeline,
    inflight: Instant,
    parts: Sequence[FileSlice],
    engine: Engine,
) -> Instant:
    counting = valid_instants(table, timeline)
    tasks = [
        _MergeTask(
            metadata.storage,
            part,
            counting,
            f"{part.partition}/{base_name(part.file_id, number, inflight.requested)}",
            metadata.profile.avro_generation,
        )
        for number, part in enumerate(parts)
    ]
    is_small = sum(part.size_bytes for part in parts) < 16 * 1024 * 1024
    with naming_metadata_table():
        done = (LocalEngine(1) if is_small else engine).run(_merge, tasks, "compact metadata table")
        merged = _until(timeline, inflight.requested)
        ensure_whole(metadata.storage, merged, counting.__contains__, [seen for _, _, seen in done], {}, _LISTING)
    stats = tuple(
        base_stat(part.partition, part.file_id, task.path.rpartition("/")[2], size, rows)
        for part, task, (size, rows, _) in zip(parts, tasks, done, strict=True)
    )
    return finish(metadata, inflight, stats, COMPACT)


def _until(timeline: Timeline, compaction: InstantTime) -> Timeline:
    """The timeline without what is committed to the slices that a compaction begins."""
    clock = timeline.profile.clock
    return replace(timeline, instants=tuple(one for one in timeline.instants if clock.of(one) < compaction))


def _plan(parts: Sequence[FileSlice]) -> bytes:
    operations = [
        {
            "baseInstantTime": part.base_instant,
            "deltaFilePaths": [one.name.text for one in reversed(part.logs)],
            "dataFilePath": None if part.base is None else part.base.name.text,
            "fileId": part.file_id,
            "partitionPath": part.partition,
            "metrics": {
                "TOTAL_LOG_FILES": float(len(part.logs)),
                "TOTAL_LOG_FILES_SIZE": float(sum(one.size_bytes for one in part.logs)),
            },
        }
        for part in parts
    ]
    return encode_container("HoodieCompactionPlan", {"operations": operations, "extraMetadata": {}, "version": 2})


@dataclass(frozen=True, slots=True)
class _MergeTask:
    storage: Storage
    part: FileSlice
    counting: frozenset[InstantTime]
    path: str
    avro_generation: AvroGeneration


def _merge(_: TaskId, task: _MergeTask) -> tuple[int, int, SeenGroup]:
    """Bytes and records of the base file that was written, and what was found in what it was made from."""
    parts, seen = read_group(task.storage, task.part, task.counting.__contains__)
    rows = _with_bounds_said(_live(merged_records(task.part.partition, parts)))
    generation: AvroGeneration = "1.x" if "SecondaryIndexMetadata" in rows.column_names else task.avro_generation
    if rows.num_rows:
        keys, values = encode_records(rows, generation)
    else:
        keys, values = pa.array([], pa.string()), pa.array([], pa.binary())
    data = encode_hfile(keys, values, schema=metadata_record_schema(generation))
    with task.storage.open_output(task.path) as out:
        out.write(data)
    return len(data), len(keys), seen


def _live(rows: pa.Table) -> pa.Table:
    """The records without tombstones; those of files without the files that are gone."""
    for name in _DELETABLE:
        if name in rows.column_names:
            is_gone = pc.fill_null(pc.struct_field(rows.column(name), "isDeleted"), False)
            rows = rows.filter(pc.invert(is_gone))
    if FILES_MAP not in rows.column_names or not rows.num_rows:
        return rows
    at = rows.schema.get_field_index(FILES_MAP)
    maps = [_live_files(one) for one in rows.column(at).to_pylist()]
    return rows.set_column(at, FILES_MAP, pa.array(maps, rows.schema.field(at).type))


def _with_bounds_said(rows: pa.Table) -> pa.Table:
    """The records, where those of the older release do not say whether bounds are tight with what that means: no."""
    at = rows.schema.get_field_index(STATS)
    place = -1 if at < 0 else rows.schema.field(at).type.get_field_index(_IS_TIGHT)
    if place < 0:
        return rows
    stats = rows.column(at).combine_chunks()
    members = stats.flatten()
    members[place] = pc.fill_null(members[place], False)
    told = pa.StructArray.from_arrays(members, fields=list(stats.type), mask=stats.is_null())
    return rows.set_column(at, rows.schema.field(at), told)


def _live_files(files: list[tuple[str, dict[str, Any]]] | None) -> list[tuple[str, dict[str, Any]]] | None:
    return None if files is None else [(name, info) for name, info in files if not info["isDeleted"]]
