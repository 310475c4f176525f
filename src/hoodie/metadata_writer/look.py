"""One look at a metadata table and the definitions of its indexes, which a writer takes together with its first look at
the table: all calls at the same time.

What is wrong there is kept in the look, and raised when somebody needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from hoodie.config import Config
from hoodie.engine import side_by_side
from hoodie.errors import Corrupt
from hoodie.metadata import IndexDefinition, load_index_definitions
from hoodie.metadata.damage import REBUILD
from hoodie.metadata_writer.options import MetadataOptions
from hoodie.metadata_writer.own_table import load_own
from hoodie.metadata_writer.partition_state import kept_partitions
from hoodie.state.handle import TableHandle
from hoodie.timeline import Timeline


@dataclass(frozen=True, slots=True, eq=False)
class MetadataLook:
    """The metadata table of `handle`. `opened` is None where it has none, or one that was never finished."""

    handle: TableHandle
    found_definitions: Mapping[str, IndexDefinition] | Corrupt
    opened: tuple[TableHandle, Timeline] | Corrupt | None

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


def look_at_metadata(handle: TableHandle, config: Config) -> MetadataLook | None:
    """The metadata table as it is now: three calls at the same time. None, and no call, where options want none."""
    if not MetadataOptions.of(config).keeps(handle.config):
        return None
    definitions, opened = side_by_side(partial(_definitions, handle), partial(_opened, handle))
    return MetadataLook(handle, definitions, opened)


def _definitions(handle: TableHandle) -> Mapping[str, IndexDefinition] | Corrupt:
    try:
        return load_index_definitions(handle.storage, handle.config)
    except Corrupt as damage:
        return damage


def _opened(handle: TableHandle) -> tuple[TableHandle, Timeline] | Corrupt | None:
    if not kept_partitions(handle) or not handle.config.is_metadata_table_ready:
        return None
    try:
        return load_own(handle)
    except Corrupt as damage:
        return damage
