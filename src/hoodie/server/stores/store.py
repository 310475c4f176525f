"""Where a kept view has the files of its partitions: one value of a store, and the store it belongs to.

1. A `ViewStore` is a value: `changed` makes the next one, and whoever answers from the one before is not disturbed.
   Only the newest value of a table is changed.
2. A store that outlives the service keeps, with the files, what else the view knows (`parts`), and puts down both at
   once: whenever it dies, what it has is what the view was at one time.
3. A store that fails (`StoreFailed`) has lost nothing: the table is loaded anew, into another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hoodie.errors import Unavailable
from hoodie.server.stores.packed import FileChange, PackedFiles


class StoreFailed(Unavailable):
    """A store cannot read or write what it keeps."""


class NotNewest(StoreFailed):
    """A value was to be changed after which there is another."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What becomes of a store. `is_emptied` comes first; `loaded`: partitions and all their files; `changes`: those of
    partitions that are loaded; `dropped`: partitions that are no longer; `parts`: what the view knows beside, by name,
    where it is another than before.
    """

    is_emptied: bool = False
    loaded: Mapping[str, PackedFiles] = field(default_factory=dict)
    changes: Mapping[str, FileChange] = field(default_factory=dict)
    dropped: Iterable[str] = ()
    parts: Mapping[str, bytes] = field(default_factory=dict)


class ViewStore(Protocol):
    """The files of the partitions of one table that are loaded. Methods raise `StoreFailed`."""

    @property
    def outlives(self) -> bool:
        """Whether it is there when the service is started again, and so wants `parts`."""
        ...

    @property
    def is_in_memory(self) -> bool:
        """Whether nothing that is asked of it waits for a disk."""
        ...

    def partitions(self) -> tuple[str, ...]:
        """Paths of the partitions that are loaded, sorted."""
        ...

    def has(self, partition: str) -> bool:
        """Whether a partition is loaded."""
        ...

    def files(self, partition: str) -> PackedFiles | None:
        """All files of a partition; None where it is not loaded."""
        ...

    def of_group(self, partition: str, file_id: str) -> Iterable[tuple[str, int]]:
        """Names and sizes of the files of one file group; none where its partition is not loaded."""
        ...

    def parts(self) -> Mapping[str, bytes]:
        """What was told beside the files; nothing where the store does not outlive the service."""
        ...

    def changed(self, edit: Edit) -> ViewStore:
        """The next value, and the newest."""
        ...


class Stores(Protocol):
    """A kind of store, for all tables of a service. Threads may share it."""

    def open(self, place: str) -> ViewStore:
        """What is kept for the table at a place: nothing, unless a service before this one kept it there. Raises
        `StoreFailed`.
        """
        ...

    def distrust(self) -> None:
        """Something that is kept is damaged, or may be: nothing of it is used after the next start."""
        ...

    def close(self) -> None:
        """Gives back what the kind holds. Values that are still read fail with `StoreFailed`, or go on."""
        ...
