"""Which files a savepoint keeps: content of a completed savepoint.

1. Files are named without folder, per partition: for each file group the base file and the log files of its slice, log
   files newest first.
2. `saved_at_ms` is milliseconds since 1970; who made it and why may be empty text.

It does not know storage. Grammar and a worked example: `docs/format/savepoint-restore.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.errors import Corrupt
from hoodie.spec.avro_container import encode_container, parse_container
from hoodie.spec.avro_schemas import AvroGeneration
from hoodie.spec.typed_values import folder_of, texts_of, typed, wrong

_RECORD = "HoodieSavepointMetadata"


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """Who saved what, when and why. `files` goes from partition to names of files that must stay."""

    saved_by: str
    saved_at_ms: int
    comments: str
    files: Mapping[str, tuple[str, ...]]
    version: int | None = 1


def encode_savepoint_metadata(metadata: SavepointMetadata, generation: AvroGeneration = "1.x") -> bytes:
    """The bytes of a completed savepoint."""
    return encode_container(
        _RECORD,
        {
            "savepointedBy": metadata.saved_by,
            "savepointedAt": metadata.saved_at_ms,
            "comments": metadata.comments,
            "partitionMetadata": {
                partition: {"partitionPath": partition, "savepointDataFile": list(names)}
                for partition, names in metadata.files.items()
            },
            "version": metadata.version,
        },
        generation,
    )


def parse_savepoint_metadata(data: bytes, path: str) -> SavepointMetadata:
    """What a savepoint keeps.

    Raises:
        Corrupt: damaged, empty, or another kind of record.
    """
    name, record = parse_container(data, path)
    if "savepointedBy" not in record:
        raise Corrupt(
            f"{path} holds a {name}, not a {_RECORD}",
            remedy="Restore the file from a copy, or delete the savepoint and make it anew",
            path=path,
        )
    partitions = typed(record, "partitionMetadata", dict, path) or {}
    files: dict[str, tuple[str, ...]] = {}
    for saved in partitions.values():
        if not isinstance(saved, dict):
            raise wrong("partitionMetadata", saved, path)
        files[folder_of(saved, "partitionPath", path)] = texts_of(saved, "savepointDataFile", path)
    return SavepointMetadata(
        saved_by=typed(record, "savepointedBy", str, path) or "",
        saved_at_ms=typed(record, "savepointedAt", int, path) or 0,
        comments=typed(record, "comments", str, path) or "",
        files=files,
        version=typed(record, "version", int, path),
    )
