"""Log files of the metadata table in the order in which what they say was recorded.

A delta commit has the instant of the table's write, and writers that work beside one another are requested in one order
and commit in another. Each records what is true when it commits, under the table lock: so the later record is the one
that was completed later, whoever began first. Log files are named by requests, and Hudi merges them in that order.
"""

from __future__ import annotations

from hoodie.timeline import Timeline
from hoodie.view import FileSlice


def in_commit_order(part: FileSlice, timeline: Timeline) -> FileSlice:
    """The slice with its log files by completion; `timeline` is the metadata table's. Pure."""
    if not timeline.profile.log_naming.has_one_write_per_file:
        return part
    by_completion = {log.name: timeline.completion_of(log.name.instant) or log.name.instant for log in part.logs}
    return part._replace(logs=tuple(sorted(part.logs, key=lambda log: (by_completion[log.name], log.name.order))))
