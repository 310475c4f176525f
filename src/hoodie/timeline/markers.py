"""The markers of a write: which data files it has begun to write.

1. A marker exists before its data file, so the markers name every file a dead write may have left.
2. Direct ones are written here: an empty file per marker. Read are those of a timeline server, too (`MARKERS<n>` text
   files); a folder may hold both, and the answer is their union.
3. Tasks make markers, on whatever machine they run; the driver of the write, or who rolls it back, reads and drops
   them. A crash in between leaves a folder, which goes with the rollback of its instant or the next writer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hoodie.spec import (
    InstantTime,
    Marker,
    MarkerKind,
    is_marker_list,
    marker_dir,
    marker_path,
    parse_marker,
    parse_marker_list,
)
from hoodie.storage import Storage


class Markers(Protocol):
    """The markers of one write. Values: they may be pickled and used by any thread."""

    def create(self, data_path: str, kind: MarkerKind) -> None:
        """Says that a data file is about to be written; once it returns, whoever takes the write back finds it.

        Raises:
            Conflict: there is such a marker. Unavailable: it could not be made; the file must not be written.
        """
        ...

    def load(self) -> tuple[Marker, ...] | None:
        """All markers, ordered by data path; None when the write has no marker folder at all.

        Raises:
            Corrupt: a list of markers is damaged.
        """
        ...

    def drop(self) -> None:
        """Removes all of them."""
        ...


def markers_of(storage: Storage, instant: InstantTime) -> Markers:
    """The markers of the write `instant`, as writes of this package make them."""
    return DirectMarkers(storage, instant)


@dataclass(frozen=True, slots=True)
class DirectMarkers:
    """Markers as files in `.hoodie/.temp/<instant>`."""

    storage: Storage
    instant: InstantTime

    def create(self, data_path: str, kind: MarkerKind) -> None:
        """See `Markers`: one call."""
        self.storage.create(marker_path(self.instant, data_path, kind), b"")

    def load(self) -> tuple[Marker, ...] | None:
        """See `Markers`: one listing."""
        folder = marker_dir(self.instant)
        found: dict[str, Marker] = {}
        seen = False
        for file in self.storage.list(folder):
            seen = True
            relative = file.path[len(folder) + 1 :]
            if is_marker_list(relative):
                found.update((one.data_path, one) for one in parse_marker_list(self.storage.read(file.path), file.path))
            elif (marker := parse_marker(relative)) is not None:
                found[marker.data_path] = marker
        return tuple(found[path] for path in sorted(found)) if seen else None

    def drop(self) -> None:
        """See `Markers`: one call."""
        self.storage.delete_dir(marker_dir(self.instant))
