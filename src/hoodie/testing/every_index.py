"""Every index that a table can have beside its files."""

from __future__ import annotations

from hoodie.metadata import IndexDefinition
from hoodie.metadata_writer import (
    bloom_filters_index,
    column_stats_index,
    expression_index,
    record_index,
    secondary_index,
)


def every_index(version: int, *, partitioned: bool) -> list[IndexDefinition]:
    """Definitions of all indexes that tables of a version can have on the column `v`, in the order to build them.
    `partitioned`: the record index is cut by partitions, and there is no secondary one, which needs a global one.
    """
    found = [bloom_filters_index(), record_index(partitioned=partitioned)]
    if version == 6:
        return [*found, column_stats_index()]
    found += [expression_index("up", "v", "upper"), expression_index("len", "v", "length", using="bloom_filters")]
    return found if partitioned else [*found, secondary_index("v", "v")]
