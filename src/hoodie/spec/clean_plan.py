"""What a clean will remove: content of `clean.requested` (and, in version 6, of `clean.inflight`).

1. Files are named by partition with their full names, as the writer spells the table's place. `earliest` is the commit
   from which on every state of the table stays readable; policies that count file versions have none.
2. `savepoints` are those that kept files from being removed when the plan was made. They stand in the extra metadata,
   next to what others put there.
3. Plans before version 2 name files by partition without a folder; Hudi 0.6 and older wrote them.

It does not decide what is removed. A worked example: `docs/format/clean.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hoodie.errors import Corrupt
from hoodie.spec.avro_container import encode_container, parse_container
from hoodie.spec.avro_schemas import AvroGeneration
from hoodie.spec.instant import InstantTime
from hoodie.spec.typed_values import folder_of, inside_table, records_of, text_of, texts_of, typed, wrong

CleanPolicy = Literal["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"]

SAVEPOINTS_KEY = "savepointed_timestamps"
CLEAN_VERSION = 2

_RECORD = "HoodieCleanerPlan"
_REMEDY = "Restore the file from a copy, or delete the clean's files and let it be planned again"


@dataclass(frozen=True, slots=True)
class RetainedInstant:
    """The earliest instant whose state of the table is kept: its requested time, action and state."""

    requested: InstantTime
    action: str
    state: str = "COMPLETED"


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """A planned clean. `files`: partition to full file names; `bootstrap_files`: those that lie outside the table;
    `partitions`: those that go as a whole. `last_completed` is the newest commit the planner knew, or empty text.
    """

    policy: str
    earliest: RetainedInstant | None = None
    last_completed: InstantTime = ""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bootstrap_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def savepoints(self) -> tuple[InstantTime, ...]:
        """Savepoints that were there when it was planned."""
        return savepoints_in(self.extra_metadata)


def savepoints_in(extra_metadata: Mapping[str, str]) -> tuple[InstantTime, ...]:
    """The savepoints that a clean's extra metadata names."""
    return tuple(time for time in extra_metadata.get(SAVEPOINTS_KEY, "").split(",") if time)


def encode_clean_plan(plan: CleanPlan, generation: AvroGeneration) -> bytes:
    """The bytes of `clean.requested`."""
    return encode_container(_RECORD, clean_plan_values(plan), generation)


def clean_plan_values(plan: CleanPlan) -> dict[str, Any]:
    """The Avro record of a plan."""
    earliest = plan.earliest and {
        "timestamp": plan.earliest.requested,
        "action": plan.earliest.action,
        "state": plan.earliest.state,
    }
    named = {partition: [_file(name, bootstrap=False) for name in names] for partition, names in plan.files.items()}
    for partition, names in plan.bootstrap_files.items():
        named.setdefault(partition, []).extend(_file(name, bootstrap=True) for name in names)
    return {
        "earliestInstantToRetain": earliest,
        "lastCompletedCommitTimestamp": plan.last_completed,
        "policy": plan.policy,
        "filesToBeDeletedPerPartition": {},
        "version": CLEAN_VERSION,
        "filePathsToBeDeletedPerPartition": named,
        "partitionsToBeDeleted": list(plan.partitions),
        "extraMetadata": dict(plan.extra_metadata),
    }


def parse_clean_plan(data: bytes, path: str) -> CleanPlan:
    """The plan of a clean.

    Raises:
        Corrupt: damaged, empty, not a clean plan, or a partition outside the table.
    """
    name, record = parse_container(data, path)
    if "policy" not in record or "partitionMetadata" in record:
        raise Corrupt(f"{path} holds a {name}, not a {_RECORD}", remedy=_REMEDY, path=path)
    files = _old_names(record, path)
    bootstrap: dict[str, tuple[str, ...]] = {}
    for partition, found in _by_partition(record, "filePathsToBeDeletedPerPartition", path).items():
        named = records_of({partition: found}, partition, path)
        inner = tuple(text_of(one, "filePath", path) for one in named if not one.get("isBootstrapBaseFile"))
        outer = tuple(text_of(one, "filePath", path) for one in named if one.get("isBootstrapBaseFile"))
        files[partition] = files.get(partition, ()) + inner
        if outer:
            bootstrap[partition] = outer
    return CleanPlan(
        policy=text_of(record, "policy", path),
        earliest=_parse_earliest(record, path),
        last_completed=typed(record, "lastCompletedCommitTimestamp", str, path) or "",
        files=files,
        bootstrap_files=bootstrap,
        partitions=tuple(
            inside_table(one, "a partition", path) for one in texts_of(record, "partitionsToBeDeleted", path) if one
        ),
        extra_metadata=texts_by_name(record, "extraMetadata", path),
    )


def texts_by_name(record: Mapping[str, Any], name: str, path: str) -> dict[str, str]:
    """A map of texts; empty when absent. Raises as `typed`."""
    found: dict[str, str] = typed(record, name, dict, path) or {}
    if not all(isinstance(one, str) for one in found.values()):
        raise wrong(name, found, path)
    return found


def _file(name: str, *, bootstrap: bool) -> dict[str, Any]:
    return {"filePath": name, "isBootstrapBaseFile": bootstrap}


def _parse_earliest(record: Mapping[str, Any], path: str) -> RetainedInstant | None:
    found = typed(record, "earliestInstantToRetain", dict, path)
    if found is None:
        return None
    return RetainedInstant(*(text_of(found, name, path) for name in ("timestamp", "action", "state")))


def _by_partition(record: Mapping[str, Any], name: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = typed(record, name, dict, path) or {}
    for partition in found:
        folder_of({"partition": partition}, "partition", path)
    return found


def _old_names(record: Mapping[str, Any], path: str) -> dict[str, tuple[str, ...]]:
    """Files of plans before version 2, with their partition put before the name."""
    found = _by_partition(record, "filesToBeDeletedPerPartition", path)
    return {
        partition: tuple(f"/{partition}/{name}".replace("//", "/") for name in texts_of(found, partition, path))
        for partition in found
    }
