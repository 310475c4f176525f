"""Which commits an incremental query selects, which files hold what they wrote, and which rows of these count.

1. The range is (begin, end]. Its clock is the requested time in tables without completion times (version 6) and the
   completion time in later ones. So a late finisher of a version 8+ table is never skipped by someone who remembers
   where the last pull ended.
2. The result is the state at the end of the range, reduced to the rows the selected commits wrote: of each file group
   the newest slice that the *files of selected commits* make, unless a selected commit replaced the group. Of its
   merged rows those whose `_hoodie_commit_time` is a selected commit count. Base files from before the range hold no
   such row and are not read.
3. Compaction and clustering keep commit times, so they only move rows; deletes leave nothing to see.
4. If one of these files is gone (cleaned), or the range begins in archived history, the table as of the last selected
   commit is read instead, and filtered by the same times. Only where that state was cleaned up itself is it the newest
   snapshot: rows that changed again after `end` are missing then, and a warning says so. `full_scan_fallback=False`
   makes all of it an error.
5. So the result is always that of time travel to the end, reduced to the rows of the range, wherever such a time travel
   is possible, with one exception, as in Hudi: where rows are ordered by event time, a row that came too late to win
   against an older base file is in the result of the range that wrote it, since that base file is not read (2).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

from hoodie.errors import Invalid
from hoodie.slices import CommitTimes
from hoodie.spec import CommitClock, CommitMetadata, Instant, InstantTime, parse_base_file_name, parse_log_file_name
from hoodie.timeline import Timeline
from hoodie.view import BaseFile, FileSlice, LogFile, PartitionFiles, View, replaced_groups, view_of


@dataclass(frozen=True, slots=True)
class Window:
    """The selected completed writes of the active timeline, oldest requested first.

    `begin` and `end` are on the clock it was selected by. `archived` are requested times of selected writes that are
    archived; where the clock is the requested time they are not looked up: `has_unknown_past`.
    """

    begin: InstantTime
    end: InstantTime | None
    instants: tuple[Instant, ...]
    reaches_back: bool = False
    archived: frozenset[InstantTime] = frozenset()
    has_unknown_past: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no commit at all is selected."""
        return not (self.instants or self.archived or self.has_unknown_past)

    @property
    def needs_snapshot(self) -> bool:
        """Whether archived commits are selected: which files they wrote is not known any more."""
        return bool(self.archived) or self.has_unknown_past

    @property
    def last_requested(self) -> InstantTime | None:
        """Requested time of the last selected commit, as far as it is known; else the end."""
        return max((*self.requested, *self.archived), default=self.end if self.has_unknown_past else None)

    @property
    def requested(self) -> frozenset[InstantTime]:
        """Requested times of the selected instants: what rows carry as their commit time."""
        return frozenset(instant.requested for instant in self.instants)


def select(timeline: Timeline, begin: InstantTime, end: InstantTime | None, clock: CommitClock) -> Window:
    """The completed writes of the active timeline in (begin, end] on a clock."""
    writes = timeline.completed_writes()
    times = {write: clock.of(write) for write in writes}
    instants = tuple(write for write in writes if begin < times[write] and (end is None or times[write] <= end))
    active = [times[write] for write in writes if not timeline.is_before_start(write.requested)]
    reaches_back = bool(active) and begin < min(active)
    return Window(begin, end, instants, reaches_back)


def with_archived(window: Window, completions: Mapping[InstantTime, InstantTime]) -> Window:
    """The window with those archived writes (requested → completion time) that completed in its range."""
    selected = (
        requested
        for requested, completed in completions.items()
        if window.begin < completed and (window.end is None or completed <= window.end)
    )
    return replace(window, archived=frozenset(selected))


