"""Data files of writes that were never committed and that nobody will take back any more: what a worker left that
outlived its write. No reader takes them; they go when somebody asks for it.

A file is an orphan when the write in its name is neither committed nor on the timeline, and older than what is there.
Files that the metadata table lists are left alone, whatever the history says.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.fileview import FolderView
from hoodie.fileview.listed import not_in_metadata
from hoodie.notebook import Displayed
from hoodie.services.preview import PreviewStep, ServicePreview
from hoodie.services.service import Argument, Service
from hoodie.spec import RESTORE, ROLLBACK, format_instant_time
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.storage.fence import ensure_held
from hoodie.transaction.deletion import delete_files
from hoodie.view import BaseFile, LogFile, View

log = logging.getLogger(__name__)

HOURS: Final = 24.0


@dataclass(frozen=True, slots=True)
class OrphansResult(Displayed):
    """Files that are gone now: paths below the table, sorted, and their bytes."""

    files: tuple[str, ...]
    size_bytes: int


def remove_orphans(
    handle: TableHandle, config: Config, engine: Engine, older_than_hours: float = HOURS
) -> OrphansResult | None:
    """The orphans that are older than so many hours, which are gone now; None when there is none. Lists the whole
    table. The caller holds the table lock.

    Raises:
        Corrupt: metadata cannot be read.
    """
    del config
    found = _load(handle, older_than_hours)
    if not found:
        return None
    paths = tuple(one.path for one in found)
    ensure_held(handle.storage)
    delete_files(handle.storage, engine, paths, "remove orphans")
    log.info("removed %d files of writes that were never committed", len(paths))
    return OrphansResult(paths, sum(one.size_bytes for one in found))


def preview_orphans(
    handle: TableHandle, config: Config, engine: Engine, older_than_hours: float = HOURS
) -> ServicePreview:
    """A step for each orphan. Raises as `remove_orphans`."""
    del config, engine
    found = _load(handle, older_than_hours)
    reason = "its write was never committed"
    steps = (
        PreviewStep("delete", one.path.rpartition("/")[0], one.name.file_id, (one.path,), one.size_bytes, reason)
        for one in found
    )
    notes = ("without a metadata table only the history says that a write was never committed",)
    return ServicePreview("orphans", tuple(steps), () if handle.config.has_metadata_table or not found else notes)


def _load(handle: TableHandle, older_than_hours: float) -> Sequence[BaseFile | LogFile]:
    """The orphans, sorted by path; none while a rollback or restore is under way."""
    timeline = timeline_of(handle)
    if any(one.action in (ROLLBACK, RESTORE) for one in timeline.pending()):
        return ()
    limit = format_instant_time(handle.env.now() - timedelta(hours=older_than_hours), handle.config.timezone)
    orphans = _orphans(FolderView(handle.storage, timeline).load())
    old = {one.path: one for one in orphans if one.name.instant <= limit}
    return [old[path] for path in not_in_metadata(handle, sorted(old))]


def _orphans(view: View) -> Iterator[BaseFile | LogFile]:
    timeline = view.timeline
    known = {one.requested for one in timeline.instants}
    last = timeline.last_time() or ""
    naming = timeline.profile.log_naming
    for files in view.files:
        for one in (*files.everything, *files.changes):
            writer = naming.writer_of(one.name)
            if writer is not None and writer not in known and writer <= last and not timeline.is_committed(writer):
                yield one


SERVICE: Final = Service(
    name="orphans",
    nothing="no orphans",
    run=remove_orphans,
    preview=preview_orphans,
    arguments=(Argument("older_than_hours", "leave files of the last hours alone (default 24)", float, HOURS),),
    acts_when_told="delete",
)
