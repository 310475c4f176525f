"""One delta commit of the metadata table: records to file groups, their log files, its instant.

1. Names of the files are in the inflight instant before the first file is there: whoever finds a delta commit that is
   not completed knows what to delete.
2. Few records are encoded by threads of this process. `RecordTask`s run where the engine says: each leaves a spill
   file, then each file group is written by one task from its parts of them.
3. The completed instant is the last step. It means nothing to readers before the instant of the table completes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from hoodie.engine import Engine, LocalEngine, TaskId
from hoodie.errors import Invalid
from hoodie.metadata import IndexDefinition
from hoodie.metadata_writer.group_files import (
    Entries,
    GroupFile,
    Spilled,
    Written,
    entries_of,
    spill,
    write_base,
    write_log,
)
from hoodie.metadata_writer.indexes.registry import kind_of
from hoodie.metadata_writer.metadata_index import MetadataRecords, Records, RecordTask
from hoodie.metadata_writer.slots import Slot, base_name, base_stat, load_slots, log_name, log_stat
from hoodie.spec import (
    DELTA_COMMIT,
    AvroGeneration,
    CommitMetadata,
    Instant,
    InstantTime,
    WriteStat,
    keys,
    metadata_record_schema,
)
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage
from hoodie.timeline import Timeline, complete, create_requested, to_inflight
from hoodie.view import PartitionFiles

UPSERT = "UPSERT_PREPPED"
BULK_INSERT = "BULK_INSERT_PREPPED"
COMPACT = "COMPACT"

_SPREAD_FROM = 50_000
"""Records of one delta commit from which groups are encoded by tasks of the engine."""

_DRIVER = LocalEngine(16)
"""Few records are little work: threads send their files at the same time."""

GroupEntries = Mapping[tuple[str, str], tuple[Entries, ...]]
"""Entries by partition and file id."""


def write_delta_commit(  # noqa: PLR0917
    metadata: TableHandle,
    timeline: Timeline,
    instant: InstantTime,
    records: Sequence[Records],
    definitions: Mapping[str, IndexDefinition],
    engine: Engine,
    partitions: Iterable[str],
    listed: Mapping[str, PartitionFiles] = MappingProxyType({}),
) -> Instant:
    """The completed delta commit that holds `records`, which are of some of `partitions`. With none it is empty.
    `listed`: what lies in partitions that were listed before.

    Raises:
        Conflict: there is such a delta commit. Corrupt: a partition has no file groups.
    """
    slots = load_slots(metadata, timeline, tuple(partitions), instant, listed) if records else {}
    requested = create_requested(metadata.storage, metadata.profile, instant, DELTA_COMMIT)
    file_ids = {name: tuple(slot.file_id for slot in found) for name, found in slots.items()}
    entries = gather(metadata, instant, records, file_ids, definitions, engine)
    chosen = [slot for found in slots.values() for slot in found if (slot.partition, slot.file_id) in entries]
    names = [log_name(slot, number, instant) for number, slot in enumerate(chosen)]
    planned = tuple(log_stat(slot, name, 0, 0, 0) for slot, name in zip(chosen, names, strict=True))
    payload = _payload(metadata, planned, UPSERT, DELTA_COMMIT)
    inflight = to_inflight(metadata.storage, metadata.profile, requested, payload, is_new=True)
    tasks = _files(metadata, instant, chosen, names, entries)
    written = _spread(tasks, engine).run(write_log, tasks, "metadata table")
    stats = tuple(_log_stat(slot, one) for slot, one in zip(chosen, written, strict=True))
    _drop_spilled(metadata, instant, records)
    return finish(metadata, inflight, stats, UPSERT, timeline.instants)


def write_bases(  # noqa: PLR0917
    metadata: TableHandle,
    instant: InstantTime,
    records: Sequence[Records],
    file_ids: Mapping[str, tuple[str, ...]],
    definitions: Mapping[str, IndexDefinition],
    engine: Engine,
) -> tuple[WriteStat, ...]:
    """Base files with the records, which nobody sees before a delta commit `instant` completes. Groups that get none
    have no base file.
    """
    entries = gather(metadata, instant, records, file_ids, definitions, engine)
    groups = sorted(entries)
    names = [base_name(file_id, number, instant) for number, (_, file_id) in enumerate(groups)]
    tasks = [
        GroupFile(
            metadata.storage,
            f"{partition}/{name}",
            partition,
            instant,
            metadata.profile.avro_generation,
            entries[group],
        )
        for (group, name) in zip(groups, names, strict=True)
        for partition in (group[0],)
    ]
    written = _spread(tasks, engine).run(write_base, tasks, "metadata table")
    _drop_spilled(metadata, instant, records)
    return tuple(
        base_stat(partition, file_id, name, one.size_bytes, one.puts)
        for (partition, file_id), name, one in zip(groups, names, written, strict=True)
    )


def gather(  # noqa: PLR0917
    metadata: TableHandle,
    instant: InstantTime,
    records: Sequence[Records],
    file_ids: Mapping[str, tuple[str, ...]],
    definitions: Mapping[str, IndexDefinition],
    engine: Engine,
) -> GroupEntries:
    """The entries of records by the file group they go to; groups without entries are absent."""
    found: dict[tuple[str, str], list[Entries]] = defaultdict(list)
    made = [one for one in records if isinstance(one, MetadataRecords)]
    for one in made:
        for place, batch in split(one, file_ids, definitions, metadata.profile.avro_generation):
            found[one.partition, file_ids[one.partition][place]].append(batch)
    tasks = [
        _MakeTask(
            metadata.storage,
            f"{spill_folder(instant)}/{number}.arrow",
            one,
            file_ids,
            definitions,
            metadata.profile.avro_generation,
        )
        for number, one in enumerate(one for one in records if isinstance(one, RecordTask))
    ]
    for spilled in engine.run(_make, tasks, "records of the metadata table"):
        for partition, place, where in spilled:
            found[partition, file_ids[partition][place]].append(where)
    return {group: tuple(parts) for group, parts in found.items()}


def split(
    records: MetadataRecords,
    file_ids: Mapping[str, tuple[str, ...]],
    definitions: Mapping[str, IndexDefinition],
    generation: AvroGeneration,
) -> list[tuple[int, pa.RecordBatch]]:
    """The entries of records for each group that gets some, by its place among the file ids of the partition.

    Raises:
        Invalid: nobody knows the file groups of the partition.
    """
    if not len(records):
        return []
    if records.partition not in file_ids:
        raise Invalid(f"There are records for {records.partition}, which the metadata table does not have")
    entries = entries_of(records, generation)
    ids = file_ids[records.partition]
    if len(ids) == 1:
        return [(0, entries)]
    kind, definition = kind_of(records.partition), definitions.get(records.partition)
    at = kind.groups_of(entries.column(0), ids, definition, records.data_partition)
    order = np.argsort(at, kind="stable")
    sorted_entries = entries.take(pa.array(order))
    chosen, starts = np.unique(at[order], return_index=True)
    ends = [*starts[1:].tolist(), len(order)]
    return [
        (place, sorted_entries.slice(start, end - start))
        for place, start, end in zip(chosen.tolist(), starts.tolist(), ends, strict=True)
    ]


def finish(
    metadata: TableHandle,
    inflight: Instant,
    stats: tuple[WriteStat, ...],
    operation: str,
    since: Iterable[Instant] | None = None,
) -> Instant:
    """The completed instant of the metadata table. `since`: see `complete`."""
    payload = _payload(metadata, stats, operation, inflight.comparable_action)
    env, timezone = metadata.env, metadata.config.timezone
    return complete(metadata.storage, metadata.profile, inflight, payload, env, timezone, since=since, is_repeated=True)


def _drop_spilled(metadata: TableHandle, instant: InstantTime, records: Sequence[Records]) -> None:
    if any(isinstance(one, RecordTask) for one in records):
        metadata.storage.delete_dir(spill_folder(instant))


def spill_folder(instant: InstantTime) -> str:
    """Where records wait that were made for an instant, in the metadata table's storage."""
    return f"{keys.TEMP_DIR}/{instant}"


