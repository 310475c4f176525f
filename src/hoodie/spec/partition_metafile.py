"""The file that marks a folder as a partition: `.hoodie_partition_metadata`, or the same in the base file format.

1. It names the instant that made the partition and how deep the folder lies; nothing reads these for queries.
2. A folder with such a file is a partition and is not searched for more of them.

It does not know storage. Grammar and examples: `docs/format/partition-metafile.md`.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import datetime

from hoodie.errors import Corrupt
from hoodie.spec.instant import InstantTime
from hoodie.spec.keys import PARTITION_METAFILE_PREFIX
from hoodie.spec.properties import encode_properties_text, java_date, parse_properties_text

_COMMIT_TIME = "commitTime"
_DEPTH = "partitionDepth"
_PARQUET = ".parquet"


@dataclass(frozen=True, slots=True)
class PartitionMetafile:
    """The instant that created the partition, and its number of folder levels below the base path (0: the base)."""

    commit_time: InstantTime
    partition_depth: int


def is_partition_metafile(name: str) -> bool:
    """Whether a file name marks its folder as a partition. Temporary names of base-format files do not."""
    rest = name.removeprefix(PARTITION_METAFILE_PREFIX)
    return rest != name and rest[:1] in ("", ".")


def partition_metafile_name(base_format_extension: str | None = None) -> str:
    """The file's name; give the base files' extension for tables that keep metafiles in the base file format."""
    return PARTITION_METAFILE_PREFIX + (f".{base_format_extension}" if base_format_extension else "")


def encode_partition_metafile(metafile: PartitionMetafile, saved_at: datetime) -> bytes:
    """The bytes of the properties form."""
    return encode_properties_text(_entries(metafile), ("partition metadata", java_date(saved_at)))


def encode_partition_metafile_parquet(metafile: PartitionMetafile) -> bytes:
    """The bytes of the parquet form: no rows, the values in the footer."""
    import pyarrow as pa  # noqa: PLC0415 - few tables have this form, and what only reads timelines needs no pyarrow
    import pyarrow.parquet as pq  # noqa: PLC0415 - heavy: times alone do without pyarrow

    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, pa.schema([("dummyint", pa.int64())]), store_schema=False) as writer:
        writer.add_key_value_metadata(_entries(metafile))
    return buffer.getvalue()


def parse_partition_metafile(data: bytes, path: str) -> PartitionMetafile:
    """The values of either form.

    Raises:
        Corrupt: damaged, or a value is missing.
    """
    found = _parse_parquet(data, path) if path.endswith(_PARQUET) else parse_properties_text(data, path)
    try:
        return PartitionMetafile(found[_COMMIT_TIME], int(found[_DEPTH]))
    except (KeyError, ValueError) as error:
        raise Corrupt(
            f"{path} lacks a valid {_COMMIT_TIME} or {_DEPTH}", remedy="Write the partition metafile again", path=path
        ) from error


def _entries(metafile: PartitionMetafile) -> dict[str, str]:
    return {_COMMIT_TIME: metafile.commit_time, _DEPTH: str(metafile.partition_depth)}


def _parse_parquet(data: bytes, path: str) -> dict[str, str]:
    import pyarrow as pa  # noqa: PLC0415 - see `encode_partition_metafile_parquet`
    import pyarrow.parquet as pq  # noqa: PLC0415 - heavy: times alone do without pyarrow

    try:
        footer = pq.read_metadata(pa.BufferReader(data)).metadata or {}
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise Corrupt(
            f"{path} is a damaged parquet file: {error}", remedy="Write the partition metafile again", path=path
        ) from error
    return {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in footer.items()}
