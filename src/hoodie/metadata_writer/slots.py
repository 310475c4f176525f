"""Where the next file of each file group of the metadata table goes.

1. The groups of a partition are found by listing its folder, once for each update.
2. Where logs are named by the base instant of their slice (versions before 8), the version is the next one after all
   log files of that slice, whoever wrote them. Else a log is named by the delta commit that writes it, version 1.

Pure, but for `load_slots`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt
from hoodie.metadata.damage import REBUILD
from hoodie.metadata.partitions import data_partition_groups, ensure_numbered
from hoodie.metadata_writer.indexes.registry import kind_of
from hoodie.spec import NAMED_BY_SLICE, NAMED_BY_WRITE, BaseFileName, InstantTime, LogFileName, WriteStat, keys
from hoodie.spec.file_names import token_of_instant
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline
from hoodie.view import LogFile, PartitionFiles, list_files, view_of

_LISTING = LocalEngine(16)


@dataclass(frozen=True, slots=True)
class Slot:
    """The next log file of a group: the instant and version in its name. `base_file` and `log_files` are those of the
    slice it joins, as write stats have them.
    """

    partition: str
    file_id: str
    instant: InstantTime
    version: int = 1
    base_file: str = ""
    log_files: tuple[str, ...] = ()


def load_slots(
    metadata: TableHandle,
    timeline: Timeline,
    partitions: Collection[str],
    instant: InstantTime,
    listed: Mapping[str, PartitionFiles] = MappingProxyType({}),
) -> dict[str, tuple[Slot, ...]]:
    """By partition, the slots of its groups in the order of file ids, for the delta commit `instant`. `listed`: what
    lies in partitions that somebody has listed already.

    Raises:
        Corrupt: a partition has no file groups.
    """
    missing = [name for name in partitions if name not in listed]
    new = list_files(metadata.storage, missing, engine=_LISTING) if missing else ()
    found = {one.partition: one for one in (*new, *(listed[name] for name in partitions if name in listed))}
    next_slots = _NEXT_SLOTS[metadata.profile.log_naming]
    slots = {name: next_slots(metadata, timeline, files, instant) for name, files in found.items()}
    for name in partitions:
        adds_groups = kind_of(name).adds_groups
        if not slots[name] and not adds_groups:
            path = f"{keys.METADATA_TABLE_DIR}/{name}"
            raise Corrupt(f"{path} has no files, though the partition is ready", remedy=REBUILD, path=path)
        file_ids = [slot.file_id for slot in slots[name]]
        if not adds_groups or "" in data_partition_groups(file_ids):  # a dead writer may have begun other groups
            ensure_numbered(name, file_ids)
    return slots


def log_name(slot: Slot, number: int, instant: InstantTime) -> str:
    """The name of the log file in a slot; `number` is that of the file in its delta commit `instant`.

    Where the name does not carry that instant, its token does: two writers that do not know of each other must not take
    the same name.
    """
    token = f"{number}-0-0" if slot.instant == instant else token_of_instant(number, instant, 0)
    return LogFileName(slot.file_id, slot.instant, slot.version, token).text


def base_name(file_id: str, number: int, instant: InstantTime) -> str:
    """The name of a base file."""
    return BaseFileName(file_id, f"{number}-0-0", instant, "hfile").text


def log_stat(slot: Slot, name: str, size_bytes: int, puts: int, deletes: int) -> WriteStat:
    """What a delta commit says about a log file; with no bytes what it is about to do."""
    return WriteStat(
        file_id=slot.file_id,
        path=f"{slot.partition}/{name}",
        prev_commit=slot.instant,
        num_writes=puts,
        num_update_writes=puts,
        num_deletes=deletes,
        total_write_bytes=size_bytes,
        file_size_bytes=size_bytes,
        partition_path=slot.partition,
        log_version=slot.version,
        log_offset=0,
        base_file=slot.base_file,
        log_files=(*slot.log_files, name),
    )


def base_stat(partition: str, file_id: str, name: str, size_bytes: int, rows: int) -> WriteStat:
    """What a commit says about a base file that starts a group or a slice."""
    return WriteStat(
        file_id=file_id,
        path=f"{partition}/{name}",
        num_writes=rows,
        num_inserts=rows,
        total_write_bytes=size_bytes,
        file_size_bytes=size_bytes,
        partition_path=partition,
    )


def _named_by_write(
    metadata: TableHandle, timeline: Timeline, files: PartitionFiles, instant: InstantTime
) -> tuple[Slot, ...]:
    del metadata, timeline
    return tuple(Slot(files.partition, file_id, instant) for file_id in _file_ids(files))


def _named_by_slice(
    metadata: TableHandle, timeline: Timeline, files: PartitionFiles, instant: InstantTime
) -> tuple[Slot, ...]:
    del instant
    groups = view_of(timeline, (files,), {}, PendingPlans(metadata.storage, timeline).compactions()).groups
    newest = {group.file_id: group.slices[0] for group in groups}
    logs = _logs_by_slice(files)
    slots = []
    for file_id in _file_ids(files):
        part = newest.get(file_id)
        if part is None:
            raise Corrupt(
                f"{keys.METADATA_TABLE_DIR}/{files.partition} has no settled file of the group {file_id}",
                remedy=REBUILD,
                path=f"{keys.METADATA_TABLE_DIR}/{files.partition}",
            )
        before = logs.get((file_id, part.base_instant), ())
        slots.append(
            Slot(
                files.partition,
                file_id,
                part.base_instant,
                1 + max((log.name.version for log in before), default=0),
                "" if part.base is None else part.base.name.text,
                tuple(log.name.text for log in before),
            )
        )
    return tuple(slots)


_NEXT_SLOTS = {NAMED_BY_SLICE: _named_by_slice, NAMED_BY_WRITE: _named_by_write}


def _file_ids(files: PartitionFiles) -> list[str]:
    return sorted({file.name.file_id for file in files.everything})


def _logs_by_slice(files: PartitionFiles) -> Mapping[tuple[str, InstantTime], list[LogFile]]:
    found: dict[tuple[str, InstantTime], list[LogFile]] = {}
    for log in sorted(files.logs, key=lambda one: one.name.order):
        found.setdefault((log.name.file_id, log.name.instant), []).append(log)
    return found
