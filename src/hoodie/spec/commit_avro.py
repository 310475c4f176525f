"""Commit metadata as an Avro container file: how tables of version 8 and later store it.

1. A completed replacing commit is a `HoodieReplaceCommitMetadata`, everything else a `HoodieCommitMetadata`, the
   inflight content of a replacecommit included.
2. The `version` field is null, as Hudi leaves it.
3. Zero bytes (the inflight of a bulk insert) are an empty `CommitMetadata`.

It does not know files. A worked example: `docs/format/commit-metadata.md`.
"""

from __future__ import annotations

from hoodie.errors import Corrupt
from hoodie.spec.avro_container import encode_container, parse_container
from hoodie.spec.commit_fields import REPLACED, metadata_values, parse_metadata, stat_values
from hoodie.spec.commit_metadata import CommitMetadata

COMMIT_RECORD = "HoodieCommitMetadata"
REPLACE_RECORD = "HoodieReplaceCommitMetadata"


def encode_commit_avro(metadata: CommitMetadata) -> bytes:
    """The bytes of a completed or inflight instant of a version 8+ table."""
    record = {**metadata_values(metadata, stat_values), "version": None}
    return encode_container(REPLACE_RECORD if REPLACED in record else COMMIT_RECORD, record)


def parse_commit_avro(data: bytes, path: str) -> CommitMetadata:
    """Commit metadata from an Avro container file.

    Raises:
        Corrupt: damaged, or another kind of record.
    """
    if not data:
        return CommitMetadata()
    name, record = parse_container(data, path)
    if "partitionToWriteStats" not in record:
        raise Corrupt(f"{path} holds a {name}, not commit metadata", remedy="Restore the file from a copy", path=path)
    return parse_metadata(record, path)
