"""Deletes savepoints of tables whose history may reach beyond them (`hoodie.archive.beyond.savepoint`).

1. Files of archived writes count as committed because they lie before the start of the timeline, which is its first
   write without a savepoint. A saved commit that loses its savepoint would become that start, and whatever was archived
   behind it would be hidden, and be written anew.
2. So the commit goes to the history first, then its savepoint goes. Who dies in between leaves a savepoint of an
   archived commit; it is deleted as any other.

The caller holds the table lock.
"""

from __future__ import annotations

from hoodie.services.archiving.archive import archive_writes
from hoodie.services.rollback.savepoint import delete_savepoint, load_archived_behind
from hoodie.spec import InstantTime
from hoodie.state.handle import TableHandle, timeline_of


def drop_savepoint(handle: TableHandle, instant: InstantTime) -> None:
    """Deletes the savepoint of the commit `instant`, whose files may be cleaned from now on. Reads the history where
    the commit lies before the start of the timeline.

    Raises:
        Invalid: there is none.
    """
    if load_archived_behind(handle, timeline_of(handle), instant):
        archive_writes(handle, {instant})
    delete_savepoint(handle, instant)
