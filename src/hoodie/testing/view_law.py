"""The laws of a view that is kept: after a sync it is the view that is loaded anew; and before it, for who tells of the
very state that the view is of.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from hoodie.fileview import FolderView
from hoodie.remote.known_timeline import told
from hoodie.server.kept_view import KeptView, load_into, open_view, synced
from hoodie.spec import CLEAN, RESTORE, ROLLBACK
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.storage import Storage
from hoodie.testing.lake import Awake
from hoodie.view import FileGroup, GroupId

COUNTS: Final = {"synced": 0, "rebuilt": 0, "partitions kept": 0, "told of": 0}
_DISTURBING: Final = frozenset({CLEAN, ROLLBACK, RESTORE})
"""While one is pending, which of its files are gone is not known."""


def ensure_view_is_kept(view: KeptView, storage: Storage) -> KeptView:
    """The view after a sync, once it is found equal to a fresh one and to what lies in the folders; before the sync,
    too, where a client with a look of now would be answered from it.
    """
    handle = load_handle(storage, Awake())
    _ensure_it_is_what_clients_told_of(view, handle)
    now = synced(view, handle)
    was_loaded = now.loaded()
    COUNTS["synced" if was_loaded else "rebuilt"] += 1
    COUNTS["partitions kept"] += len(was_loaded)
    whole = load_into(now, None)
    fresh = load_into(open_view(handle), None)
    assert whole.timeline == fresh.timeline
    assert dict(whole.replaced) == dict(fresh.replaced)
    assert _shown(whole) == _shown(fresh)
    assert set(was_loaded) <= set(whole.loaded())
    _ensure_it_lies_there(whole, handle)
    return whole


def _ensure_it_is_what_clients_told_of(view: KeptView, handle: TableHandle) -> None:
    timeline = timeline_of(handle)
    is_disturbed = any(one.action in _DISTURBING for one in timeline.pending())
    if is_disturbed or not view.is_lasting or told(view.timeline, view.handle.config) != told(timeline, handle.config):
        return
    COUNTS["told of"] += 1
    fresh = _shown(load_into(open_view(handle), view.loaded()))
    assert _shown(view) == fresh


def _shown(view: KeptView) -> dict[GroupId, FileGroup]:
    """The groups by id. Sizes of log files that writers append to are left out: commits say them as of their end."""
    groups = list(view.groups(None).found)
    if not view.handle.profile.log_naming.has_one_write_per_file:
        groups = [_without_log_sizes(group) for group in groups]
    return {group.group_id: group for group in groups}


def _without_log_sizes(group: FileGroup) -> FileGroup:
    slices = (part._replace(logs=tuple(replace(log, size_bytes=0) for log in part.logs)) for part in group.slices)
    return group._replace(slices=tuple(slices))


def _ensure_it_lies_there(view: KeptView, handle: TableHandle) -> None:
    """What a snapshot reads by the view is what it reads by the folders; log files of dead writers aside."""
    there = FolderView(handle.storage, view.timeline).load()
    live = {part.group_id: part.base for part in there.slices_at()}
    kept = {group.group_id: group for group in view.groups(None).found}
    for group_id, base in live.items():
        assert base is None or base in _bases(kept[group_id]), group_id


def _bases(group: FileGroup) -> Collection[object]:
    return [part.base for part in group.slices]
