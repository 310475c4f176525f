"""A writer that fails and lives takes its own write away: files, log files, instants, markers.

Nobody has seen a write that did not complete, so aborting it needs no record. What participants stored goes first, then
files, instants, markers, in this order. Who dies in between leaves a pending write, which the next writer rolls
back (`hoodie.services.rollback`, which records it).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from hoodie.engine import LocalEngine
from hoodie.errors import HudiError, Unavailable
from hoodie.fileview.listed import unlisted
from hoodie.spec import (
    BaseFileName,
    Instant,
    InstantTime,
    LogFileName,
    WriteStat,
    is_partition_metafile,
    parse_data_file_name,
    parse_partition_metafile,
    parse_write_token,
)
from hoodie.spec.file_names import token_of_instant
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.storage import Storage
from hoodie.timeline import Markers, delete_instant_files, is_table, markers_of
from hoodie.transaction.deletion import delete_files
from hoodie.transaction.own_files import has_begun, load_appended, load_own_files
from hoodie.transaction.own_run import OwnRun
from hoodie.transaction.participant import Participant
from hoodie.transaction.reopened import reopen, seen_by_others, still_own
from hoodie.transaction.taken_back import taken_back
from hoodie.view import list_data_paths

log = logging.getLogger(__name__)

_LOCAL: Final = LocalEngine()


def abort(
    handle: TableHandle,
    requested: InstantTime,
    participants: Sequence[Participant] = (),
    markers: Markers | None = None,
) -> None:
    """Removes all traces of this process's own pending write `requested`. `markers` are those it made, if not direct.

    The caller still holds the table lock. A completed or vanished instant is left alone, and so is everything once an
    overwrite has begun to put another table in this one's place: its new files are all there is.
    """
    instant = timeline_of(handle).find(requested)
    if instant is None or instant.is_completed or not is_table(handle.storage):
        return
    markers = markers or markers_of(handle.storage, requested)
    files = load_own_files(handle, requested, markers)
    if files is None:
        files = sorted({*_named_by(handle, requested), *load_appended(handle, instant)})
    _ensure_unlisted(handle, requested, files)
    for one in participants:
        handle = one.withdraw(handle, instant)
    _remove_files(handle, requested, files)
    delete_instant_files(handle.storage, handle.profile, instant)
    markers.drop()


def remove_strays(
    handle: TableHandle,
    write: Instant,
    markers: Markers,
    offered: Collection[str] = (),
    participants: Sequence[Participant] = (),
    *,
    may_be_done: bool = False,
) -> bool:
    """Whether the table is rid of what this process's `write` made after another writer had taken its instant away:
    False where a rollback has to take some of it back, for which the write is pending again (`reopened`). `offered`:
    files it was about to commit, if it got so far; `participants`: those that were told of it, under the table lock.
    `may_be_done`: nobody knows whether it has completed.

    An instant that is on the timeline is left alone, and one that is so old that it may have completed and be archived.
    """
    if not _is_gone(handle, write, may_be_done=may_be_done):
        return True
    told, requested = set(offered), write.requested
    try:
        # The marker of a file may have gone before the file came.
        told |= {*(load_own_files(handle, requested, markers) or ()), *_named_by(handle, requested)}
        for one in participants:
            handle = one.withdraw(handle, write)
        told = still_own(handle, requested, told)
        seen = seen_by_others(handle, requested, told)
        _remove_files(handle, requested, told - seen)
        is_rid = not seen
    except HudiError:
        seen, is_rid = frozenset(told), False
    except BaseException:
        with contextlib.suppress(HudiError):
            reopen(handle, write, markers, told)
        raise
    if is_rid:
        markers.drop()
    else:
        reopen(handle, write, markers, seen)
    return is_rid


def leave_strays(
    handle: TableHandle,
    write: Instant,
    markers: Markers,
    offered: Collection[str] = (),
    *,
    was_told: bool = False,
    may_be_done: bool = False,
) -> bool:
    """Whether nothing is left to a rollback of what `remove_strays` would look at, for who cannot have the table lock:
    log files that others may see need it (version 6), and participants that were told of the write. Nothing is deleted.
    """
    requested = write.requested
    if not _is_gone(handle, write, may_be_done=may_be_done):
        return True
    if was_told:
        reopen(handle, write, markers, offered)
        return False
    if handle.profile.log_naming.has_one_write_per_file:
        return True
    told = {*(load_own_files(handle, requested, markers) or ()), *offered}
    seen = seen_by_others(handle, requested, told, holds_lock=False)
    if seen:
        reopen(handle, write, markers, seen)
    return not seen


def remove_fenced(
    handle: TableHandle,
    inflight: Instant,
    files: Iterable[str],
    participants: Sequence[Participant],
    markers: Markers,
) -> bool:
    """Whether the table is rid of what a fenced write has made, as `remove_strays` says: whoever rolled it back may
    have looked before the last of it was there.

    A failure is silent: nothing may hide that the write was fenced.
    """
    made, requested = set(files), inflight.requested
    try:
        for one in participants:
            handle = one.withdraw(handle, inflight)
        made = still_own(handle, requested, made)
        seen = seen_by_others(handle, requested, made)
        delete_files(handle.storage, _LOCAL, _going(handle, requested, made - seen), "abort")
        is_rid = not seen
    except HudiError:
        seen, is_rid = frozenset(made), False
    except BaseException:
        with contextlib.suppress(HudiError):
            reopen(handle, inflight, markers, made)
        raise
    if not is_rid:
        with contextlib.suppress(HudiError):
            reopen(handle, inflight, markers, seen)
            return False
    drop_markers(markers, requested)
    return True


def remove_losers(
    handle: TableHandle, instant: InstantTime, markers: Markers, stats: Sequence[WriteStat], run: OwnRun | None = None
) -> None:
    """Deletes the files of this write that are not in its statistics: retried or speculative tasks left them. Of a plan
    those of this `run` only: what others have made at its instant may have completed.
    """
    kept = {path for stat in stats for path in (stat.path, *(stat.cdc_stats or ()))}
    own = load_own_files(handle, instant, markers, kept)
    if own is None and kept:
        # In version 6 log files that carry the instant of a plan may be later writes'.
        own = [path for path in _named_by(handle, instant) if _is_told_by_name(handle, path)]
    for path in own or ():
        if path not in kept and (run is None or run.has_made(path)) and handle.storage.delete(path):
            log.info("deleted %s, left by a retried task", path)


def drop_markers(markers: Markers, instant: InstantTime) -> None:
    """Deletes the markers of a write that is over. A failure costs disk space only, so it is logged."""
    try:
        markers.drop()
    except HudiError as error:
        log.warning("could not delete the markers of %s: %s", instant, error)


def _is_gone(handle: TableHandle, write: Instant, *, may_be_done: bool) -> bool:
    """Whether a write is off the timeline that was on it. Without an instant that tells nothing: the table is moving to
    another version.
    """
    timeline = timeline_of(handle)
    if not timeline.instants or timeline.find(write.requested) is not None:
        return False
    return not (may_be_done and timeline.is_before_start(write.requested))


def _remove_files(handle: TableHandle, requested: InstantTime, paths: Iterable[str]) -> None:
    """Removes files of a write, and what made their folders partitions."""
    files = _going(handle, requested, paths)
    delete_files(handle.storage, _LOCAL, files, "abort")
    for partition in sorted({path.rpartition("/")[0] for path in files}):
        _forget_partition(handle.storage, partition, requested)


def _ensure_unlisted(handle: TableHandle, requested: InstantTime, files: Collection[str]) -> None:
    """Checks that the metadata table lists no file of a pending write that a rollback has not taken back.

    Raises:
        Unavailable: it does. In version 6 who rolls back another write lists all log files of its slices: this one's
            have to be taken back, too, and not deleted.
    """
    listed = set(files).difference(unlisted(handle, files))
    if listed and (left := listed - taken_back(handle, requested, listed)):
        raise Unavailable(
            f"{len(left)} log files of {requested} were listed by the rollback of another write",
            remedy="A rollback takes their blocks back; the next write or clean makes one",
            instant=requested,
        )


def _going(handle: TableHandle, requested: InstantTime, paths: Iterable[str]) -> tuple[str, ...]:
    """Those of a write's files that go with it: not those that a rollback has left to the table."""
    files = unlisted(handle, paths)
    if handle.config.is_metadata_table_ready:
        return files  # what it does not list nobody plans with, and no clean would find
    kept = taken_back(handle, requested, files)
    return tuple(path for path in files if path not in kept)


