"""One look at a metadata table and the definitions of its indexes, which a writer takes together with its first look at
the table: all calls at the same time.

What is wrong there is kept in the look, and raised when somebody needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from hoodie.config import Config
from hoodie.engine import LocalEngine, side_by_side
from hoodie.errors import Corrupt
from hoodie.metadata import IndexDefinition, load_index_definitions
from hoodie.metadata.damage import REBUILD
from hoodie.metadata_writer.metadata_handle import load_metadata_handle
from hoodie.metadata_writer.options import MetadataOptions
from hoodie.metadata_writer.partition_state import maintained_partitions
from hoodie.spec import keys
from hoodie.state.handle import TableHandle
from hoodie.storage import Snapshot
from hoodie.timeline import Timeline
from hoodie.view import PartitionFiles, list_files

_HERE: Final = LocalEngine(1)
"""For what waits for nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class MetadataLook:
    """The metadata table of `handle`. `opened` is None where it has none, or one that was never finished. `listed` has
    what lay in its partitions then, where that was seen, too.
    """

    handle: TableHandle
    found_definitions: Mapping[str, IndexDefinition] | Corrupt
    opened: tuple[TableHandle, Timeline] | Corrupt | None
    listed: Mapping[str, PartitionFiles]

    @property
    def definitions(self) -> Mapping[str, IndexDefinition]:
        """Definitions of the table's indexes. Raises: Corrupt: they are damaged."""
        if isinstance(self.found_definitions, Corrupt):
            raise self.found_definitions
        return self.found_definitions

    def ensure_complete(self) -> tuple[TableHandle, Timeline]:
        """The metadata table that readers can use, and its timeline.

        Raises:
            Corrupt: it is damaged, or whoever made it died before it had the list of files.
        """
        if isinstance(self.opened, Corrupt):
            raise self.opened
        if self.opened is None:
            raise Corrupt("it has no list of files: making it was not finished", remedy=REBUILD)
        return self.opened


def look_at_metadata(handle: TableHandle, config: Config, below: Snapshot | None = None) -> MetadataLook | None:
    """The metadata table as it is now: three calls at the same time, or two with a snapshot of what is `below` the
    table's own folder. None, and no call, where options want none.
    """
    if not MetadataOptions.of(config).keeps(handle.config):
        return None
    folder = (below or Snapshot(handle.storage, "")).inside(keys.METADATA_TABLE_DIR)
    definitions, opened = side_by_side(partial(_definitions, handle), partial(_opened, handle, folder))
    partitions = maintained_partitions(handle) if folder.is_whole else ()
    listed = {one.partition: one for one in list_files(folder, partitions, engine=_HERE)}
    return MetadataLook(handle, definitions, opened, listed)


def _definitions(handle: TableHandle) -> Mapping[str, IndexDefinition] | Corrupt:
    try:
        return load_index_definitions(handle.storage, handle.config)
    except Corrupt as damage:
        return damage


def _opened(handle: TableHandle, folder: Snapshot) -> tuple[TableHandle, Timeline] | Corrupt | None:
    if not maintained_partitions(handle) or not handle.config.is_metadata_table_ready:
        return None
    try:
        return load_metadata_handle(handle, folder)
    except Corrupt as damage:
        return damage
