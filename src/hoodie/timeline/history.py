"""Archived history: what happened before the active timeline starts.

1. Two forms exist, and the format profile says which one a table has: archives in log format (`log_archive`), or
   parquet files with a manifest (`lsm_history`). An upgraded table keeps the archives of its former form; they count no
   more, since the upgrade has copied them.
2. A logical instant has one entry, and it is a completed one.
3. Times and actions are read at once, what a commit did only when it is asked for.

Where it is needed: `hoodie timeline --all`, incremental queries that begin before the active timeline, completion times
of log files older than it. Bytes: `docs/format/history.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hoodie.errors import Invalid
from hoodie.spec import (
    CLEAN,
    COMPLETED_WRITE_ACTIONS,
    MANIFEST_PREFIX,
    CleanMetadata,
    CommitMetadata,
    FormatProfile,
    InstantTime,
)
from hoodie.storage import Storage
from hoodie.timeline.archived_instant import ArchivedInstant, LogPlace, RowPlace
from hoodie.timeline.log_archive import list_archives, load_log_archive, load_log_clean, load_log_metadata
from hoodie.timeline.lsm_history import load_lsm_cleans, load_lsm_history, load_lsm_metadata


def has_history(storage: Storage, profile: FormatProfile) -> bool:
    """Whether instants were archived, by the names archives have. Listings only."""
    if profile.history_form == "log_files":
        return bool(list_archives(storage, profile.history_dir))
    names = (file.path.rpartition("/")[2] for file in storage.list_dir(profile.history_dir).files)
    return any(name.startswith(MANIFEST_PREFIX) or name.endswith(".parquet") for name in names)


def load_history(
    storage: Storage, profile: FormatProfile, after: InstantTime = "", until: InstantTime | None = None
) -> tuple[ArchivedInstant, ...]:
    """The archived instants that were at work at some time in (after, until], all by default; in timeline order.

    An instant is at work from its request to its completion, so a range on either clock gets all it needs. History in
    log format is read as a whole, of the other form only what statistics do not rule out.

    Raises:
        Corrupt: a file of the history is damaged or gone.
    """
    if profile.history_form == "log_files":
        found = load_log_archive(storage, profile.history_dir)
        return tuple(one for one in found if one.was_at_work(after, until))
    return load_lsm_history(storage, profile.history_dir, after, until)


def load_archived_commits(
    storage: Storage, profile: FormatProfile, after: InstantTime = "", until: InstantTime | None = None
) -> dict[InstantTime, InstantTime]:
    """Requested → completion time of the writes among `load_history`. Raises as that does."""
    found = load_history(storage, profile, after, until)
    return {one.requested: one.completed for one in found if one.action in COMPLETED_WRITE_ACTIONS}


def load_archived_metadata(
    storage: Storage, instants: Iterable[ArchivedInstant]
) -> Mapping[InstantTime, CommitMetadata]:
    """What archived commits did, by requested time.

    Raises:
        Invalid: one of them is no commit.
        Corrupt: a file of the history is damaged.
        Missing: the history was rewritten since the instants were loaded; load them again.
    """
    rows: list[tuple[ArchivedInstant, RowPlace]] = []
    found: dict[InstantTime, CommitMetadata] = {}
    for one in instants:
        if one.action not in COMPLETED_WRITE_ACTIONS:
            raise Invalid(f"{one.requested} is a {one.action}, which has no commit metadata", instant=one.requested)
        match one.place:
            case LogPlace() as place:
                found[one.requested] = load_log_metadata(storage, place)
            case RowPlace() as place:
                rows.append((one, place))
    return found | load_lsm_metadata(storage, rows)


def load_archived_cleans(
    storage: Storage, profile: FormatProfile, after: InstantTime = ""
) -> tuple[CleanMetadata, ...]:
    """What the archived cleans did that ended after a time; those left out whose entries do not say.

    Raises:
        Corrupt: a file of the history is damaged or gone.
        Missing: the history was rewritten meanwhile: ask again.
    """
    cleans = [one for one in load_history(storage, profile, after) if one.action == CLEAN]
    rows = [(one, one.place) for one in cleans if isinstance(one.place, RowPlace)]
    logged = (load_log_clean(storage, one.place) for one in cleans if isinstance(one.place, LogPlace))
    return (*load_lsm_cleans(storage, rows), *(done for done in logged if done is not None))
