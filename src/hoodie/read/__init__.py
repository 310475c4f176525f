"""Reading a table: options, plan (pure), rows.

Conditions as SQL text go into `ReadOptions.filter`; their parser, `filter_sql`, is loaded when there is such a text.
"""

from hoodie.read.incremental import CommitTimes, Window
from hoodie.read.lookup import BucketHint, load_lookup_plan
from hoodie.read.merge_plan import MergePlan, plan_merge
from hoodie.read.merged_rows import MergedSlices, OpenSlice
from hoodie.read.narrow import narrowed
from hoodie.read.read_facts import ReadFacts, load_read_facts
from hoodie.read.read_options import ReadOptions, parse_read_options
from hoodie.read.read_plan import ReadPlan, RowPlan, load_read_plan, plan_read
from hoodie.read.read_rows import read_rows
from hoodie.read.result_schema import ResultSchema, result_schema
from hoodie.read.row_filter import RowFilter, filter_of
from hoodie.read.rows import Rows
from hoodie.read.run_read import Progress, run_read
from hoodie.read.slice_read import ChangeKind, ChangeRead, FileRead, SliceRead
from hoodie.read.table_schema import TableSchema, load_newest_schema, load_schema, load_table_schema
from hoodie.read.validate import Finding, validate_table

__all__ = [
    "BucketHint",
    "ChangeKind",
    "ChangeRead",
    "CommitTimes",
    "FileRead",
    "Finding",
    "MergePlan",
    "MergedSlices",
    "OpenSlice",
    "Progress",
    "ReadFacts",
    "ReadOptions",
    "ReadPlan",
    "ResultSchema",
    "RowFilter",
    "RowPlan",
    "Rows",
    "SliceRead",
    "TableSchema",
    "Window",
    "filter_of",
    "load_lookup_plan",
    "load_newest_schema",
    "load_read_facts",
    "load_read_plan",
    "load_schema",
    "load_table_schema",
    "narrowed",
    "parse_read_options",
    "plan_merge",
    "plan_read",
    "read_rows",
    "result_schema",
    "run_read",
    "validate_table",
]
