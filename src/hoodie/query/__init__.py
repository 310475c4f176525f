"""Reading a table: options, plan (pure), rows.

Conditions as SQL text go into `ReadOptions.filter`; their parser, `filters.sql`, is loaded when there is such a text.
"""

from hoodie.query.bucket_slices import BucketHint
from hoodie.query.incremental import Window
from hoodie.query.load_plan import load_read_plan
from hoodie.query.lookup import load_lookup_plan
from hoodie.query.narrow import narrowed
from hoodie.query.read_facts import ReadFacts, load_read_facts
from hoodie.query.read_options import ReadOptions, parse_read_options
from hoodie.query.read_plan import ReadPlan, plan_read
from hoodie.query.result_schema import ResultSchema, result_schema
from hoodie.query.rows import Rows
from hoodie.query.run_read import Progress, run_read
from hoodie.query.validate import Finding, validate_table

__all__ = [
    "BucketHint",
    "Finding",
    "Progress",
    "ReadFacts",
    "ReadOptions",
    "ReadPlan",
    "ResultSchema",
    "Rows",
    "Window",
    "load_lookup_plan",
    "load_read_facts",
    "load_read_plan",
    "narrowed",
    "parse_read_options",
    "plan_read",
    "result_schema",
    "run_read",
    "validate_table",
]
