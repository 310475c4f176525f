"""Files that come when their write has been taken back: log files of version 6, and what cannot be deleted.

1. A rollback leaves log files of slices that are older than the write, and puts a command block behind them. Of a file
   that comes later it knows nothing: this may be read behind the command, and be listed by whoever looks at the folder
   (the plan of a compaction, a service, a metadata table that is made anew, the rollback of another write).
2. Its writer does not delete it then: others would miss it. It makes its write pending again, and the rollback that
   follows takes the blocks back once more. Else they would count to Hudi 0.15 as soon as the timeline begins later.
3. So does who cannot take away what is left of a write, in every version: a storage failed.
4. Who dies before that leaves the file as it is, and so does who slept until the timeline began later.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

from hoodie.errors import Conflict
from hoodie.fileview.listed import not_in_metadata, unlisted
from hoodie.spec import (
    BaseFileName,
    CommitMetadata,
    Instant,
    InstantTime,
    LogFileName,
    MarkerKind,
    WriteStat,
    parse_data_file_name,
    parse_log_file_name,
)
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.storage import Storage
from hoodie.storage.fence import reopening
from hoodie.timeline import Markers, create_requested, history_of, load_archived_writes, to_inflight
from hoodie.transaction.taken_back import is_of_its_slice, taken_back

log = logging.getLogger(__name__)


def still_own(handle: TableHandle, requested: InstantTime, paths: Iterable[str]) -> set[str]:
    """Those of a write's files that go with it. A log file of version 6 in a table that was upgraded meanwhile stays in
    a slice that is not the newest of its group, if it is listed there or may be: no row of it counts. What a metadata
    table does not list no clean would find.
    """
    found = set(paths)
    if not handle.profile.log_naming.has_one_write_per_file:
        return found
    named = ((path, parse_log_file_name(path.rpartition("/")[2])) for path in found)
    others = {path: name for path, name in named if name is not None and name.instant != requested}
    older = {path for path, name in others.items() if _is_followed(handle.storage, path, name)}
    if handle.config.is_metadata_table_ready:
        older.difference_update(not_in_metadata(handle, older))
    return found - older


def _is_followed(storage: Storage, path: str, log: LogFileName) -> bool:
    """Whether the group of a log file has a base file behind its slice."""
    folder = path.rpartition("/")[0]
    names = (parse_data_file_name(file.path.rpartition("/")[2]) for file in storage.list_dir(folder).files)
    return any(
        isinstance(name, BaseFileName) and name.file_id == log.file_id and name.instant > log.instant for name in names
    )


def seen_by_others(
    handle: TableHandle, instant: InstantTime, paths: Iterable[str], *, holds_lock: bool = True
) -> frozenset[str]:
    """Those of `paths`, files of a write that is no more on the timeline, that are log files which others may know of
    and no command block takes back. Who does not hold the table lock cannot tell what is not listed.
    """
    if handle.profile.log_naming.has_one_write_per_file:
        return frozenset()
    logs = [path for path in paths if is_of_its_slice(handle, path)]
    is_listing = handle.config.is_metadata_table_ready
    if is_listing and holds_lock:
        logs = sorted(set(logs).difference(unlisted(handle, logs)))
    folders = {path.rpartition("/")[0] for path in logs}
    there = [file.path for folder in folders for file in handle.storage.list_dir(folder).files]
    present = set(there).intersection(logs)
    if not is_listing:  # a slice that was cleaned nobody knows, and alone the file would be a file group
        groups = Counter(_group_of(path) for path in there)
        present = {path for path in present if groups[_group_of(path)] > 1}
    return frozenset(present - taken_back(handle, instant, present))


def _group_of(path: str) -> tuple[str, str | None]:
    folder, _, file_name = path.rpartition("/")
    name = parse_data_file_name(file_name)
    return folder, None if name is None else name.file_id


def reopen(handle: TableHandle, write: Instant, markers: Markers, files: Iterable[str]) -> None:
    """Makes a write pending again that a rollback took off the timeline before these files came, or what is left of
    them: the next writer rolls it back, and finds them by markers and slices of log files by the inflight file, too.
    Not one that others were archived after: the timeline would begin with it, and these would not count.
    """
    if _is_archived_beyond(handle, write.requested):
        log.warning(
            "files of %s, which was rolled back and is older than archived writes, could not be removed: they do not "
            "count, but would to Hudi (hoodie orphans removes them)",
            write.requested,
        )
        return
    with reopening(handle.storage):
        _make_pending(handle, write, markers, files)


def _make_pending(handle: TableHandle, write: Instant, markers: Markers, files: Iterable[str]) -> None:
    slices: dict[str, set[tuple[str, InstantTime]]] = {}
    for path in sorted(files):
        partition, _, file_name = path.rpartition("/")
        name = parse_log_file_name(file_name)
        with suppress(Conflict):  # the marker was not gone
            markers.create(path, MarkerKind.CREATE if name is None else MarkerKind.APPEND)
        if name is not None:
            slices.setdefault(partition, set()).add((name.file_id, name.instant))
    stats = {
        partition: tuple(WriteStat(file_id=file_id, prev_commit=base) for file_id, base in sorted(some))
        for partition, some in slices.items()
    }
    requested = create_requested(handle.storage, handle.profile, write.requested, write.action)
    payload = handle.profile.commit_codec.encode(CommitMetadata(stats), write.action)
    to_inflight(handle.storage, handle.profile, requested, payload, is_new=True)


def _is_archived_beyond(handle: TableHandle, requested: InstantTime) -> bool:
    """Whether the history has a write that is later, or may have."""
    if not timeline_of(handle).is_before_start(requested) or not history_of(handle.storage, handle.profile).files():
        return False
    archived = load_archived_writes(handle.storage, handle.profile)
    return not archived or max(archived) > requested
