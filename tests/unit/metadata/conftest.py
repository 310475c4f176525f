"""Tables with a metadata table made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hoodie.metadata import MetadataTable, open_metadata_table
from hoodie.spec import V9, FormatProfile
from hoodie.testing.hand_metadata import FIRST, HandMetadata, files_record
from hoodie.testing.hand_table import HandTable, at
from hoodie.timeline import load_table_config


@dataclass
class Lake:
    """A table and its metadata table, which has `files` and nothing in it to begin with."""

    table: HandTable
    metadata: HandMetadata

    def opened(self) -> MetadataTable:
        found = open_metadata_table(self.table.storage, load_table_config(self.table.storage), self.table.timeline())
        assert found is not None
        return found


@pytest.fixture
def lake() -> Callable[..., Lake]:
    def make(profile: FormatProfile = V9, **choices: object) -> Lake:
        table = HandTable(profile, **choices)
        table.commit(at(1), {})
        metadata = HandMetadata(table.storage)
        metadata.base("files", "files-0000-0", FIRST, [files_record("__all_partitions__")])
        metadata.commit(FIRST, at(1))
        return Lake(table, metadata)

    return make
