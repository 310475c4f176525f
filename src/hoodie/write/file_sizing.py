"""Which file group a new row goes to: small files are filled up first, then new files are opened.

1. A file is small when its base file is smaller than `hoodie.parquet.small.file.limit` (0 turns filling up off).
2. Rows are counted, never measured: the average record size comes from earlier commits, or is
   `hoodie.copyonwrite.record.size.estimate` when no commit says enough (Hudi's rule).
3. Plans are pure: file sizes and counts in, numbers of rows out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hoodie.spec import CommitMetadata
from hoodie.view import FileSlice


@dataclass(frozen=True, slots=True)
class SizingOptions:
    """Limits in bytes and rows; names follow Hudi's keys.

    Of merge-on-read tables: `log_ratio` is the share of a log file's bytes that its rows take in a base file,
    `fills_beside_logs` how many small files of a partition one write may fill up by writing them anew.
    """

    max_file_bytes: int = 120 * 1024 * 1024
    small_file_bytes: int = 100 * 1024 * 1024
    record_size_estimate: int = 1024
    estimation_threshold: float = 1.0
    split_rows: int = 500_000
    auto_split: bool = True
    looked_at_commits: int = 5
    footer_bytes: int = 0
    log_ratio: float = 0.35
    fills_beside_logs: int = 1


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A file group that can take more rows."""

    file_id: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Fill:
    """`rows` new rows go to `file_id`, or to a new file group when that is None."""

    file_id: str | None
    rows: int


def slice_bytes(one: FileSlice, options: SizingOptions) -> int:
    """Bytes of the base file that the slice is, or would be once its log files are merged."""
    base = 0 if one.base is None else one.base.size_bytes
    return base + int(options.log_ratio * sum(log.size_bytes for log in one.logs))


def fillable_beside_logs(slices: Iterable[FileSlice], options: SizingOptions) -> list[FileSlice]:
    """Those of a partition's `slices` that a merge-on-read table may fill up with new rows when its index does not
    find keys in log files.

    A slice with log files cannot be: its next base file would hide them. Hudi takes the smallest only.
    """
    plain = [one for one in slices if one.base is not None and not one.logs]
    return sorted(plain, key=lambda one: slice_bytes(one, options))[: options.fills_beside_logs]


def average_record_bytes(commits: Iterable[CommitMetadata], options: SizingOptions) -> int:
    """Bytes of one record in base files, from the newest of `commits` (newest first) that wrote enough to tell.

    Enough is more than `estimation_threshold` times the small file limit. `footer_bytes` of each file do not count.
    """
    enough = options.estimation_threshold * options.small_file_bytes
    for commit in itertools.islice(commits, options.looked_at_commits):
        stats = [stat for group in commit.partition_to_write_stats.values() for stat in group if not stat.is_log]
        size = sum(max(0, stat.total_write_bytes - options.footer_bytes) for stat in stats)
        rows = sum(stat.num_writes for stat in stats)
        if rows and size > enough:
            return max(1, size // rows)
    return options.record_size_estimate


def plan_fills(rows: int, small: Sequence[SmallFile], record_bytes: int, options: SizingOptions) -> tuple[Fill, ...]:
    """Where `rows` new rows of one partition go, in order. The numbers add up to `rows`.

    Small files are filled smallest first up to the size limit; what is left goes to new files of equal size limit.
    """
    fills: list[Fill] = []
    left = rows
    for file in sorted(small, key=lambda one: (one.size_bytes, one.file_id)):
        room = (options.max_file_bytes - file.size_bytes) // record_bytes
        if left and room > 0 and file.size_bytes < options.small_file_bytes:
            fills.append(Fill(file.file_id, min(left, room)))
            left -= fills[-1].rows
    per_file = max(1, options.max_file_bytes // record_bytes) if options.auto_split else options.split_rows
    while left:
        fills.append(Fill(None, min(left, per_file)))
        left -= fills[-1].rows
    return tuple(fills)
