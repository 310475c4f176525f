"""When archived delta commits completed: looked up only where it decides to which slice a log file belongs.

1. A log file of version 8 and later belongs to the newest slice that began before its delta commit *completed*. The
   active timeline forgets that time when the delta commit is archived; the history keeps it.
2. While no base file of the group is newer than the delta commit, any answer leads to the same slice. Then nothing is
   read, and mostly it is so: a compaction takes in what is older than it, and a clean removes that.

It does not build slices (`slicing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hoodie.spec import InstantTime
from hoodie.storage import Storage
from hoodie.timeline import Timeline, load_archived_commits
from hoodie.view.listing import PartitionFiles


def with_archived_completions(storage: Storage, timeline: Timeline, files: Iterable[PartitionFiles]) -> Timeline:
    """The timeline with the completion times that the log files among `files` need. Reads the history only for that.

    Raises:
        Corrupt: the history is needed and damaged.
    """
    asked = [one for found in files for one in _undecided(found, timeline)]
    if not asked:
        return timeline
    return timeline.with_archived(load_archived_commits(storage, timeline.profile, until=max(asked)))


def _undecided(files: PartitionFiles, timeline: Timeline) -> Iterator[InstantTime]:
    """Archived delta commits with log files in groups that have a newer base file."""
    if timeline.profile.slicing != "completion" or not files.logs:
        return
    newest: dict[str, InstantTime] = {}
    for base in files.bases:
        newest[base.name.file_id] = max(base.name.instant, newest.get(base.name.file_id, ""))
    for log in files.logs:
        written = log.name.instant
        if written < newest.get(log.name.file_id, "") and timeline.is_before_start(written):
            yield written
