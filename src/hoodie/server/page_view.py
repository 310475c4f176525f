"""What a kept view knows of a table, as the view that readers load: for pages about it."""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.server.kept_view import KeptView
from hoodie.view import BaseFile, FileGroup, FileSlice, LogFile, PartitionFiles, View, collecting_later


def page_view(known: KeptView, partition: str | None = None) -> View:
    """The view of a partition, or of all that are loaded, at the timeline of `known`. Nothing is read."""
    names = known.loaded() if partition is None else (partition,)
    files: list[PartitionFiles] = []
    groups: list[FileGroup] = []
    with collecting_later():
        for name in names:
            mine = [_without_changes(group) for group in known.groups(name).found]
            groups += mine
            files.append(_files(name, (part for group in mine for part in group.slices)))
    return View(known.timeline, tuple(files), tuple(groups), known.replaced)


def _without_changes(group: FileGroup) -> FileGroup:
    """A kept view has change-data files in its slices; they are no log files that anybody merges."""
    if not any(log.name.is_cdc for part in group.slices for log in part.logs):
        return group
    slices = (part._replace(logs=tuple(log for log in part.logs if not log.name.is_cdc)) for part in group.slices)
    return group._replace(slices=tuple(slices))


def _files(partition: str, slices: Iterable[FileSlice]) -> PartitionFiles:
    bases: list[BaseFile] = []
    logs: list[LogFile] = []
    for part in slices:
        bases += [part.base] if part.base else []
        logs += part.logs
    return PartitionFiles(partition, tuple(bases), tuple(logs))
