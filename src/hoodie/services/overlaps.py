"""How the ranges of columns overlap over a table's files: how many of them a look-up of one value has to read.

Column statistics of the metadata table are asked, else footers. Of a table of many files some are looked at, evenly
over all, and the figure is what they tell of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hoodie.engine import Engine
from hoodie.metadata_writer.column_range import can_have_range
from hoodie.services.clustering.overlap import mean_depth
from hoodie.services.clustering.partition_orders import ORDER_NOTES, noted_columns
from hoodie.services.clustering.slice_facts import RangeSource, newest_notes
from hoodie.spec import REPLACE_COMMIT
from hoodie.state.handle import TableHandle
from hoodie.state.table_schema import load_newest_schema
from hoodie.timeline import Timeline
from hoodie.view import FileSlice

_MAX_COLUMNS: Final = 32
_MAX_SLICES: Final = 1_000


@dataclass(frozen=True, slots=True)
class ColumnOverlap:
    """How many of the `files` with a known range a look-up of one value of `column` reads, on average. `is_clustered`:
    the newest clustering has sorted by it.
    """

    column: str
    files: int
    reads: float
    is_clustered: bool = False


def load_overlaps(
    handle: TableHandle, timeline: Timeline, slices: Sequence[FileSlice], engine: Engine
) -> tuple[ColumnOverlap, ...]:
    """The overlap of each of the first columns that have an order, in the order of the schema.

    Raises:
        Corrupt: the metadata table or a file is damaged. Missing: a file is gone.
    """
    based = [part for part in slices if part.base is not None]
    schema = load_newest_schema(handle.storage, handle.config, timeline) or pa.schema([])
    dropped = handle.config.partition_fields if handle.config.drop_partition_columns else ()
    columns = [field.name for field in schema if can_have_range(field.type) and field.name not in dropped]
    columns = [name for name in columns if not name.startswith("_hoodie_")][:_MAX_COLUMNS]
    step = -(-len(based) // _MAX_SLICES) or 1
    looked_at = based[::step]
    ranges = RangeSource(handle, timeline, schema, engine).load(looked_at, columns)
    clustered = noted_columns(newest_notes(handle, timeline, ORDER_NOTES, (REPLACE_COMMIT,)))
    found = []
    for name in columns:
        known = [[ranges[part.group_id][name]] for part in looked_at if name in ranges[part.group_id]]
        if len(known) > 1:
            files = len(known) * step if step > 1 else len(known)
            reads = 1 + (mean_depth(known) - 1) * (files - 1) / (len(known) - 1)
            found.append(ColumnOverlap(name, files, reads, name in clustered))
    return tuple(found)
