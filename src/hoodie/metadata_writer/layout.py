"""How a partition of the metadata table is laid out: file ids of its groups, and which of them a record goes to.

1. File ids are `<prefix><%04d number>-0`. Their number is fixed when the partition is made; a key's group is a number
   in the order of the file ids.
2. A key goes by its hash; a key of a secondary index of version V2 by the hash of its secondary value with the `$`.
3. A partitioned record index has groups for each partition of the table; a key goes to one of its partition's.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.metadata import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    IndexDefinition,
    group_of_keys,
)
from hoodie.metadata.partitions import EXPRESSION_PREFIX, SECONDARY_PREFIX, data_partition_groups, escaped_partition

_PREFIXES = {
    FILES: "files-",
    COLUMN_STATS: "col-stats-",
    BLOOM_FILTERS: "bloom-filters-",
    RECORD_INDEX: "record-index-",
    PARTITION_STATS: "partition-stats-",
}
_SECONDARY_VALUE = r"^(?P<value>(?:[^\\$]|\\(?s:.))*\$)"


def file_prefix(partition: str) -> str:
    """What file ids of a partition begin with.

    Raises:
        Invalid: there is no such kind of partition.
    """
    if partition.startswith((SECONDARY_PREFIX, EXPRESSION_PREFIX)):
        return partition.replace("_", "-") + "-"
    if partition not in _PREFIXES:
        raise Invalid(f"The metadata table has no partition {partition!r}", remedy=f"There are {', '.join(_PREFIXES)}")
    return _PREFIXES[partition]


def group_file_ids(partition: str, count: int, data_partition: str | None = None) -> tuple[str, ...]:
    """File ids of `count` groups; with `data_partition` those of a partitioned record index for one partition."""
    prefix = file_prefix(partition)
    if data_partition is not None:
        prefix = f"{prefix}{escaped_partition(data_partition)}-"
    return tuple(f"{prefix}{number:04d}-0" for number in range(count))


def places(
    keys: pa.Array, file_ids: Sequence[str], definition: IndexDefinition | None, data_partition: str
) -> npt.NDArray[np.int64]:
    """For each key the place of its group in `file_ids`, all groups of the partition in order.

    Raises:
        Invalid: a partitioned record index has no groups for the partition.
    """
    if definition is not None and definition.is_partitioned:
        own = data_partition_groups(file_ids).get(data_partition, [])
        if not own:
            raise Invalid(f"The record index has no file groups for the partition {data_partition!r}")
        return group_of_keys(keys, len(own)) + list(file_ids).index(own[0])
    if definition is not None and definition.name.startswith(SECONDARY_PREFIX) and definition.version != "V1":
        keys = pc.struct_field(pc.extract_regex(keys, _SECONDARY_VALUE), "value")
    return group_of_keys(keys, len(file_ids))
