"""Reading a table: options, plan (pure), rows.

Conditions as SQL text go into `ReadOptions.filter`; their parser, `filter_sql`, is loaded when there is such a text.
"""

from hoodie.read.incremental import CommitTimes, Window
from hoodie.read.read_options import ReadOptions, parse_read_options
from hoodie.read.read_plan import (
    FileRead,
    ReadFacts,
    ReadPlan,
    RowPlan,
    load_read_facts,
    load_read_plan,
    plan_read,
)
from hoodie.read.read_rows import read_rows
from hoodie.read.result_schema import ResultSchema, result_schema
from hoodie.read.row_filter import RowFilter, filter_of
from hoodie.read.run_read import run_read
from hoodie.read.table_schema import load_newest_schema, load_table_schema
from hoodie.read.validate import Finding, validate_table

__all__ = [
    "CommitTimes",
    "FileRead",
    "Finding",
    "ReadFacts",
    "ReadOptions",
    "ReadPlan",
    "ResultSchema",
    "RowFilter",
    "RowPlan",
    "Window",
    "filter_of",
    "load_newest_schema",
    "load_read_facts",
    "load_read_plan",
    "load_table_schema",
    "parse_read_options",
    "plan_read",
    "read_rows",
    "result_schema",
    "run_read",
    "validate_table",
]