def without_hollow(window: Window, first_incomplete: InstantTime | None, *, block: bool) -> Window:
    """The window without commits that are later than a write that is not complete; `block` cuts it there, else it is an
    error.

    Only where the clock is the requested time: whoever continues behind such a commit would never see the earlier one.

    Raises:
        Invalid: there are such commits and `block` is false.
    """
    late = [
        instant for instant in window.instants if first_incomplete is not None and instant.requested > first_incomplete
    ]
    if not late:
        return window
    if not block:
        raise Invalid(
            f"The write of {first_incomplete} is not complete, but commits after it are in the range "
            f"(the last is {late[-1].requested}): whoever continues from there would never see it",
            remedy=f"Set the end before {first_incomplete}, or stop there with "
            "hoodie.query.timeline.holes.resolution.policy=BLOCK",
            incomplete=first_incomplete,
        )
    instants = tuple(instant for instant in window.instants if instant not in late)
    return replace(window, instants=instants)


def without_operations(
    window: Window, commits: Mapping[InstantTime, CommitMetadata], operations: Container[str]
) -> Window:
    """The window without commits of some operations (Hudi's names)."""
    instants = tuple(
        instant for instant in window.instants if commits[instant.requested].operation_type not in operations
    )
    return replace(window, instants=instants)


def touched_slices(
    window: Window, commits: Mapping[InstantTime, CommitMetadata], view: View
) -> tuple[tuple[FileSlice, ...], tuple[str, ...]]:
    """The slices that the files of the selected commits make, ordered by partition and file id; and those of their
    files that are no longer there.

    Groups a selected commit replaced are left out, and so are older files of a group that a newer base file holds.
    """
    written = [(instant.requested, commits[instant.requested]) for instant in window.instants]
    listed = {file.path: file.size_bytes for found in view.files for file in found.everything}
    files = _written_files(written, listed)
    compactions = {group.group_id: group.pending_compaction for group in view.groups if group.pending_compaction}
    slices = view_of(view.timeline, files, replaced_groups(written), compactions).slices_at()
    paths = (path for part in slices for path in part.paths)
    return slices, tuple(sorted(path for path in paths if path not in listed))


def needs_whole_state(window: Window, commits: Mapping[InstantTime, CommitMetadata], view: View) -> bool:
    """Whether the files of the selected commits do not tell the range: some are gone, or no longer known."""
    return window.needs_snapshot or bool(touched_slices(window, commits, view)[1])


def commit_times(window: Window, timeline: Timeline) -> CommitTimes:
    """The commit times that count for a window."""
    times = window.requested | window.archived
    first = timeline.first_write_instant
    if first is None or not window.has_unknown_past:
        return CommitTimes(times)
    # Of 17-digit times exactly those up to `end` are smaller than `end` with a digit behind it.
    until = first.requested if window.end is None else min(first.requested, window.end + "0")
    return CommitTimes(times, window.begin, until)


def ensure_fallback_allowed(window: Window, gone: tuple[str, ...], *, allowed: bool) -> None:
    """Checks that the newest snapshot may be read in place of files that are gone or no longer known.

    Raises:
        Invalid: it may not; names a file.
    """
    if allowed or not (gone or window.needs_snapshot):
        return
    what = (
        f"{len(gone)} files of the range are gone, cleaned since: {gone[0]}"
        if gone
        else "The range has archived commits"
    )
    raise Invalid(
        what,
        remedy="Begin later, or filter the newest snapshot instead with "
        "hoodie.datasource.read.incr.fallback.fulltablescan.enable=true",
        path=gone[0] if gone else None,
    )


def _written_files(
    written: Iterable[tuple[InstantTime, CommitMetadata]], listed: Mapping[str, int]
) -> tuple[PartitionFiles, ...]:
    """The data files that commits wrote, by partition, there or not. Sizes are the listed ones where they are there."""
    bases: defaultdict[str, dict[str, BaseFile]] = defaultdict(dict)
    logs: defaultdict[str, dict[str, LogFile]] = defaultdict(dict)
    for _, metadata in written:
        for partition, stat in metadata.write_stats():
            path = stat.path or ""
            name = path.rpartition("/")[2]
            size = listed.get(path, stat.file_size_bytes)
            log, base = parse_log_file_name(name), parse_base_file_name(name)
            if log is not None:
                logs[partition][path] = LogFile(path, log, size)
            elif base is not None:
                bases[partition][path] = BaseFile(path, base, size)
    return tuple(
        PartitionFiles(partition, tuple(bases[partition].values()), tuple(logs[partition].values()))
        for partition in sorted({*bases, *logs})
    )
