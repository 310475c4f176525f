"""Where the rows of a bootstrapped table are: keys and values of the bootstrap index.

1. A metadata-only bootstrap writes *skeleton* files: meta columns only, row for row beside a file of the source, which
   stays where it is. The index says which source file belongs to which skeleton.
2. It is two HFiles below `.hoodie/.aux/.bootstrap`. The one in `.partitions` has an entry for each partition, with the
   source files of all its file ids; the one in `.fileids` has the same by file id. The first one is enough.
3. A source file is named by the folder of its partition below the bootstrap base path, and its own name. The index
   also has the full path it had at the time; a source that has moved together with the base path is still found.
4. Names that leave the base path are refused.

It does not know HFiles (`hoodie.hfile`) nor storage. A worked example: `docs/format/bootstrap.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hoodie.errors import Corrupt
from hoodie.spec.avro_container import parse_container
from hoodie.spec.keys import HOODIE_DIR

BOOTSTRAP_PARTITIONS_FILE = (
    f"{HOODIE_DIR}/.aux/.bootstrap/.partitions/00000000-0000-0000-0000-000000000000-0_1-0-1_00000000000001.hfile"
)
"""The HFile with one entry for each partition. Its name is always the same."""

_KEY_PREFIX = "part="
_REMEDY = "Restore the bootstrap index from a copy"


@dataclass(frozen=True, slots=True)
class BootstrapPartition:
    """Source files of one partition by file id: paths below the bootstrap base path, and sizes in bytes where known."""

    partition: str
    sources: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def partition_key(partition: str) -> bytes:
    """The key of a partition's entry."""
    return f"{_KEY_PREFIX}{partition}".encode()


def parse_bootstrap_partition(data: bytes, path: str) -> BootstrapPartition:
    """The value of an entry of the index file `path`.

    Raises:
        Corrupt: damaged, another record, or a name that leaves the bootstrap base path.
    """
    name, record = parse_container(data, path)
    files = record.get("fileIdToBootstrapFile")
    folder, partition = record.get("bootstrapPartitionPath") or "", record.get("partitionPath") or ""
    if not isinstance(files, dict) or not isinstance(folder, str) or not isinstance(partition, str):
        raise Corrupt(f"{path} holds a {name}, not files of a partition", remedy=_REMEDY, path=path)
    sources = {str(file_id): _source(folder, status, path) for file_id, status in files.items()}
    sizes = {str(file_id): _length(status) for file_id, status in files.items()}
    return BootstrapPartition(partition, sources, sizes)


def _source(folder: str, status: Any, path: str) -> str:
    uri = (status or {}).get("path") if isinstance(status, dict) else None
    text = uri.get("uri") if isinstance(uri, dict) else None
    if not isinstance(text, str):
        raise Corrupt(f"{path} has a source file without a path", remedy=_REMEDY, path=path)
    name = text.rpartition("/")[2]
    parts = [*folder.split("/"), name] if folder else [name]
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise Corrupt(
            f"{path} names the source file {text!r} in {folder!r}, which is no path below the bootstrap base path",
            remedy=_REMEDY,
            path=path,
            source=text,
        )
    return "/".join(parts)


def _length(status: Any) -> int:
    """What the file system said of its size; 0 where it is not told."""
    length = status.get("length") if isinstance(status, dict) else None
    return length if isinstance(length, int) else 0
