"""The rows of a file slice: base file, log files merged into it, bootstrap sources, change data."""

from hoodie.slices.merge_plan import MergeOptions, MergePlan, parse_merge_options, plan_merge
from hoodie.slices.merged_rows import MergedSlices, OpenSlice
from hoodie.slices.read_rows import read_rows
from hoodie.slices.row_plan import READ_BATCH_ROWS, CommitTimes, RowPlan
from hoodie.slices.slice_read import ChangeKind, ChangeRead, FileRead, SliceRead

__all__ = [
    "READ_BATCH_ROWS",
    "ChangeKind",
    "ChangeRead",
    "CommitTimes",
    "FileRead",
    "MergeOptions",
    "MergePlan",
    "MergedSlices",
    "OpenSlice",
    "RowPlan",
    "SliceRead",
    "parse_merge_options",
    "plan_merge",
    "read_rows",
]
