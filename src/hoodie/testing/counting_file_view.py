"""A file-system view that remembers what it was asked, and answers as another one does."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hoodie.fileview import FileSystemView
from hoodie.timeline import Timeline
from hoodie.view import LogFile, PartitionChoice, PartitionFiles, View


class CountingFileView:
    """`asked` has the names of the methods called, in order, with the partitions or the number of log files."""

    def __init__(self, inner: FileSystemView) -> None:
        self.inner = inner
        self.asked: list[tuple[str, object]] = []

    @property
    def timeline(self) -> Timeline:
        return self.inner.timeline

    @property
    def lists_uncommitted(self) -> bool:
        return self.inner.lists_uncommitted

    def partitions(self) -> tuple[str, ...]:
        self.asked.append(("partitions", None))
        return self.inner.partitions()

    def files(self, partitions: Collection[str] | None = None) -> tuple[PartitionFiles, ...]:
        self.asked.append(("files", partitions))
        return self.inner.files(partitions)

    def load(self, partitions: Collection[str] | None = None) -> View:
        self.asked.append(("load", partitions))
        return self.inner.load(partitions)

    def load_chosen(self, choice: PartitionChoice) -> View:
        self.asked.append(("load_chosen", choice))
        return self.inner.load_chosen(choice)

    def committed_logs(self, logs: Collection[LogFile]) -> Mapping[str, LogFile]:
        self.asked.append(("committed_logs", len(logs)))
        return self.inner.committed_logs(logs)
