"""The files of a write, as its markers announce them.

1. A marker is a name that anybody may have made: a program that may ask a timeline server, a damaged list. A file that
   another write made is not taken for one of this write, whoever says so: it would be deleted with them.
2. Names tell who made a file, but for log files of version 6, which carry the instant of their slice: there the first
   block that can be read tells. One in which none can be read was never committed.
3. Markers that cannot be read name nothing: where names tell who made a file, files are looked for by them. Else the
   write is left to a rollback, which takes back what it cannot find.
4. Without markers, names tell of all files but those log files: they are looked for in the slices that the write was
   about to append to, as its inflight file says (`load_appended`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from hoodie.errors import Corrupt, Missing, Unsupported
from hoodie.logs import read_blocks
from hoodie.spec import NULL_COMMIT, Instant, InstantTime, State, parse_data_file_name, parse_log_file_name
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage
from hoodie.timeline import Markers, load_commit_metadata

log = logging.getLogger(__name__)


def load_own_files(
    handle: TableHandle, instant: InstantTime, markers: Markers, known: Collection[str] = ()
) -> list[str] | None:
    """The data files that `markers` of the write `instant` name and that are its own, in path order, but those that are
    `known`. None when it has no folder of markers, or one that is damaged in a table whose files say who made them.

    Raises:
        Corrupt: the folder is damaged, and log files do not say it.
    """
    try:
        found = markers.load()
    except Corrupt as error:
        if not handle.profile.log_naming.has_one_write_per_file:
            raise
        log.warning("the files of %s are looked for by their names: %s", instant, error)
        return None
    if found is None:
        return None
    own = []
    for path in (marker.data_path for marker in found if marker.data_path not in known):
        if _is_own(handle, instant, path):
            own.append(path)
        else:
            log.warning("a marker of %s names %s, which that write did not make: it stays", instant, path)
    return own


def load_appended(handle: TableHandle, instant: Instant) -> list[str]:
    """Log files that a pending write has begun and whose names do not say so: their first block does. Looks into the
    slices that its inflight file names.
    """
    naming = handle.profile.log_naming
    if naming.has_one_write_per_file or instant.state is not State.INFLIGHT:
        return []
    planned: dict[str, set[str]] = {}
    for partition, stat in load_commit_metadata(handle.storage, handle.profile, instant).write_stats():
        if stat.file_id and (stat.prev_commit or NULL_COMMIT) != NULL_COMMIT:
            planned.setdefault(partition, set()).add(stat.file_id)
    found = []
    for partition, file_ids in planned.items():
        for file in handle.storage.list_dir(partition).files:
            name = parse_log_file_name(file.path.rpartition("/")[2])
            if name is None or name.file_id not in file_ids or naming.writer_of(name) is not None:
                continue
            if first_writer(handle.storage, file.path) == instant.requested:
                found.append(file.path)
    return found


def _is_own(handle: TableHandle, instant: InstantTime, path: str) -> bool:
    name = parse_data_file_name(path.rpartition("/")[2])
    if name is None:
        return False
    writer = handle.profile.log_naming.writer_of(name)
    return has_begun(handle.storage, instant, path) if writer is None else writer == instant


def has_begun(storage: Storage, instant: InstantTime, path: str) -> bool:
    """Whether the first block that can be read of a log file is the write's, or there is none, as where it died."""
    try:
        return first_writer(storage, path) in (instant, None)
    except Missing:
        return True
    except (Corrupt, Unsupported):  # no torn append leaves that
        return False


def first_writer(storage: Storage, path: str) -> InstantTime | None:
    """The instant of the first block of a log file that can be read; None where there is none.

    Raises:
        Missing: there is no such file. Corrupt, Unsupported: as `read_blocks`.
    """
    blocks = read_blocks(storage, path, storage.head(path).size_bytes)
    return next((block.instant for block in blocks if block.instant), None)
