"""What is wrong with a metadata table: its list of files against what lies on storage. Nothing is repaired.

1. A file it lists must be there, a base file with the size it says. A clean that is under way may have removed it.
2. A file of a settled write must be listed; which files those are the caller says, who knows the commits.
3. Every other partition that is ready must have its file groups.

Cost: one read of `files`, one listing of each other partition. A table without metadata table costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from hoodie.errors import HudiError
from hoodie.metadata.metadata_table import MetadataTable, open_metadata_table
from hoodie.metadata.partitions import FILES
from hoodie.spec import CLEAN, TableConfig, keys
from hoodie.storage import Storage
from hoodie.timeline import Timeline
from hoodie.view import BaseFile

Trouble = tuple[str, str]
"""Path, and what is wrong with it."""


def validate_metadata_table(
    storage: Storage, config: TableConfig, timeline: Timeline, sizes: Mapping[str, int], settled: Collection[str]
) -> Iterator[Trouble]:
    """What is wrong. `sizes` are the data files on storage by path, `settled` those of them that writes of the timeline
    put there for good.
    """
    try:
        table = open_metadata_table(storage, config, timeline)
        if table is not None:
            yield from _files(table, timeline, sizes, settled)
            yield from _partitions(table)
    except HudiError as error:
        yield str(error.facts.get("path") or keys.METADATA_TABLE_DIR), error.cause


def _files(
    table: MetadataTable, timeline: Timeline, sizes: Mapping[str, int], settled: Collection[str]
) -> Iterator[Trouble]:
    listed = {file.path: file for found in table.files() for file in found.everything}
    is_cleaning = any(instant.action == CLEAN for instant in timeline.pending())
    for path, file in listed.items():
        size = sizes.get(path)
        if size is None and not is_cleaning:
            yield path, "is listed by the metadata table and is not there"
        elif size is not None and size != file.size_bytes and isinstance(file, BaseFile):
            yield path, f"has {size} bytes, the metadata table says {file.size_bytes}"
    for path in settled:
        if path not in listed:
            yield path, "is not listed by the metadata table: readers that trust it do not see its rows"


def _partitions(table: MetadataTable) -> Iterator[Trouble]:
    for partition in table.partitions:
        if partition != FILES:
            try:
                table.store.groups(partition)
            except HudiError as error:
                yield str(error.facts.get("path") or partition), error.cause
