"""One state of an instant as version 6 archives it: the file's content put into a `HoodieArchivedMetaEntry`.

1. Every state file of an instant becomes an entry. Which of the entry's many fields is filled goes by action and state.
2. A commit's empty file becomes empty metadata of operation UNKNOWN; other empty files fill no field.
3. Hudi empties the extra metadata `ROLLING_STAT`, so it is there, with empty text, in every archived commit.
4. An entry is bare Avro binary; its schema (`archived_schema`) stands in the header of the block around it.

Reading entries is `archived_entry`; files and blocks are for `timeline.log_archive_writer`. A worked example:
`docs/format/history.md`.
"""

from __future__ import annotations

from typing import Any

from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.spec.archived_entry import ENTRY_RECORD
from hoodie.spec.avro_container import encode_record, is_container, parse_container
from hoodie.spec.avro_schemas import NAMESPACE, AvroGeneration, schema
from hoodie.spec.instant import Instant, InstantTime, State
from hoodie.spec.json_text import parse_json
from hoodie.spec.typed_values import typed

_Field = tuple[str, Any]
"""A field of the entry and its value, told apart by the name of its record."""

_KEPT = ("partitionToWriteStats", "compacted", "operationType", "partitionToReplaceFileIds")
_ROLLING_STAT = "ROLLING_STAT"
_UNKNOWN = "UNKNOWN"


def archived_schema(generation: AvroGeneration) -> str:
    """The schema of entries as it stands in the header of their blocks."""
    return schema(ENTRY_RECORD, generation).text


def encode_archived_state(
    instant: Instant, changed: InstantTime, content: bytes, path: str, generation: AvroGeneration
) -> bytes:
    """The entry of an instant in its state. `content` is what its file `path` says, `changed` when it was written.

    Raises:
        Corrupt: the content is damaged.
        Unsupported: an action that is never archived.
    """
    entry: dict[str, Any] = {
        "commitTime": instant.requested,
        "actionType": instant.action,
        "actionState": instant.state.name,
        "stateTransitionTime": changed,
    }
    filled = _payload(instant, content, path)
    if filled is not None:
        entry[filled[0]] = filled[1]
    try:
        return encode_record(schema(ENTRY_RECORD, generation), entry)
    except Invalid as error:
        raise _damaged(path, error) from error


def _payload(instant: Instant, content: bytes, path: str) -> _Field | None:
    state = instant.state
    match instant.action:
        case "commit" | "deltacommit":
            return "hoodieCommitMetadata", _commit(content, path)
        case "replacecommit" | "clustering":
            return _replace(state, content, path)
        case "clean":
            if state is State.COMPLETED:
                return _record("hoodieCleanMetadata", "HoodieCleanMetadata", content, path)
            return _record("hoodieCleanerPlan", "HoodieCleanerPlan", content, path)
        case "compaction" | "logcompaction":
            return _record("hoodieCompactionPlan", "HoodieCompactionPlan", content, path)
        case "rollback":
            wanted = content if state is State.COMPLETED else b""
            return _record("hoodieRollbackMetadata", "HoodieRollbackMetadata", wanted, path)
    raise Unsupported(f"A {instant.action} is never archived", action=instant.action, path=path)


def _replace(state: State, content: bytes, path: str) -> _Field | None:
    if state is State.REQUESTED:
        return _record("hoodieRequestedReplaceMetadata", "HoodieRequestedReplaceMetadata", content, path)
    if state is State.COMPLETED:
        name, values = _commit(content, path, "HoodieReplaceCommitMetadata")
        return "hoodieReplaceCommitMetadata", (name, values)
    return ("HoodieInflightReplaceMetadata", _commit(content, path)) if content else None


def _record(field: str, name: str, content: bytes, path: str) -> _Field | None:
    """A record that is archived as it stands in its file."""
    return (field, (f"{NAMESPACE}.{name}", parse_container(content, path)[1])) if content else None


def _commit(content: bytes, path: str, name: str = "HoodieCommitMetadata") -> tuple[str, dict[str, Any]]:
    """The values of commit metadata as they stand in a file: names are the same in JSON, in Avro and in the archive."""
    values = _values(content, path)
    extra = typed(values, "extraMetadata", dict, path) or {}
    known = {field: values[field] for field in _KEPT if values.get(field) is not None}
    said = {"extraMetadata": {**extra, _ROLLING_STAT: ""}, "version": None}
    return f"{NAMESPACE}.{name}", {"partitionToWriteStats": {}, "operationType": _UNKNOWN, **known, **said}


def _values(content: bytes, path: str) -> dict[str, Any]:
    if not content:
        return {}
    if is_container(content):
        return parse_container(content, path)[1]
    try:
        values = parse_json(content)
    except ValueError as error:
        raise _damaged(path, error) from error
    if not isinstance(values, dict):
        raise _damaged(path, "it holds no JSON object")
    return values


def _damaged(path: str, what: object) -> Corrupt:
    return Corrupt(f"{path} cannot be archived: {what}", remedy="Restore the file from a copy", path=path)
