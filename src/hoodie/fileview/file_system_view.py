"""The file-system view: which files make a table as one timeline sees them, asked partition by partition.

1. It answers for the timeline it was opened with; whoever needs a newer answer opens another one.
2. It reads and never writes: a crash between two calls leaves nothing.
3. What it loaded it keeps, and several threads may ask it: two that ask for the same at once may load it twice.
4. Files of uncommitted writes are in no slice, wherever the list comes from.

Implemented by `FolderView`, `MetadataView` and `WriterView` here; a service that keeps views of tables, or a test, may
implement it, too (contract: `hoodie.testing.file_view_contract`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from hoodie.timeline import Timeline
from hoodie.view import LogFile, PartitionChoice, PartitionFiles, View


class FileSystemView(Protocol):
    """The files of one table at one timeline. Errors of all methods: `Corrupt` when what is read is damaged, the
    errors of `Storage` when it cannot be read.
    """

    @property
    def timeline(self) -> Timeline:
        """The timeline it answers for."""
        ...

    @property
    def lists_uncommitted(self) -> bool:
        """Whether `files` may have files that no completed write made."""
        ...

    def partitions(self) -> tuple[str, ...]:
        """Paths of all partitions, sorted."""
        ...

    def files(self, partitions: Collection[str] | None = None) -> tuple[PartitionFiles, ...]:
        """Data files of the given partitions (None: of all there are), ordered by partition; a partition that does not
        exist comes back without files.
        """
        ...

    def load(self, partitions: Collection[str] | None = None) -> View:
        """File groups and slices of the given partitions (None: of all there are), at any instant of the timeline."""
        ...

    def load_chosen(self, choice: PartitionChoice) -> View:
        """The same of the partitions that are chosen, and no others. What lies in others is listed or read only where
        nobody can tell them apart without.
        """
        ...

    def committed_logs(self, logs: Collection[LogFile]) -> Mapping[str, LogFile]:
        """Log files of its slices by path, as large as they may be read, with the bytes that are known to be committed.

        Raises:
            Corrupt: one is shorter than what was committed to it, or gone.
        """
        ...
