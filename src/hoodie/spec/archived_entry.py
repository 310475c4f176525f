"""One entry of a version 6 archive: a `HoodieArchivedMetaEntry`, one state of one instant with all it said.

1. There is an entry for each *state* an instant went through. The completed one has what the commit did; entries of
   old releases have no state and are completed ones.
2. `stateTransitionTime` is when the state's file was written: the completion time of the completed state.
3. The writer's schema stands beside the entries (in the header of their block) and differs between releases. Only the
   fields that are asked for are decoded, the others are skipped over.
4. The schema is somebody's text as well, and has its limits (`avro_limits`).

It does not know files and blocks (`timeline.log_archive`). A worked example: `docs/format/history.md`.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import fastavro

from hoodie.errors import Corrupt
from hoodie.spec.avro_limits import ensure_values_take_bytes
from hoodie.spec.clean_metadata import CleanMetadata, clean_metadata_of
from hoodie.spec.commit_fields import parse_metadata
from hoodie.spec.commit_metadata import CommitMetadata
from hoodie.spec.instant import InstantTime

ENTRY_RECORD = "HoodieArchivedMetaEntry"
COMPLETED_STATE = "COMPLETED"

_TEXT_FIELDS = ("commitTime", "actionType", "actionState", "stateTransitionTime")
_COMMIT_FIELDS = ("hoodieCommitMetadata", "hoodieReplaceCommitMetadata")
_CLEAN_FIELD = "hoodieCleanMetadata"
_REMEDY = "Restore the file from a copy"


@dataclass(frozen=True, slots=True)
class ArchivedEntry:
    """Who an entry is about. `changed` is when it reached its state, None where an old release did not say."""

    requested: InstantTime
    action: str
    is_completed: bool
    changed: InstantTime | None


def parse_archived_entry(data: bytes, schema: str, path: str, offset: int) -> ArchivedEntry:
    """The entry in bare Avro binary, written with `schema`. `offset` is where it stands in the file `path`.

    Raises:
        Corrupt: it does not fit the schema, or the schema is not that of an entry.
    """
    values = _decoded(data, schema, _TEXT_FIELDS, path, offset)
    requested, action, state, changed = (values.get(name) for name in _TEXT_FIELDS)
    if not requested or not action:
        raise Corrupt(f"{path}: the entry at byte {offset} names no instant", remedy=_REMEDY, path=path, offset=offset)
    return ArchivedEntry(requested, action, state in (None, COMPLETED_STATE), changed or None)


def parse_archived_commit(data: bytes, schema: str, path: str, offset: int) -> CommitMetadata:
    """What the commit of a completed entry did; empty for an entry of something else. Raises as above."""
    values = _decoded(data, schema, _COMMIT_FIELDS, path, offset)
    metadata: dict[str, Any] = next((values[name] for name in _COMMIT_FIELDS if values.get(name) is not None), {})
    return parse_metadata(metadata, path)


def parse_archived_clean(data: bytes, schema: str, path: str, offset: int) -> CleanMetadata | None:
    """What the clean of a completed entry did; None for an entry that does not say. Raises as above."""
    record = _decoded(data, schema, (_CLEAN_FIELD,), path, offset).get(_CLEAN_FIELD)
    return None if record is None else clean_metadata_of(record, path)


def _decoded(data: bytes, schema: str, wanted: tuple[str, ...], path: str, offset: int) -> dict[str, Any]:
    try:
        writer, reader = _schemas(schema, wanted)
        values = fastavro.schemaless_reader(io.BytesIO(data), writer, reader)
    except Exception as error:  # fastavro raises many kinds on damaged bytes and schemas
        raise Corrupt(
            f"{path}: the archived entry at byte {offset} cannot be read: {error}",
            remedy=_REMEDY,
            path=path,
            offset=offset,
        ) from error
    if not isinstance(values, dict):
        raise Corrupt(f"{path}: no archived entry at byte {offset}", remedy=_REMEDY, path=path, offset=offset)
    return values


@lru_cache(maxsize=16)
def _schemas(text: str, wanted: tuple[str, ...]) -> tuple[Any, Any]:
    """The writer's schema, and the part of it that has only those of the fields `wanted` that it has."""
    record = json.loads(text)
    if not isinstance(record, dict) or str(record.get("name")).rpartition(".")[2] != ENTRY_RECORD:
        raise ValueError(f"the schema is not that of a {ENTRY_RECORD}")
    ensure_values_take_bytes(record)
    asked = {**record, "fields": [field for field in record["fields"] if field["name"] in wanted]}
    return fastavro.parse_schema(record), fastavro.parse_schema(asked)
