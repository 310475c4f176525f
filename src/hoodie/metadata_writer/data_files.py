"""The data files that indexes of files look at, with their partitions."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from hoodie.engine import LocalEngine, TaskId
from hoodie.errors import Corrupt, Missing
from hoodie.metadata.store import READING_THREADS
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.slices_after import base_file_of, log_file_of
from hoodie.metadata_writer.update import TableUpdate
from hoodie.spec import CLEAN, State, parse_clean_plan
from hoodie.storage import Storage
from hoodie.timeline import instant_path, load_requested
from hoodie.view import BaseFile, FileSlice, LogFile

log = logging.getLogger(__name__)

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
    """All files of completed writes, in old slices too, but for those that a clean has taken which did not complete:
    until it does, the metadata table lists them.
    """
    files = [
        DataFile(part.partition, file)
        for part in context.view().all_slices()
        for file in (part.base, *part.logs)
        if file is not None
    ]
    planned = _planned_by_cleans(context)
    doubtful = [file for file in files if (file.partition, file.name) in planned]
    tasks = [(context.handle.storage, file.file.path) for file in doubtful]
    found = LocalEngine(READING_THREADS).run(_is_there, tasks, "files")
    gone = {file for file, is_there in zip(doubtful, found, strict=True) if not is_there}
    return [file for file in files if file not in gone]


def _planned_by_cleans(context: IndexContext) -> set[tuple[str, str]]:
    """Partitions and names of the files that pending cleans are to take. Of a damaged plan none is known: who repairs a
    table need not care, and finds what is there.
    """
    storage, profile = context.handle.storage, context.handle.profile
    found: set[tuple[str, str]] = set()
    for instant in context.timeline.pending():
        data = load_requested(storage, profile, instant) if instant.action == CLEAN else b""
        if not data:
            continue
        try:
            plan = parse_clean_plan(data, instant_path(profile, replace(instant, state=State.REQUESTED)))
        except Corrupt as damage:
            log.warning("what the clean %s was to take is not known: %s", instant.requested, damage.cause)
            continue
        for partition, paths in plan.files.items():
            found |= {(partition, path.rpartition("/")[2]) for path in paths}
    return found


def _is_there(_: TaskId, task: tuple[Storage, str]) -> bool:
    storage, path = task
    try:
        storage.head(path)
    except Missing:
        return False
    return True


def files_of(slices: Collection[FileSlice]) -> dict[str, list[DataFile]]:
    """The files of slices by partition."""
    found: dict[str, list[DataFile]] = defaultdict(list)
    for part in slices:
        for file in (part.base, *part.logs):
            if file is not None:
                found[part.partition].append(DataFile(part.partition, file))
    return dict(found)
