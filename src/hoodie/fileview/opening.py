"""Decides where the file list of a table comes from: from its metadata table if it keeps one, else from its folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoodie.engine import Engine
from hoodie.fileview.file_system_view import FileSystemView
from hoodie.fileview.folders import FolderView
from hoodie.fileview.metadata_listing import MetadataView
from hoodie.layout.required import metadata_is_missing, metadata_is_off
from hoodie.spec import TableConfig
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage
from hoodie.timeline import Timeline

if TYPE_CHECKING:
    from hoodie.metadata import MetadataState, MetadataTable


def open_file_view(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    *,
    use_metadata: bool = True,
    state: MetadataState | None = None,
    engine: Engine | None = None,
    plans: PendingPlans | None = None,
) -> FileSystemView:
    """The view of the table as `timeline` has it. Without `use_metadata` folders are listed in any case. `state`: how
    the metadata table is, `plans`: what is pending, where somebody knows that already.

    Raises:
        Corrupt: the metadata table should be there and is not, or is damaged.
        Invalid: a table with storage paths is asked for without it.
    """
    metadata = None
    ensure_listable(storage, config, timeline, use_metadata=use_metadata)
    if use_metadata and config.is_metadata_table_ready:
        # Loads the readers of the metadata table, which tables without one, and workers, do not need.
        from hoodie.metadata import open_metadata_table  # noqa: PLC0415

        metadata = open_metadata_table(storage, config, timeline, state=state)
    return file_view_of(storage, timeline, metadata, engine, plans)


def ensure_listable(storage: Storage, config: TableConfig, timeline: Timeline, *, use_metadata: bool) -> None:
    """Checks that folders may be listed where there is no metadata table, or it is not wanted.

    Raises:
        Invalid, Corrupt: the table's files lie under storage paths, and it has been written to.
    """
    if config.is_federated and not use_metadata:
        raise metadata_is_off(storage.uri)
    if config.is_federated and not config.is_metadata_table_ready and timeline.completed():
        raise metadata_is_missing(storage.uri)


def file_view_of(
    storage: Storage,
    timeline: Timeline,
    metadata: MetadataTable | None,
    engine: Engine | None = None,
    plans: PendingPlans | None = None,
) -> FileSystemView:
    """The view by an opened metadata table, or by folders where there is none."""
    if metadata is None:
        return FolderView(storage, timeline, engine, plans)
    return MetadataView(storage, timeline, metadata, engine, plans)