def _payload(metadata: TableHandle, stats: tuple[WriteStat, ...], operation: str, action: str) -> bytes:
    by_partition: dict[str, list[WriteStat]] = defaultdict(list)
    for stat in stats:
        by_partition[stat.partition_path].append(stat)
    payload = CommitMetadata(
        partition_to_write_stats={name: tuple(found) for name, found in by_partition.items()},
        compacted=operation == COMPACT,
        extra_metadata={keys.SCHEMA_EXTRA: _plain_schema(metadata.profile.avro_generation)},
        operation_type=operation,
    )
    return metadata.profile.commit_codec.encode(payload, action)


@cache
def _plain_schema(generation: AvroGeneration) -> str:
    """The records' schema without Hudi's meta columns."""
    document = json.loads(metadata_record_schema(generation))
    document["fields"] = [field for field in document["fields"] if not field["name"].startswith("_hoodie_")]
    return json.dumps(document, separators=(",", ":"))


def _files(
    metadata: TableHandle, instant: InstantTime, slots: Sequence[Slot], names: Sequence[str], entries: GroupEntries
) -> list[GroupFile]:
    return [
        GroupFile(
            metadata.storage,
            f"{slot.partition}/{name}",
            slot.partition,
            instant,
            metadata.profile.avro_generation,
            entries[slot.partition, slot.file_id],
        )
        for slot, name in zip(slots, names, strict=True)
    ]


def _log_stat(slot: Slot, one: Written) -> WriteStat:
    return log_stat(slot, one.path.rpartition("/")[2], one.size_bytes, one.puts, one.deletes)


def _spread(tasks: Sequence[GroupFile], engine: Engine) -> Engine:
    """The engine that should do the tasks: threads of this process for small ones."""
    held = sum(part.num_rows for task in tasks for part in task.entries if not isinstance(part, Spilled))
    is_small = held < _SPREAD_FROM and not any(isinstance(part, Spilled) for task in tasks for part in task.entries)
    return _DRIVER if is_small else engine


@dataclass(frozen=True, slots=True)
class _MakeTask:
    storage: Storage
    path: str
    source: RecordTask
    file_ids: Mapping[str, tuple[str, ...]]
    definitions: Mapping[str, IndexDefinition]
    avro_generation: AvroGeneration


def _make(task_id: TaskId, task: _MakeTask) -> list[tuple[str, int, Spilled]]:
    """Partition, place of the group, and where its entries wait."""
    make: Callable[[object], MetadataRecords] = task.source.make
    records = make(task.source.argument)
    groups = split(records, task.file_ids, task.definitions, task.avro_generation)
    if not groups:
        return []
    path = task.path.replace(".arrow", f"-{task_id.token}.arrow")
    spill(task.storage, path, [batch for _, batch in groups])
    return [(records.partition, place, Spilled(path, number)) for number, (place, _) in enumerate(groups)]
