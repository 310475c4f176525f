"""What a rollback will remove and what it has removed: content of `rollback.requested` and of completed rollbacks.

1. Paths are as the profile's Avro generation writes them: absolute (`/base/...`; with a scheme on object stores).
2. `log_blocks_to_delete` is for version 6 only: log files that stay and get a command block appended.

It does not decide what to remove. Grammar and a worked example: `docs/format/rollback.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hoodie.errors import Corrupt
from hoodie.spec.avro_container import encode_container, parse_container
from hoodie.spec.instant import InstantTime
from hoodie.spec.typed_values import dict_of, folder_of, numbers_of, record_of, records_of, text_of, texts_of, typed

_PLAN = "HoodieRollbackPlan"
_METADATA = "HoodieRollbackMetadata"
_REMEDY = "Restore the file from a copy, or delete the rollback's files and let it be planned again"


@dataclass(frozen=True, slots=True)
class InstantInfo:
    """An instant by its requested time and action."""

    commit_time: InstantTime
    action: str


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """What to undo in one file group, or for one file. `file_id` and `latest_base_instant` may be empty text."""

    partition_path: str
    file_id: str | None = ""
    latest_base_instant: str | None = ""
    files_to_delete: tuple[str, ...] = ()
    log_blocks_to_delete: Mapping[str, int] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """Which instant is rolled back, and all requests. An instant that had only been requested has none."""

    instant_to_rollback: InstantInfo
    requests: tuple[RollbackRequest, ...] = ()
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class RollbackPartition:
    """What happened in one partition. The maps go from log file path to size and are empty in version 8+."""

    partition_path: str
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()
    rollback_log_files: Mapping[str, int] | None = field(default_factory=dict)
    log_files_from_failed_commit: Mapping[str, int] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    """What a rollback has done. `start_time` is the rollback's own requested time."""

    start_time: InstantTime
    time_taken_ms: int
    total_files_deleted: int
    commits: tuple[InstantTime, ...]
    partitions: Mapping[str, RollbackPartition]
    instants: tuple[InstantInfo, ...] = ()
    version: int | None = 1


def encode_rollback_plan(plan: RollbackPlan) -> bytes:
    """The bytes of `rollback.requested`."""
    return encode_container(
        _PLAN,
        {
            "instantToRollback": info_values(plan.instant_to_rollback),
            "RollbackRequests": [
                {
                    "partitionPath": request.partition_path,
                    "fileId": request.file_id,
                    "latestBaseInstant": request.latest_base_instant,
                    "filesToBeDeleted": list(request.files_to_delete),
                    "logBlocksToBeDeleted": dict_of(request.log_blocks_to_delete),
                }
                for request in plan.requests
            ],
            "version": plan.version,
        },
    )


def parse_rollback_plan(data: bytes, path: str) -> RollbackPlan:
    """The plan of a rollback.

    Raises:
        Corrupt: damaged, empty, not a rollback plan, or a partition outside the table.
    """
    record = _parse(data, path, _PLAN, "instantToRollback")
    if record["instantToRollback"] is None:
        raise Corrupt(f"{path} does not say which instant to roll back", remedy=_REMEDY, path=path)
    return RollbackPlan(
        parse_info(typed(record, "instantToRollback", dict, path), path),
        tuple(
            RollbackRequest(
                folder_of(request, "partitionPath", path),
                typed(request, "fileId", str, path),
                typed(request, "latestBaseInstant", str, path),
                texts_of(request, "filesToBeDeleted", path),
                numbers_of(request, "logBlocksToBeDeleted", path),
            )
            for request in records_of(record, "RollbackRequests", path)
        ),
        typed(record, "version", int, path),
    )


def encode_rollback_metadata(metadata: RollbackMetadata) -> bytes:
    """The bytes of a completed rollback."""
    return encode_container(_METADATA, rollback_metadata_values(metadata))


def rollback_metadata_values(metadata: RollbackMetadata) -> dict[str, Any]:
    """The Avro record of a completed rollback; restores hold several of them."""
    return {
        "startRollbackTime": metadata.start_time,
        "timeTakenInMillis": metadata.time_taken_ms,
        "totalFilesDeleted": metadata.total_files_deleted,
        "commitsRollback": list(metadata.commits),
        "partitionMetadata": {
            partition: {
                "partitionPath": done.partition_path,
                "successDeleteFiles": list(done.success_delete_files),
                "failedDeleteFiles": list(done.failed_delete_files),
                "rollbackLogFiles": dict_of(done.rollback_log_files),
                "logFilesFromFailedCommit": dict_of(done.log_files_from_failed_commit),
            }
            for partition, done in metadata.partitions.items()
        },
        "version": metadata.version,
        "instantsRollback": [info_values(info) for info in metadata.instants],
    }


def parse_rollback_metadata(data: bytes, path: str) -> RollbackMetadata:
    """What a completed rollback did.

    Raises:
        Corrupt: damaged, empty, or not rollback metadata.
    """
    return parse_rollback_values(_parse(data, path, _METADATA, "startRollbackTime"), path)


def parse_rollback_values(record: Mapping[str, Any], path: str) -> RollbackMetadata:
    """The metadata in an Avro record of the file `path`. Raises as `parse_rollback_metadata`."""
    partitions = typed(record, "partitionMetadata", dict, path) or {}
    return RollbackMetadata(
        start_time=text_of(record, "startRollbackTime", path),
        time_taken_ms=typed(record, "timeTakenInMillis", int, path) or 0,
        total_files_deleted=typed(record, "totalFilesDeleted", int, path) or 0,
        commits=texts_of(record, "commitsRollback", path),
        partitions={partition: _parse_partition(done, path) for partition, done in partitions.items()},
        instants=tuple(parse_info(info, path) for info in records_of(record, "instantsRollback", path)),
        version=typed(record, "version", int, path),
    )


def _parse(data: bytes, path: str, name: str, must_have: str) -> dict[str, Any]:
    found, record = parse_container(data, path)
    if must_have not in record:
        raise Corrupt(f"{path} holds a {found}, not a {name}", remedy=_REMEDY, path=path)
    return record


def _parse_partition(done: object, path: str) -> RollbackPartition:
    record = record_of(done, "partitionMetadata", path)
    return RollbackPartition(
        folder_of(record, "partitionPath", path),
        texts_of(record, "successDeleteFiles", path),
        texts_of(record, "failedDeleteFiles", path),
        numbers_of(record, "rollbackLogFiles", path),
        numbers_of(record, "logFilesFromFailedCommit", path),
    )


def info_values(info: InstantInfo) -> dict[str, str]:
    """The Avro record of an instant's time and action."""
    return {"commitTime": info.commit_time, "action": info.action}


def parse_info(record: Mapping[str, Any], path: str) -> InstantInfo:
    """The time and action in an Avro record of the file `path`. Raises as `parse_rollback_metadata`."""
    return InstantInfo(text_of(record, "commitTime", path), text_of(record, "action", path))
