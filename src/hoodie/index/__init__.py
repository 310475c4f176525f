"""Where a key lives: from incoming record keys to base files and rows."""

from hoodie.index.lookup import FileHits, IndexKind, KeySet, LookupTask, Positions, find_in_file

__all__ = ["FileHits", "IndexKind", "KeySet", "LookupTask", "Positions", "find_in_file"]
