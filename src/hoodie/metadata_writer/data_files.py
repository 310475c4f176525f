"""The data files that indexes of files look at, with their partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.slices_after import base_file_of, log_file_of
from hoodie.metadata_writer.update import TableUpdate
from hoodie.view import BaseFile, FileSlice, LogFile

FILES_PER_TASK: Final = 64
"""Files one task of an initialisation looks at."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A base or log file in a partition of the table."""

    partition: str
    file: BaseFile | LogFile

    @property
    def name(self) -> str:
        """Its name in the folder of the partition."""
        return self.file.path.rpartition("/")[2]


def written_files(update: TableUpdate) -> list[DataFile]:
    """The files an action wrote; a file it wrote to several times as large as it was at the end."""
    found: dict[str, DataFile] = {}
    for stat in sorted(update.stats, key=lambda stat: stat.file_size_bytes):
        if stat.path is not None:
            found[stat.path] = DataFile(stat.partition_path, log_file_of(stat) if stat.is_log else base_file_of(stat))
    return list(found.values())


def committed_files(context: IndexContext) -> list[DataFile]:
    """All files of completed writes, in old slices too."""
    return [
        DataFile(part.partition, file)
        for part in context.view().all_slices()
        for file in (part.base, *part.logs)
        if file is not None
    ]


def files_of(slices: Collection[FileSlice]) -> dict[str, list[DataFile]]:
    """The files of slices by partition."""
    found: dict[str, list[DataFile]] = defaultdict(list)
    for part in slices:
        for file in (part.base, *part.logs):
            if file is not None:
                found[part.partition].append(DataFile(part.partition, file))
    return dict(found)
