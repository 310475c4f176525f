"""What a clean has removed: content of a completed clean.

1. Everything before the earliest retained commit may be gone; from it on, every state of the table can be read.
2. It also says up to which commit its planner looked (`last_completed`), and which savepoints were in the way: the next
   clean goes on from there.
3. A file that was gone already counts as removed.

It does not know storage. The plan before it: `clean_plan`. A worked example: `docs/format/clean.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hoodie.errors import Corrupt
from hoodie.spec.avro_container import encode_container, parse_container
from hoodie.spec.avro_schemas import AvroGeneration
from hoodie.spec.clean_plan import CLEAN_VERSION, savepoints_in, texts_by_name
from hoodie.spec.instant import InstantTime
from hoodie.spec.typed_values import folder_of, record_of, text_of, texts_of, typed

_RECORD = "HoodieCleanMetadata"
_REMEDY = "Restore the file from a copy, or delete the completed clean and let it be done again"


@dataclass(frozen=True, slots=True)
class CleanedPartition:
    """What happened in one partition. Names are bare file names; `planned` is what should go, `deleted` what is gone,
    `failed` what is not.
    """

    partition: str
    policy: str
    planned: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    is_partition_deleted: bool = False


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """A finished clean. `start_time` is its own requested time, `earliest` is empty text where nothing is promised."""

    start_time: InstantTime
    time_taken_ms: int
    total_files_deleted: int
    earliest: InstantTime = ""
    last_completed: InstantTime = ""
    partitions: Mapping[str, CleanedPartition] = field(default_factory=dict)
    bootstrap_partitions: Mapping[str, CleanedPartition] = field(default_factory=dict)
    extra_metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def savepoints(self) -> tuple[InstantTime, ...]:
        """Savepoints that kept files when it was planned."""
        return savepoints_in(self.extra_metadata)


def encode_clean_metadata(metadata: CleanMetadata, generation: AvroGeneration) -> bytes:
    """The bytes of a completed clean."""
    return encode_container(_RECORD, clean_metadata_values(metadata), generation)


def clean_metadata_values(metadata: CleanMetadata) -> dict[str, Any]:
    """The Avro record of a finished clean."""
    return {
        "startCleanTime": metadata.start_time,
        "timeTakenInMillis": metadata.time_taken_ms,
        "totalFilesDeleted": metadata.total_files_deleted,
        "earliestCommitToRetain": metadata.earliest,
        "lastCompletedCommitTimestamp": metadata.last_completed,
        "partitionMetadata": _partition_values(metadata.partitions),
        "version": CLEAN_VERSION,
        "bootstrapPartitionMetadata": _partition_values(metadata.bootstrap_partitions),
        "extraMetadata": dict(metadata.extra_metadata),
    }


def parse_clean_metadata(data: bytes, path: str) -> CleanMetadata:
    """What a completed clean did.

    Raises:
        Corrupt: damaged, empty, or not clean metadata.
    """
    name, record = parse_container(data, path)
    if "startCleanTime" not in record:
        raise Corrupt(f"{path} holds a {name}, not a {_RECORD}", remedy=_REMEDY, path=path)
    return clean_metadata_of(record, path)


def clean_metadata_of(record: Mapping[str, Any], path: str) -> CleanMetadata:
    """What the Avro record of a finished clean says. Raises as `parse_clean_metadata`."""
    return CleanMetadata(
        start_time=text_of(record, "startCleanTime", path),
        time_taken_ms=typed(record, "timeTakenInMillis", int, path) or 0,
        total_files_deleted=typed(record, "totalFilesDeleted", int, path) or 0,
        earliest=typed(record, "earliestCommitToRetain", str, path) or "",
        last_completed=typed(record, "lastCompletedCommitTimestamp", str, path) or "",
        partitions=_parse_partitions(record, "partitionMetadata", path),
        bootstrap_partitions=_parse_partitions(record, "bootstrapPartitionMetadata", path),
        extra_metadata=texts_by_name(record, "extraMetadata", path),
    )


def parse_earliest_retained(data: bytes, path: str) -> InstantTime | None:
    """The earliest commit whose state was kept; None when the clean does not say.

    Raises:
        Corrupt: damaged.
    """
    return typed(parse_container(data, path)[1], "earliestCommitToRetain", str, path) or None


def _partition_values(partitions: Mapping[str, CleanedPartition]) -> dict[str, Any]:
    return {
        name: {
            "partitionPath": done.partition,
            "policy": done.policy,
            "deletePathPatterns": list(done.planned),
            "successDeleteFiles": list(done.deleted),
            "failedDeleteFiles": list(done.failed),
            "isPartitionDeleted": done.is_partition_deleted,
        }
        for name, done in partitions.items()
    }


def _parse_partitions(record: Mapping[str, Any], name: str, path: str) -> dict[str, CleanedPartition]:
    found: dict[str, Any] = typed(record, name, dict, path) or {}
    return {partition: _parse_partition(done, path) for partition, done in found.items()}


def _parse_partition(done: object, path: str) -> CleanedPartition:
    record = record_of(done, "partitionMetadata", path)
    return CleanedPartition(
        folder_of(record, "partitionPath", path),
        text_of(record, "policy", path),
        texts_of(record, "deletePathPatterns", path),
        texts_of(record, "successDeleteFiles", path),
        texts_of(record, "failedDeleteFiles", path),
        bool(typed(record, "isPartitionDeleted", bool, path)),
    )
