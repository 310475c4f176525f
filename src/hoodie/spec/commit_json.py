"""Commit metadata as pretty-printed JSON: how tables of version 6 store it.

1. Written key by key and space by space as Hudi 0.15 does: two spaces of indentation per object, `" : "`, arrays in
   line, `{ }` and `[ ]` when empty, no newline at the end.
2. Read in any order and layout; unknown keys are dropped. Zero bytes (the inflight of a bulk insert) are an empty
   `CommitMetadata`.

It does not know files. Examples: `docs/format/commit-metadata.md`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hoodie.errors import Corrupt
from hoodie.spec.commit_fields import metadata_values, parse_metadata, stat_values
from hoodie.spec.commit_metadata import CommitMetadata
from hoodie.spec.json_text import parse_json
from hoodie.spec.write_stat import WriteStat

_STAT_KEYS = (
    "fileId",
    "path",
    "cdcStats",
    "prevCommit",
    "numWrites",
    "numDeletes",
    "numUpdateWrites",
    "numInserts",
    "totalWriteBytes",
    "totalWriteErrors",
    "tempPath",
    "partitionPath",
    "totalLogRecords",
    "totalLogFilesCompacted",
    "totalLogSizeCompacted",
    "totalUpdatedRecordsCompacted",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
    "fileSizeInBytes",
    "minEventTime",
    "maxEventTime",
    "runtimeStats",
)
_LOG_STAT_KEYS = ("logVersion", "logOffset", "baseFile", "logFiles")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_LOWER_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u([0-9a-f]{4})")


def encode_commit_json(metadata: CommitMetadata) -> bytes:
    """The bytes of a completed or inflight instant of a version 6 table."""
    return pretty_json(metadata_values(metadata, _stat_object)).encode()


def parse_commit_json(data: bytes, path: str) -> CommitMetadata:
    """Commit metadata from JSON of any layout.

    Raises:
        Corrupt: not a JSON object, or values of unexpected types.
    """
    if not data:
        return CommitMetadata()
    try:
        values = parse_json(data)
    except ValueError as error:
        raise Corrupt(
            f"{path} is not valid JSON: {error}",
            remedy="Restore the file from a copy, or roll the instant back",
            path=path,
            offset=getattr(error, "pos", getattr(error, "start", None)),
        ) from error
    if not isinstance(values, dict):
        raise Corrupt(f"{path} holds no JSON object", remedy="Restore the file from a copy", path=path)
    return parse_metadata(values, path)


def pretty_json(value: object, depth: int = 0) -> str:
    """JSON text as Jackson's default pretty printer lays it out."""
    if isinstance(value, dict):
        if not value:
            return "{ }"
        indent = "  " * (depth + 1)
        entries = (f"{indent}{_text(str(key))} : {pretty_json(item, depth + 1)}" for key, item in value.items())
        return "{\n" + ",\n".join(entries) + "\n" + "  " * depth + "}"
    if isinstance(value, list):
        if value and _are_plain(value):  # file ids of replaced groups, which may be hundreds of thousands
            return '[ "' + '", "'.join(value) + '" ]'
        return f"[ {', '.join(pretty_json(item, depth) for item in value)} ]" if value else "[ ]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _stat_object(stat: WriteStat) -> dict[str, Any]:
    values = stat_values(stat)
    keys = _STAT_KEYS + _LOG_STAT_KEYS if stat.is_log else _STAT_KEYS
    chosen = {key: values[key] for key in keys}
    # 0.15 prints an (always empty here) optional of column statistics after a log stat.
    return chosen | {"recordsStats": {"val": None}} if stat.is_log else chosen


def _are_plain(values: list[Any]) -> bool:
    """Whether all are texts that stand in JSON as they are."""
    return all(isinstance(value, str) for value in values) and _PLAIN.fullmatch("".join(values)) is not None


def _text(value: str) -> str:
    """A JSON string. Jackson spells control characters with upper-case hexadecimal digits."""
    return _LOWER_ESCAPE.sub(lambda m: f"{m[1]}\\u{m[2].upper()}", json.dumps(value, ensure_ascii=False))
