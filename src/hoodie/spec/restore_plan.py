"""Which instants a restore takes back, and what that removed: content of `restore.requested` and of completed restores.

1. The plan names instants in the order in which they are taken back, and since version 2 of the plan the instant the
   table goes back to.
2. The metadata holds for each of them what a rollback of its own would have said; rollbacks inside a restore have no
   instants on the timeline.

It does not decide what to take back. Grammar and a worked example: `docs/format/savepoint-restore.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hoodie.errors import Corrupt
from hoodie.spec.avro_container import encode_container, parse_container
from hoodie.spec.instant import InstantTime
from hoodie.spec.rollback_plan import (
    InstantInfo,
    RollbackMetadata,
    info_values,
    parse_info,
    parse_rollback_values,
    rollback_metadata_values,
)
from hoodie.spec.typed_values import records_of, text_of, texts_of, typed, wrong

_PLAN = "HoodieRestorePlan"
_METADATA = "HoodieRestoreMetadata"
_REMEDY = "Restore the file from a copy, or delete the restore's files and let it be planned again"


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """Instants to take back, in order. `to` is None in plans of old releases."""

    instants: tuple[InstantInfo, ...]
    to: InstantTime | None
    version: int | None = 2


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """What a restore did. `start_time` is its own requested time; `rollbacks` goes by requested time of what was taken
    back.
    """

    start_time: InstantTime
    time_taken_ms: int
    rollbacks: Mapping[InstantTime, tuple[RollbackMetadata, ...]]
    instants: tuple[InstantInfo, ...]
    version: int | None = 1


def encode_restore_plan(plan: RestorePlan) -> bytes:
    """The bytes of `restore.requested`."""
    record = {
        "instantsToRollback": [info_values(info) for info in plan.instants],
        "version": plan.version,
        "savepointToRestoreTimestamp": plan.to,
    }
    return encode_container(_PLAN, record)


def parse_restore_plan(data: bytes, path: str) -> RestorePlan:
    """The plan of a restore.

    Raises:
        Corrupt: damaged, empty, or another kind of record.
    """
    record = _parse(data, path, _PLAN, "instantsToRollback")
    return RestorePlan(
        tuple(parse_info(info, path) for info in records_of(record, "instantsToRollback", path)),
        typed(record, "savepointToRestoreTimestamp", str, path),
        typed(record, "version", int, path),
    )


def encode_restore_metadata(metadata: RestoreMetadata) -> bytes:
    """The bytes of a completed restore."""
    record = {
        "startRestoreTime": metadata.start_time,
        "timeTakenInMillis": metadata.time_taken_ms,
        "instantsToRollback": [info.commit_time for info in metadata.instants],
        "hoodieRestoreMetadata": {
            requested: [rollback_metadata_values(one) for one in done] for requested, done in metadata.rollbacks.items()
        },
        "version": metadata.version,
        "restoreInstantInfo": [info_values(info) for info in metadata.instants],
    }
    return encode_container(_METADATA, record)


def parse_restore_metadata(data: bytes, path: str) -> RestoreMetadata:
    """What a completed restore did. Releases that wrote times only leave the actions of `instants` empty.

    Raises:
        Corrupt: damaged, empty, or another kind of record.
    """
    record = _parse(data, path, _METADATA, "hoodieRestoreMetadata")
    rollbacks = typed(record, "hoodieRestoreMetadata", dict, path) or {}
    said = tuple(parse_info(info, path) for info in records_of(record, "restoreInstantInfo", path))
    times = texts_of(record, "instantsToRollback", path)
    return RestoreMetadata(
        start_time=text_of(record, "startRestoreTime", path),
        time_taken_ms=typed(record, "timeTakenInMillis", int, path) or 0,
        rollbacks={requested: _parse_rollbacks(done, path) for requested, done in rollbacks.items()},
        instants=said or tuple(InstantInfo(time, "") for time in times),
        version=typed(record, "version", int, path),
    )


def _parse_rollbacks(done: object, path: str) -> tuple[RollbackMetadata, ...]:
    if not isinstance(done, list):
        raise wrong("hoodieRestoreMetadata", done, path)
    return tuple(parse_rollback_values(one, path) for one in done if isinstance(one, dict))


def _parse(data: bytes, path: str, name: str, must_have: str) -> dict[str, Any]:
    found, record = parse_container(data, path)
    if must_have not in record:
        raise Corrupt(f"{path} holds a {found}, not a {name}", remedy=_REMEDY, path=path)
    return record
