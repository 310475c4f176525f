"""The view of a table for those who read: its files listed by its metadata table, where it has one.

Whoever repairs, validates or writes lists the folders instead: only they show what dead writers left.
"""

from __future__ import annotations

from hoodie.engine import Engine
from hoodie.spec import TableConfig
from hoodie.storage import Storage
from hoodie.timeline import Timeline
from hoodie.view import View, load_view


def load_read_view(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    *,
    use_metadata: bool = True,
    engine: Engine | None = None,
) -> View:
    """The view of the table now. Sizes of log files are those the last settled write knew.

    Raises:
        Corrupt: metadata cannot be read, or the metadata table should be there and is not.
    """
    listing = None
    if use_metadata and config.metadata_partitions:
        # Loads the readers of the metadata table, which tables without one do not need.
        from hoodie.metadata import open_metadata_table  # noqa: PLC0415

        metadata = open_metadata_table(storage, config, timeline)
        listing = None if metadata is None else metadata.files()
    return load_view(storage, config, timeline, listing=listing, engine=engine)
