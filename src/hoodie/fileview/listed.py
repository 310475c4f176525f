"""Which files the metadata table of a table does not list: files of writes that are not settled, and strangers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hoodie.fileview.opening import open_file_view
from hoodie.spec import ROLLBACK, State
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.timeline import Timeline


def unlisted(handle: TableHandle, paths: Iterable[str]) -> tuple[str, ...]:
    """Those of `paths` that the metadata table, if there is one, does not list.

    Who rolls back log files of version 6 leaves them where they are and lists them: they are the table's then.
    """
    files = tuple(paths)
    return files if handle.profile.log_naming.has_one_write_per_file else not_in_metadata(handle, files)


def not_in_metadata(handle: TableHandle, paths: Iterable[str]) -> tuple[str, ...]:
    """Those of `paths` that the metadata table does not list; all where there is none.

    What a rollback has listed that is still pending counts: only its end is missing, and whoever finishes it does not
    look at the files again.

    Raises:
        Corrupt: it is damaged.
    """
    files = tuple(paths)
    if not files or not handle.config.is_metadata_table_ready:
        return files
    view = open_file_view(handle.storage, handle.config, _with_rollbacks(timeline_of(handle)))
    if view.lists_uncommitted:
        return files
    found = view.files({path.rpartition("/")[0] for path in files})
    listed = {one.path for partition in found for one in (*partition.everything, *partition.changes)}
    return tuple(path for path in files if path not in listed)


def _with_rollbacks(timeline: Timeline) -> Timeline:
    """The timeline as it is once its pending rollbacks have completed."""
    for one in timeline.pending():
        if one.action == ROLLBACK:
            timeline = timeline.with_instant(replace(one, state=State.COMPLETED, completed=one.requested))
    return timeline
