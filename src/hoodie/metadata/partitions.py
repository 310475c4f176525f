"""The partitions of the metadata table: what they are called, and which file group of one holds a key.

1. A partition is a folder of the metadata table; its file groups are `<prefix><%04d number>-0`. Their number is fixed
   when the partition is made, and found by listing.
2. A key lies in the group `abs(abs(hashCode) % groups)`, for secondary indexes of version V2 by the hash of the
   secondary key with its `$`.
3. A record index may be cut by partitions of the data table: `record-index-<escaped partition>-<%04d>-0`. The number is
   then one within the data partition.

Grammar and examples: docs/format/metadata-table.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import Corrupt
from hoodie.metadata.damage import REBUILD
from hoodie.records import java_hashes, url_encoded
from hoodie.records.partition_values import unescaped
from hoodie.spec import keys

ROOT_PARTITION: Final = "."
FILES: Final = "files"
COLUMN_STATS: Final = "column_stats"
PARTITION_STATS: Final = "partition_stats"
BLOOM_FILTERS: Final = "bloom_filters"
RECORD_INDEX: Final = "record_index"
SECONDARY_PREFIX: Final = "secondary_index_"
EXPRESSION_PREFIX: Final = "expr_index_"

_RECORD_INDEX_FILES: Final = "record-index-"
_GROUP: Final = re.compile(r"(.*?)-?([0-9]{4,10})-[0-9]+")


class RecordType(IntEnum):
    """What a record of the metadata table is about: its field `type`."""

    ALL_PARTITIONS = 1
    FILES = 2
    COLUMN_STATS = 3
    BLOOM_FILTER = 4
    RECORD_INDEX = 5
    PARTITION_STATS = 6
    SECONDARY_INDEX = 7


def group_of_keys(keys: pa.StringArray, groups: int) -> npt.NDArray[np.int64]:
    """For each key the number of the file group that holds it, of `groups` (at least one)."""
    if groups == 1:
        return np.zeros(len(keys), dtype=np.int64)
    return np.abs(java_hashes(keys).astype(np.int64)) % groups


def escaped_partition(data_partition: str) -> str:
    """A partition path of the data table as it stands in file ids; nothing for a table that is not partitioned.

    `_` ends a file id, `-` its parts: Hudi escapes both, and takes an id apart at `-`. It leaves `.`, by which it
    cannot read back the names of its log files.
    """
    return url_encoded(data_partition).replace("_", "%5F").replace("-", "%2D").replace(".", "%2E")


def ensure_numbered(partition: str, file_ids: Iterable[str]) -> None:
    """Checks that the file groups of a partition are numbered from 0 on: with one less every key would belong to
    another group. That the last one is missing cannot be seen.

    Raises:
        Corrupt: there is a gap.
    """
    for found in data_partition_groups(file_ids).values():
        for number, file_id in enumerate(found):
            match = _GROUP.fullmatch(file_id)
            if match is not None and int(match[2]) != number:
                path = f"{keys.METADATA_TABLE_DIR}/{partition}"
                raise Corrupt(
                    f"{path} has no files of the group before {file_id}: they are gone", remedy=REBUILD, path=path
                )


def data_partition_groups(file_ids: Iterable[str]) -> dict[str, list[str]]:
    """File ids of a record index by the data partition they are for, each in order, however it is escaped in them; `""`
    for those of a global index, and of a table that is not partitioned.
    """
    found: dict[str, list[str]] = {}
    for file_id in sorted(file_ids):
        match = _GROUP.fullmatch(file_id.removeprefix(_RECORD_INDEX_FILES))
        found.setdefault(unescaped(match[1]) if match else "", []).append(file_id)
    return found
