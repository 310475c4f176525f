"""What the instant in a log file's name is: that of the file's slice, or that of the write; and what follows from it.

1. *Named by slice* (version 6): the name carries the base instant of the slice, or the instant of a compaction that is
   planned for the group. Several writes append to a file or put the next version beside it, so a name does not say who
   wrote a file, its size is not that of one write, and a slice takes a file however late its write completes.
2. *Named by write* (versions 8 and later): the name carries the delta commit, which makes the file once, as version 1.
   The file belongs to the newest slice that began before the delta commit completed.

Pure. Grammar: `docs/format/file-names.md`; which slice a file belongs to: `docs/format/file-slices.md`. What differs
and needs more than names is chosen by the naming where it is needed (`hoodie.view.slicing`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from hoodie.spec.file_names import BaseFileName, LogFileName
from hoodie.spec.instant import Instant, InstantTime
from hoodie.spec.markers import MarkerKind


class LogNaming(Protocol):
    """How log files are named."""

    @property
    def marker(self) -> MarkerKind:
        """How a log file is announced by a marker."""
        ...

    @property
    def has_one_write_per_file(self) -> bool:
        """Whether a log file is one write's alone: its size is what that write said, all its blocks count or none, and
        whoever takes the write back deletes the file.
        """
        ...

    @property
    def finds_slice_by_completion(self) -> bool:
        """Whether a log file joins the newest slice there is when its write completes. Otherwise the write has chosen
        the slice: a compaction that is planned meanwhile would not see the file.
        """
        ...

    def writer_of(self, name: BaseFileName | LogFileName) -> InstantTime | None:
        """The write that made a data file, if its name says so: names of base files and change files always do."""
        ...

    def instant_and_version(
        self, slice_instant: InstantTime, writing: InstantTime, versions: Collection[int]
    ) -> tuple[InstantTime, int]:
        """Instant and version in the name of the log file that `writing` adds to a slice which has log files of these
        versions.
        """
        ...

    def writers_of(self, named: Collection[InstantTime], writes: Iterable[Instant]) -> Iterator[Instant]:
        """Those of the writes that may have written log files with such instants in their names."""
        ...


@dataclass(frozen=True, slots=True)
class NamedBySlice:
    """Tables of version 6, and what a downgrade leaves."""

    marker: MarkerKind = MarkerKind.APPEND
    has_one_write_per_file: bool = False
    finds_slice_by_completion: bool = False

    def writer_of(self, name: BaseFileName | LogFileName) -> InstantTime | None:
        return name.instant if isinstance(name, BaseFileName) or name.is_cdc else None

    def instant_and_version(
        self, slice_instant: InstantTime, writing: InstantTime, versions: Collection[int]
    ) -> tuple[InstantTime, int]:
        del writing
        return slice_instant, 1 + max(versions, default=0)

    def writers_of(self, named: Collection[InstantTime], writes: Iterable[Instant]) -> Iterator[Instant]:
        oldest = min(named)
        return (one for one in writes if one.requested >= oldest)


@dataclass(frozen=True, slots=True)
class NamedByWrite:
    """Tables of version 8 and later."""

    marker: MarkerKind = MarkerKind.CREATE
    has_one_write_per_file: bool = True
    finds_slice_by_completion: bool = True

    def writer_of(self, name: BaseFileName | LogFileName) -> InstantTime | None:
        return name.instant

    def instant_and_version(
        self, slice_instant: InstantTime, writing: InstantTime, versions: Collection[int]
    ) -> tuple[InstantTime, int]:
        del slice_instant, versions
        return writing, 1

    def writers_of(self, named: Collection[InstantTime], writes: Iterable[Instant]) -> Iterator[Instant]:
        return (one for one in writes if one.requested in named)


NAMED_BY_SLICE = NamedBySlice()
NAMED_BY_WRITE = NamedByWrite()
