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
from hoodie.services.clustering.plan_strategy import RangesOf
from hoodie.services.clustering.slice_facts import RangeSource, newest_write
from hoodie.spec import REPLACE_COMMIT, CommitMetadata
from hoodie.state.handle import TableHandle
from hoodie.state.table_schema import load_newest_schema
from hoodie.view import FileSlice, View

_MAX_COLUMNS: Final = 32
_MAX_SLICES: Final = 1_000


@dataclass(frozen=True, slots=True)
class ColumnOverlap:
    """How many of the `files` with a known range a look-up of one value of `column` reads, on average. `is_clustered`:
    the newest clustering that put rows in order has sorted by it. `reads_before`, `files_before`: the same as if that
    clustering had not been, while all that it replaced is still there.
    """

    column: str
    files: int
    reads: float
    is_clustered: bool = False
    reads_before: float | None = None
    files_before: int | None = None


def load_overlaps(handle: TableHandle, view: View, engine: Engine) -> tuple[ColumnOverlap, ...]:
    """The overlap of each of the first columns that have an order, in the order of the schema, over the files in
    `view`.

    Raises:
        Corrupt: the metadata table or a file is damaged. Missing: a file is gone.
    """
    timeline, slices = view.timeline, view.slices_at()
    schema = load_newest_schema(handle.storage, handle.config, timeline) or pa.schema([])
    dropped = handle.config.partition_fields if handle.config.drop_partition_columns else ()
    columns = [field.name for field in schema if can_have_range(field.type) and field.name not in dropped]
    columns = [name for name in columns if not name.startswith("_hoodie_")][:_MAX_COLUMNS]
    clustering = newest_write(handle, timeline, ORDER_NOTES, (REPLACE_COMMIT,)) or CommitMetadata()
    clustered = noted_columns(clustering.extra_metadata)
    sample, before = _sample(slices), _sample(_slices_before(view, clustering))
    looked_at = {part.group_id: part for part in (*sample.slices, *before.slices)}
    ranges = RangeSource(handle, timeline, schema, engine).load(tuple(looked_at.values()), columns)
    reads_before = _reads(before, ranges, columns)
    found = []
    for name, (files, reads) in _reads(sample, ranges, columns).items():
        files_before, told_before = reads_before.get(name, (None, None))
        found.append(ColumnOverlap(name, files, reads, name in clustered, told_before, files_before))
    return tuple(found)


def _slices_before(view: View, clustering: CommitMetadata) -> Sequence[FileSlice]:
    """The slices there would be without a clustering; none where some that it replaced are not there any more."""
    groups = {group.group_id: group for group in view.groups}
    replaced = clustering.replaced_file_groups()
    if not replaced or not replaced <= groups.keys():
        return ()
    written = {(partition, stat.file_id) for partition, stat in clustering.write_stats()}
    others = (part for part in view.slices_at() if part.group_id not in written)
    return (*others, *(groups[one].slices[0] for one in sorted(replaced)))


@dataclass(frozen=True, slots=True)
class _Sample:
    """Every `step`-th of some slices that have a base file."""

    slices: Sequence[FileSlice]
    step: int


def _sample(slices: Sequence[FileSlice]) -> _Sample:
    based = [part for part in slices if part.base is not None]
    step = -(-len(based) // _MAX_SLICES) or 1
    return _Sample(based[::step], step)


def _reads(sample: _Sample, ranges: RangesOf, columns: Sequence[str]) -> dict[str, tuple[int, float]]:
    """By column: how many slices have a known range, and how many of these hold one value; pure."""
    found = {}
    for name in columns:
        known = [[ranges[part.group_id][name]] for part in sample.slices if name in ranges[part.group_id]]
        if len(known) > 1:
            files = len(known) * sample.step
            found[name] = files, 1 + (mean_depth(known) - 1) * (files - 1) / (len(known) - 1)
    return found
