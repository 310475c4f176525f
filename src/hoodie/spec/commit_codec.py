"""The seam between commit metadata and its bytes; a format profile holds one of the two codecs.

1. `encode` gives the form of the profile's version.
2. `parse` recognises either form by its first bytes: tables that were upgraded or downgraded, and version 8+ instants
   with legacy names, carry the other one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hoodie.errors import Invalid
from hoodie.spec.avro_container import is_container
from hoodie.spec.commit_avro import encode_commit_avro, parse_commit_avro
from hoodie.spec.commit_json import encode_commit_json, parse_commit_json
from hoodie.spec.commit_metadata import CommitMetadata
from hoodie.spec.instant import REPLACE_COMMIT, comparable_action


class CommitCodec(Protocol):
    """Commit metadata ↔ bytes."""

    def encode(self, metadata: CommitMetadata, action: str) -> bytes:
        """Bytes of an instant of `action`, inflight or completed.

        Raises:
            Invalid: the metadata replaces file groups but the action is not a replacing one.
        """
        ...

    def parse(self, data: bytes, path: str) -> CommitMetadata:
        """Metadata from the bytes of the file `path`; empty metadata from zero bytes.

        Raises:
            Corrupt: damaged.
        """
        ...


@dataclass(frozen=True, slots=True)
class JsonCommitCodec:
    """Version 6: pretty-printed JSON."""

    def encode(self, metadata: CommitMetadata, action: str) -> bytes:
        _ensure_fits(metadata, action)
        return encode_commit_json(metadata)

    def parse(self, data: bytes, path: str) -> CommitMetadata:
        return parse_commit(data, path)


@dataclass(frozen=True, slots=True)
class AvroCommitCodec:
    """Version 8 and later: Avro container files."""

    def encode(self, metadata: CommitMetadata, action: str) -> bytes:
        _ensure_fits(metadata, action)
        return encode_commit_avro(metadata)

    def parse(self, data: bytes, path: str) -> CommitMetadata:
        return parse_commit(data, path)


def parse_commit(data: bytes, path: str) -> CommitMetadata:
    """Commit metadata from either form, recognised by its first bytes.

    Raises:
        Corrupt: damaged.
    """
    return parse_commit_avro(data, path) if is_container(data) else parse_commit_json(data, path)


def _ensure_fits(metadata: CommitMetadata, action: str) -> None:
    if metadata.partition_to_replace_file_ids is not None and comparable_action(action) != REPLACE_COMMIT:
        raise Invalid(f"A {action} cannot replace file groups", remedy="Use a replacecommit", action=action)
