"""The markers of a write: which data files it has begun to write.

1. A marker exists before its data file, so the markers name every file a dead write may have left.
2. They are empty files of their own (direct), or lines of lists (`marker_lists`, and a timeline server's). A folder may
   hold both, whoever wrote them: the answer is their union, in one listing and one read for each list.
3. Tasks make markers, on whatever machine they run; the driver of the write, or who rolls it back, reads and drops
   them. A crash in between leaves a folder, which goes with the rollback of its instant or the next writer.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from hoodie.spec import (
    MARKER_TYPE_FILE,
    InstantTime,
    Marker,
    MarkerKind,
    is_marker_list,
    marker_dir,
    marker_path,
    parse_marker,
    parse_marker_list,
)
from hoodie.spec.markers import ensure_marker_type
from hoodie.storage import Storage

_THREADS = 16


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
    """The markers of the write `instant` as they are on storage, whoever made them. New ones are direct."""
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
        """See `Markers`: as `load_markers`."""
        return load_markers(self.storage, self.instant)

    def drop(self) -> None:
        """See `Markers`: one call."""
        self.storage.delete_dir(marker_dir(self.instant))


def load_markers(storage: Storage, instant: InstantTime) -> tuple[Marker, ...] | None:
    """All markers on storage, direct ones and those in lists, ordered by data path; None without a marker folder.

    One listing, and one read for each list.

    Raises:
        Corrupt: a list is damaged, or the folder may have markers of another kind.
    """
    folder = marker_dir(instant)
    found: dict[str, Marker] = {}
    lists: list[str] = []
    seen = False
    for file in storage.list(folder):
        seen = True
        relative = file.path[len(folder) + 1 :]
        if is_marker_list(relative):
            lists.append(file.path)
        elif relative == MARKER_TYPE_FILE:
            ensure_marker_type(storage.read(file.path), file.path)
        elif (marker := parse_marker(relative)) is not None:
            found[marker.data_path] = marker
    if lists:
        with ThreadPoolExecutor(min(_THREADS, len(lists))) as pool:
            for path, data in zip(lists, pool.map(storage.read, lists), strict=True):
                found.update((one.data_path, one) for one in parse_marker_list(data, path))
    return tuple(found[path] for path in sorted(found)) if seen else None