def _is_told_by_name(handle: TableHandle, path: str) -> bool:
    """Whether the name of a data file says who wrote it."""
    name = parse_data_file_name(path.rpartition("/")[2])
    return name is not None and handle.profile.log_naming.writer_of(name) is not None


def _named_by(handle: TableHandle, requested: InstantTime) -> list[str]:
    """Files that carry the instant in their name, in all folders: log files of version 6 in their write token."""
    named = ((path, parse_data_file_name(path.rpartition("/")[2])) for path in list_data_paths(handle.storage))
    return [path for path, name in named if name is not None and _is_by(handle.storage, requested, path, name)]


def _is_by(storage: Storage, requested: InstantTime, path: str, name: BaseFileName | LogFileName) -> bool:
    if name.instant == requested:
        return True
    token = parse_write_token(name.write_token or "") if isinstance(name, LogFileName) else None
    if token is None or token.text != token_of_instant(token.partition, requested, token.attempt):
        return False
    return has_begun(storage, requested, path)


def _forget_partition(storage: Storage, partition: str, requested: str) -> None:
    """Removes the metafile that made an otherwise empty folder a partition for the write `requested`."""
    files = storage.list_dir(partition).files
    if len(files) != 1 or not is_partition_metafile(files[0].path.rpartition("/")[2]):
        return
    path = files[0].path
    if parse_partition_metafile(storage.read(path), path).commit_time == requested:
        storage.delete(path)
