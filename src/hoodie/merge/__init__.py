"""Versions of a record become one row: the rules of a table, the map of a log, and its merge with the base rows."""

from hoodie.merge.log_map import DEFAULT_LIMIT_BYTES, LogMap, LogPart, collect_log
from hoodie.merge.merge_rows import BaseRows, ChangeKind, Changes, Piece, merge_changes, merge_pieces, merge_rows
from hoodie.merge.mergers import Merger, register_merger
from hoodie.merge.rules import MergeRules, MergeStep, columns_needed, merge_rules_of
from hoodie.merge.versions import Deletes, LogEntry, LogRows

__all__ = [
    "DEFAULT_LIMIT_BYTES",
    "BaseRows",
    "ChangeKind",
    "Changes",
    "Deletes",
    "LogEntry",
    "LogMap",
    "LogPart",
    "LogRows",
    "MergeRules",
    "MergeStep",
    "Merger",
    "Piece",
    "collect_log",
    "columns_needed",
    "merge_changes",
    "merge_pieces",
    "merge_rows",
    "merge_rules_of",
    "register_merger",
]
