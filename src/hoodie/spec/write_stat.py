"""What one write did to one file: the unit of commit metadata.

1. Field meanings and defaults are Hudi's: counts default to 0, absent objects to None, and `prev_commit` of a new file
   group is the text `"null"`.
2. `path` is relative to the table's base path.
3. A stat of a log file has `log_version`; a base file's has not.

Both are named tuples: a commit may have a hundred thousand, and a frozen data class takes six times as long to make.
It does not know how it is stored; see `commit_json` and `commit_avro`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

NULL_COMMIT = "null"


class RuntimeStats(NamedTuple):
    """Milliseconds the writing task spent scanning, updating and creating."""

    total_scan_time_ms: int = 0
    total_upsert_time_ms: int = 0
    total_create_time_ms: int = 0


class WriteStat(NamedTuple):
    """Counts and sizes of one written file.

    `num_writes` is the number of records now in the base file (inserted, updated and carried over), or appended to the
    log. `prev_commit` is the base instant of the slice that was there before; for a log file of version 8+ it is the
    delta commit itself. `file_size_bytes` and `total_write_bytes` are both the file's length. In a workload profile
    (inflight content) only `file_id`, `prev_commit`, `num_inserts` and `num_update_writes` are set, and `path` is None.
    """

    file_id: str = ""
    path: str | None = None
    prev_commit: str | None = NULL_COMMIT
    num_writes: int = 0
    num_deletes: int = 0
    num_update_writes: int = 0
    num_inserts: int = 0
    total_write_bytes: int = 0
    total_write_errors: int = 0
    partition_path: str = ""
    file_size_bytes: int = 0
    runtime: RuntimeStats | None = None
    prev_base_file: str | None = None
    cdc_stats: Mapping[str, int] | None = None
    temp_path: str | None = None
    min_event_time: int | None = None
    max_event_time: int | None = None

    # Filled by compaction and by log writes
    total_log_records: int = 0
    total_log_files_compacted: int = 0
    total_log_size_compacted: int = 0
    total_log_read_time_ms: int = 0
    total_updated_records_compacted: int = 0
    total_log_blocks: int = 0
    total_corrupt_log_blocks: int = 0
    total_rollback_blocks: int = 0
    num_updates: int = 0

    # Only for log files
    log_version: int | None = None
    log_offset: int | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] | None = None

    @property
    def file_sizes(self) -> dict[str, int]:
        """Bytes of the files it tells of, those of changed data included, by path."""
        return {**({self.path: self.file_size_bytes} if self.path else {}), **(self.cdc_stats or {})}

    @property
    def is_log(self) -> bool:
        """Whether the written file is a log file."""
        return self.log_version is not None

    @property
    def adds_to_base(self) -> bool:
        """Whether the written file is a base file with new rows."""
        return self.num_inserts > 0 and not self.is_log and self.path is not None

    @property
    def begins_group(self) -> bool:
        """Whether the written file is the first one of its file group. A log file of a group without a base file may
        be.
        """
        return not self.base_file if self.is_log else self.prev_commit in (None, "", NULL_COMMIT)
