"""From rows to a completed instant: options, plans and the tasks that write base files and log files."""

from hoodie.write.evolution import SchemaChange, evolve_schema
from hoodie.write.job import Engines, Write
from hoodie.write.key_options import needs_stored_key
from hoodie.write.non_blocking import ensure_may_not_wait
from hoodie.write.operations import announce, delete_partitions, partitions_of, run_write
from hoodie.write.options import Operation, WriteOptions, base_file_options, parse_operation, parse_write_options
from hoodie.write.overwrite import load_switch, run_switch
from hoodie.write.replace import match_partitions
from hoodie.write.table_options import (
    create_table,
    ensure_compatible,
    ensure_writable,
    is_writable,
    plan_table,
)

__all__ = [
    "Engines",
    "Operation",
    "SchemaChange",
    "Write",
    "WriteOptions",
    "announce",
    "base_file_options",
    "create_table",
    "delete_partitions",
    "ensure_compatible",
    "ensure_may_not_wait",
    "ensure_writable",
    "evolve_schema",
    "is_writable",
    "load_switch",
    "match_partitions",
    "needs_stored_key",
    "parse_operation",
    "parse_write_options",
    "partitions_of",
    "plan_table",
    "run_switch",
    "run_write",
]
