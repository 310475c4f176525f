"""What writers leave: a writer that fails and lives aborts its own write; what dead ones left is removed.

1. Nobody has seen a write that did not complete, so aborting it needs no record: files, log files, its part of the
   metadata table, instants and markers go, in this order. Who dies in between leaves a pending write to roll back.
2. Leftovers are removed from the folder for temporary files only, but for what a pending or running write may need.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from hoodie.engine import Engine
from hoodie.errors import HudiError
from hoodie.fileview.listed import unlisted
from hoodie.metadata_writer import undo_update
from hoodie.services.deletion import delete_files
from hoodie.spec import (
    InstantTime,
    is_partition_metafile,
    keys,
    parse_data_file_name,
    parse_partition_metafile,
)
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.storage import Storage
from hoodie.timeline import Timeline, delete_instant_files, is_table, markers_of
from hoodie.view import list_partitions

log = logging.getLogger(__name__)

_LEFTOVERS = (".spool", keys.OVERWRITE_SUFFIX)


def abort(handle: TableHandle, engine: Engine, requested: InstantTime) -> None:
    """Remove all traces of this process's own pending write `requested`: files, log files, instants, markers.

    The caller still holds the table lock. A completed or vanished instant is left alone, and so is everything once an
    overwrite has begun to put another table in this one's place: its new files are all there is. When this fails
    half-way, what is left is a pending write that the next writer rolls back.
    """
    instant = timeline_of(handle).find(requested)
    if instant is None or instant.is_completed or not is_table(handle.storage):
        return
    if handle.config.has_metadata_table:
        undo_update(handle, instant, None, engine)
    _remove_files(handle, engine, requested, _files_of(handle, requested))
    delete_instant_files(handle.storage, handle.profile, instant)
    markers_of(handle.storage, requested).drop()


def remove_strays(handle: TableHandle, engine: Engine, requested: InstantTime) -> None:
    """Remove the files that this process's write `requested` made after another writer had taken its instant away.

    An instant that is on the timeline is left alone, and one that is so old that it may be archived.
    """
    timeline = timeline_of(handle)
    if timeline.find(requested) is None and not timeline.is_before_start(requested):
        # The marker of a file may have gone before the file came.
        _remove_files(handle, engine, requested, {*_files_of(handle, requested), *_named_by(handle, requested)})
        markers_of(handle.storage, requested).drop()


def _remove_files(handle: TableHandle, engine: Engine, requested: InstantTime, paths: Iterable[str]) -> None:
    """Remove files of a write, and what made their folders partitions."""
    files = unlisted(handle, paths)
    delete_files(handle.storage, engine, files, "take back")
    for partition in sorted({path.rpartition("/")[0] for path in files}):
        _forget_partition(handle.storage, partition, requested)


def remove_leftovers(storage: Storage, timeline: Timeline) -> None:
    """Remove what writers that died left in the folder for temporary files: all but the markers of pending writes,
    and of those that may have begun since `timeline` was loaded.
    """
    found = storage.list_dir(keys.TEMP_DIR)
    pending = {one.requested for one in timeline.pending()}
    newest = timeline.last_time() or ""
    try:
        for folder in found.dirs:
            name = folder.rpartition("/")[2]
            if name.endswith(_LEFTOVERS) or (name.isdigit() and name <= newest and name not in pending):
                storage.delete_dir(folder)
        for file in found.files:
            if file.path.endswith(_LEFTOVERS):
                storage.delete(file.path)
    except HudiError as error:
        log.warning("could not remove left-over temporary files: %s", error)


def _files_of(handle: TableHandle, requested: InstantTime) -> list[str]:
    """Files of a pending write of this process, log files included."""
    markers = markers_of(handle.storage, requested).load()
    if markers is not None:
        return [marker.data_path for marker in markers]
    return _named_by(handle, requested)


def _named_by(handle: TableHandle, requested: InstantTime) -> list[str]:
    """Files that carry the instant in their name."""
    found = []
    for partition in list_partitions(handle.storage):
        for file in handle.storage.list_dir(partition).files:
            name = parse_data_file_name(file.path.rpartition("/")[2])
            if name is not None and name.instant == requested:
                found.append(file.path)
    return found


def _forget_partition(storage: Storage, partition: str, requested: str) -> None:
    """Remove the metafile that made an otherwise empty folder a partition for the write `requested`."""
    files = storage.list_dir(partition).files
    if len(files) != 1 or not is_partition_metafile(files[0].path.rpartition("/")[2]):
        return
    path = files[0].path
    if parse_partition_metafile(storage.read(path), path).commit_time == requested:
        storage.delete(path)
