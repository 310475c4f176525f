"""Reading the timeline from storage: which instants there are, and what their files say.

1. Only names that are instants count; checksum side files, temporary files and folders are skipped.
2. Where names carry no completion time (version 6, legacy names) the file's modification time stands for it, in the
   table's time zone.
3. One listing of one folder; contents are read only when asked for.
"""

from __future__ import annotations

from dataclasses import replace

from hoodie.errors import Missing
from hoodie.spec import (
    CLUSTERING,
    COMPACTION,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    CommitMetadata,
    FormatProfile,
    Instant,
    RequestedReplace,
    State,
    TimeZone,
    format_instant_millis,
    parse_commit,
    parse_requested_replace,
)
from hoodie.storage import FileInfo, Listable, Storage
from hoodie.timeline.timeline import Timeline, furthest

PLAN_ACTIONS = frozenset({COMPACTION, LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT})
"""Pending instants of these actions have a plan, which may be rewritten at its instant."""


def load_timeline(storage: Listable, profile: FormatProfile, timezone: TimeZone = "LOCAL") -> Timeline:
    """The active timeline as it is on storage now. `timezone` matters only where completion times come from files."""
    found = list_state_files(storage, profile, timezone)
    instants = furthest(instant for instant, _ in found)
    planned = {one.logical for one in instants if not one.is_completed and one.action in PLAN_ACTIONS}
    files = (file for one, file in found if one.state is State.REQUESTED and one.logical in planned)
    return Timeline(profile, instants, plan_files=tuple(files))


def list_instants(storage: Listable, profile: FormatProfile, timezone: TimeZone = "LOCAL") -> tuple[Instant, ...]:
    """Every state file of the active timeline as an instant, in path order; several per logical instant."""
    return tuple(instant for instant, _ in list_state_files(storage, profile, timezone))


def list_state_files(
    storage: Listable, profile: FormatProfile, timezone: TimeZone = "LOCAL"
) -> tuple[tuple[Instant, FileInfo], ...]:
    """Every state file of the active timeline, in path order, with the instant it stands for."""
    files = storage.list_dir(profile.timeline_dir).files
    found = ((_instant(file, profile, timezone), file) for file in files)
    return tuple((instant, file) for instant, file in found if instant is not None)


def instant_path(profile: FormatProfile, instant: Instant) -> str:
    """Where the file of an instant in its state stands."""
    return f"{profile.timeline_dir}/{profile.instant_names.file_name(instant)}"


def load_instant(storage: Storage, profile: FormatProfile, instant: Instant) -> bytes:
    """The content of an instant's file in its state.

    Raises:
        Missing: there is no such file (any more).
    """
    return storage.read(instant_path(profile, instant))


def load_requested(storage: Storage, profile: FormatProfile, instant: Instant) -> bytes:
    """The content of an instant's requested file, whatever state it has reached; empty when there is none."""
    try:
        return load_instant(storage, profile, replace(instant, state=State.REQUESTED, completed=None))
    except Missing:
        return b""


def is_clustering(storage: Storage, profile: FormatProfile, instant: Instant) -> bool:
    """Whether an instant is a clustering. Version 6 calls a pending one replacecommit: of such the request is read.
    Who looks at all that is pending asks `hoodie.state.pending_plans`, which reads a request once.

    Raises:
        Corrupt: the request is damaged.
    """
    if instant.is_completed or instant.action != REPLACE_COMMIT:
        return instant.action == CLUSTERING
    return load_replace_request(storage, profile, instant).is_clustering


def load_replace_request(storage: Storage, profile: FormatProfile, instant: Instant) -> RequestedReplace:
    """What a replacecommit or clustering was asked to do, whatever state it has reached; an empty request when nothing
    was said.

    Raises:
        Corrupt: the request is damaged.
    """
    path = instant_path(profile, replace(instant, state=State.REQUESTED, completed=None))
    return parse_requested_replace(load_requested(storage, profile, instant), path)


def load_commit_metadata(storage: Storage, profile: FormatProfile, instant: Instant) -> CommitMetadata:
    """What a commit did, or (inflight) is about to do. Requested instants have empty metadata.

    Raises:
        Missing: there is no such file (any more).
        Corrupt: the file is damaged.
    """
    if instant.state is State.REQUESTED:
        return CommitMetadata()
    path = instant_path(profile, instant)
    return parse_commit(storage.read(path), path)


def _instant(file: FileInfo, profile: FormatProfile, timezone: TimeZone) -> Instant | None:
    instant = profile.instant_names.parse(file.path.rpartition("/")[2])
    if instant is None or not instant.is_completed or instant.completed is not None:
        return instant
    return replace(instant, completed=format_instant_millis(file.modified_ms, timezone))
