"""Savepoints: a commit whose files stay, whatever is cleaned, so that the table can go back to it.

1. A savepoint stands on the timeline under the time of its commit: an empty inflight file, then the list of files that
   must stay. Only the completed one counts.
2. It keeps the slice of every file group as of its commit: base file and log files.
3. What a clean may have removed cannot be saved any more: the state as of the commit must still be whole.
4. Deleting goes the same way back, completed file first. Whoever dies in between leaves an inflight savepoint, which
   promises nothing and which the next call on it removes or completes.

The caller holds the table lock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hoodie.config import Config
from hoodie.errors import Conflict, Invalid
from hoodie.fileview import FolderView
from hoodie.notebook import Displayed
from hoodie.query.cleaned import load_retained_from
from hoodie.spec import COMPLETED_WRITE_ACTIONS, SAVEPOINT, Instant, InstantTime, State, path_in
from hoodie.spec.savepoint_metadata import SavepointMetadata, encode_savepoint_metadata, parse_savepoint_metadata
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.timeline import (
    Timeline,
    complete,
    delete_instant_files,
    instant_path,
    load_history,
    load_instant,
    to_inflight,
)
from hoodie.view import FileSlice


@dataclass(frozen=True, slots=True)
class Savepoint(Displayed):
    """A completed savepoint of the commit `instant`. `created_ms` is milliseconds since 1970, `files` goes from
    partition to names of files that must stay.
    """

    instant: InstantTime
    user: str
    comments: str
    created_ms: int
    files: Mapping[str, tuple[str, ...]]

    @property
    def paths(self) -> frozenset[str]:
        """The saved files, as paths from the table's root."""
        return frozenset(path_in(partition, name) for partition, names in self.files.items() for name in names)


def load_savepoints(handle: TableHandle, timeline: Timeline | None = None) -> tuple[Savepoint, ...]:
    """The completed savepoints, ordered by the time of their commit. Reads the file of each."""
    found = [one for one in (timeline or timeline_of(handle)).completed() if one.action == SAVEPOINT]
    return tuple(_load(handle, one) for one in found)


def saved_instants(timeline: Timeline) -> frozenset[InstantTime]:
    """Requested times of the commits under a completed savepoint. Reads nothing."""
    return frozenset(one.requested for one in timeline.completed() if one.action == SAVEPOINT)


def create_savepoint(
    handle: TableHandle, config: Config, instant: InstantTime | None = None, user: str = "", comments: str = ""
) -> Savepoint:
    """The new savepoint of a completed commit, of the newest one by default.

    Raises:
        Invalid: no such commit, or a clean may have removed files of it.
        Conflict: it has a savepoint already.
    """
    del config  # what is saved depends on the table alone
    timeline = timeline_of(handle)
    commit = _commit_to_save(timeline, instant)
    if commit.requested in saved_instants(timeline):
        raise Conflict(
            f"The commit {commit.requested} has a savepoint already",
            remedy="Use that one, or delete it first",
            instant=commit.requested,
        )
    ensure_not_cleaned(handle, timeline, commit)
    slices = FolderView(handle.storage, timeline).load().slices_at(commit.requested)
    created_ms = int(handle.env.now().timestamp() * 1000)
    metadata = SavepointMetadata(user, created_ms, comments, plan_savepoint(slices))
    inflight = timeline.find(commit.requested, SAVEPOINT)  # left by one who died
    if inflight is None:
        pending = Instant(commit.requested, SAVEPOINT, State.REQUESTED)
        inflight = to_inflight(handle.storage, handle.profile, pending)
    payload = encode_savepoint_metadata(metadata, handle.profile.avro_generation)
    complete(handle.storage, handle.profile, inflight, payload, handle.env, handle.config.timezone)
    return Savepoint(commit.requested, user, comments, created_ms, metadata.files)


def load_archived_behind(handle: TableHandle, timeline: Timeline, instant: InstantTime) -> tuple[InstantTime, ...]:
    """Writes that are archived though they came after the commit `instant`, which a savepoint has kept on the timeline.
    Reads the history where that commit lies before the start of the timeline.
    """
    if not timeline.is_before_start(instant):
        return ()
    return tuple(one.requested for one in load_archived_writes(handle, instant) if one.requested > instant)


def load_archived_writes(handle: TableHandle, since: InstantTime) -> tuple[Instant, ...]:
    """Archived writes that were at work at some time after `since`, in timeline order."""
    archived = load_history(handle.storage, handle.profile, since)
    return tuple(sorted(one.instant for one in archived if one.instant.action in COMPLETED_WRITE_ACTIONS))


def delete_savepoint(handle: TableHandle, instant: InstantTime) -> None:
    """Remove the savepoint of the commit `instant`; its files may be cleaned from now on. Where the history reaches
    beyond it, the commit has to go there first (`services.archiving.unsaved`).

    Raises:
        Invalid: there is none.
    """
    found = timeline_of(handle).find(instant, SAVEPOINT)
    if found is None:
        raise Invalid(
            f"The commit {instant} has no savepoint", remedy="`hoodie timeline` lists savepoints", instant=instant
        )
    delete_instant_files(handle.storage, handle.profile, found)


def plan_savepoint(slices: Iterable[FileSlice]) -> dict[str, tuple[str, ...]]:
    """Names of the files of `slices` by partition: of each slice the base file, then log files newest first."""
    files: dict[str, list[str]] = defaultdict(list)
    for one in slices:
        paths = [*([one.base.path] if one.base else []), *(log.path for log in reversed(one.logs))]
        files[one.partition].extend(path.rpartition("/")[2] for path in paths)
    return {partition: tuple(names) for partition, names in files.items()}


def ensure_not_cleaned(handle: TableHandle, timeline: Timeline, commit: Instant) -> None:
    """Checks that the table as of `commit` is still there as far as cleans say. Lists the table.

    Raises:
        Invalid: a clean took files of it.
    """
    view = FolderView(handle.storage, timeline).load()
    retained = load_retained_from(handle.storage, view, commit.requested)
    if retained is not None:
        raise Invalid(
            f"The commit {commit.requested} is older than {retained}, the earliest one that cleans kept",
            remedy="Choose a later commit",
            instant=commit.requested,
            earliest=retained,
        )


def _commit_to_save(timeline: Timeline, instant: InstantTime | None) -> Instant:
    commit = timeline.last_completed_write() if instant is None else timeline.find(instant)
    if commit is None or not commit.is_completed or commit not in timeline.completed_writes():
        what = "The table has no completed commit" if instant is None else f"{instant} is no completed commit"
        raise Invalid(what, remedy="`hoodie timeline` lists the commits that can be saved", instant=instant)
    return commit


def _load(handle: TableHandle, instant: Instant) -> Savepoint:
    path = instant_path(handle.profile, instant)
    said = parse_savepoint_metadata(load_instant(handle.storage, handle.profile, instant), path)
    return Savepoint(instant.requested, said.saved_by, said.comments, said.saved_at_ms, said.files)
