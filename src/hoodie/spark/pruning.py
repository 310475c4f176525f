"""Slices that Spark need not read: what a table's buckets and metadata table tell, asked while a query is planned.

1. Spark's filters come later than the plan of a frame, and the table may have moved on since. Statistics of files never
   change and serve any plan; indexes of the newest state (keys, whole partitions) are asked only while the table is as
   it was planned.
2. The metadata table is opened when the first filter comes, once for each frame.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hoodie.index import parse_remembered_buckets
from hoodie.query import ReadOptions, ReadPlan
from hoodie.spark.worker_frame import Prune
from hoodie.table import Table

if TYPE_CHECKING:
    from hoodie.metadata import MetadataTable

_PAST = "0"


def pruner(table: Table, options: ReadOptions) -> Prune | None:
    """What leaves out slices of plans that are made of `table` now; None where it has nothing to ask."""
    config = table.config
    has_metadata = config.is_metadata_table_ready and options.use_metadata
    if not options.skip_data or not (has_metadata or parse_remembered_buckets(config.raw) is not None):
        return None
    planned = table.timeline()
    opened: list[MetadataTable | None] = [] if has_metadata else [None]

    def prune(plan: ReadPlan) -> ReadPlan:
        if plan.rows.filter is None:
            return plan
        # Loads the readers of the metadata table, which frames without filters do not need.
        from hoodie.metadata import open_metadata_table  # noqa: PLC0415
        from hoodie.query.data_skipping import SkippingSources, without_ruled_out  # noqa: PLC0415

        if not opened:
            opened.append(open_metadata_table(table.storage, config, planned))
        sources = SkippingSources(table.storage, config, planned, opened[0])
        is_newest = table.timeline().instants == planned.instants
        return without_ruled_out(plan, sources, options if is_newest else replace(options, as_of=_PAST))

    return prune
