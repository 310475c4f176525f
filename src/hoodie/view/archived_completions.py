"""What the archived history says about data files: looked up only where it decides something.

1. A log file of version 8 and later belongs to the newest slice that began before its delta commit *completed*. The
   active timeline forgets that time when the delta commit is archived; the history keeps it.
2. While no base file of the group is newer than the delta commit, any answer leads to the same slice. Then nothing is
   read, and mostly it is so: a compaction takes in what is older than it, and a clean removes that.
3. A file from before the active timeline counts when its write is in the history: it may be that of a worker which
   outlived its write. A metadata table lists files of settled writes only, so this is asked where folders were listed.
   In version 6 it is asked of the blocks in log files as well, when there are such files from before the timeline.

It does not build slices (`slicing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hoodie.spec import InstantTime
from hoodie.storage import Storage
from hoodie.timeline import Timeline, load_archived_commits, load_archived_writes
from hoodie.view.listing import PartitionFiles


def with_archived_writes(
    storage: Storage, timeline: Timeline, files: Iterable[PartitionFiles], *, are_settled: bool = False
) -> Timeline:
    """The timeline that knows which writes are in the history, if any of the files is older than it. Reads the history
    only for that. Of files that `are_settled` only log files are asked about whose names do not say who wrote them.
    """
    if timeline.archived_from is not None or (are_settled and timeline.profile.log_naming.has_one_write_per_file):
        return timeline
    asked = (found.logs if are_settled else (*found.everything, *found.changes) for found in files)
    times = {one.name.instant for some in asked for one in some}
    if not any(timeline.is_before_start(one) for one in times):
        return timeline
    return timeline.with_archived(load_archived_writes(storage, timeline.profile), whole=True)


def with_archived_completions(storage: Storage, timeline: Timeline, files: Iterable[PartitionFiles]) -> Timeline:
    """The timeline with the completion times that the log files among `files` need. Reads the history only for that.

    Raises:
        Corrupt: the history is needed and damaged.
    """
    asked = [one for found in files for one in _undecided(found, timeline)]
    if not asked or timeline.archived_from is not None:
        return timeline
    return timeline.with_archived(load_archived_commits(storage, timeline.profile, until=max(asked)))


def _undecided(files: PartitionFiles, timeline: Timeline) -> Iterator[InstantTime]:
    """Archived delta commits with log files in groups that have a newer base file, whose completion nobody knows."""
    if not timeline.profile.log_naming.finds_slice_by_completion or not files.logs:
        return
    newest: dict[str, InstantTime] = {}
    for base in files.bases:
        newest[base.name.file_id] = max(base.name.instant, newest.get(base.name.file_id, ""))
    for log in files.logs:
        written = log.name.instant
        is_open = written < newest.get(log.name.file_id, "") and timeline.completion_of(written) is None
        if is_open and timeline.is_before_start(written):
            yield written
