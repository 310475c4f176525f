"""Data files of writes that were never committed and that nobody will take back any more: what a worker left that
outlived its write. No reader takes them; they go when somebody asks for it.

A file is an orphan when the write in its name is neither committed nor on the timeline, and older than what is there.
Files that the metadata table lists are left alone, whatever the history says.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from hoodie.engine import Engine
from hoodie.handle import TableHandle, timeline_of
from hoodie.metadata_writer import not_in_metadata
from hoodie.services.deletion import delete_files
from hoodie.spec import RESTORE, ROLLBACK
from hoodie.storage.lease import ensure_held
from hoodie.view import BaseFile, View, load_view

log = logging.getLogger(__name__)


def load_orphans(handle: TableHandle) -> tuple[str, ...]:
    """Paths of the orphans, sorted; none while a rollback or restore is under way. Lists the whole table.

    Raises:
        Corrupt: metadata cannot be read.
    """
    timeline = timeline_of(handle)
    if any(one.action in (ROLLBACK, RESTORE) for one in timeline.pending()):
        return ()
    return not_in_metadata(handle, sorted(_orphans(load_view(handle.storage, handle.config, timeline))))


def remove_orphans(handle: TableHandle, engine: Engine) -> tuple[str, ...]:
    """Paths of the orphans, which are gone now. The caller holds the table's writer exclusion. Raises as above."""
    paths = load_orphans(handle)
    ensure_held(handle.storage)
    delete_files(handle.storage, engine, paths, "remove orphans")
    if paths:
        log.info("removed %d files of writes that were never committed", len(paths))
    return paths


def _orphans(view: View) -> Iterator[str]:
    timeline = view.timeline
    known = {one.requested for one in timeline.instants}
    last = timeline.last_time() or ""
    by_writer = timeline.profile.slicing == "completion"
    for files in view.files:
        for one in (*files.everything, *files.changes):
            instant = one.name.instant
            named_by_writer = isinstance(one, BaseFile) or by_writer
            if named_by_writer and instant not in known and instant <= last and not timeline.is_committed(instant):
                yield one.path
