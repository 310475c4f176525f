"""The markers of a write: which data files it has begun to write.

1. A marker exists before its data file, so the markers name every file a dead write may have left.
2. Two kinds are read: direct ones (an empty file per marker) and those of a timeline server (`MARKERS<n>` text files).
   A folder may hold both; the answer is their union.
"""

from __future__ import annotations

from hoodie.spec import Marker, is_marker_list, marker_dir, parse_marker, parse_marker_list
from hoodie.storage import Storage


def load_markers(storage: Storage, instant: str) -> tuple[Marker, ...] | None:
    """Markers of `instant`, ordered by data path; None when it has no marker folder at all."""
    folder = marker_dir(instant)
    found: dict[str, Marker] = {}
    seen = False
    for file in storage.list(folder):
        seen = True
        relative = file.path[len(folder) + 1 :]
        if is_marker_list(relative):
            found.update((one.data_path, one) for one in parse_marker_list(storage.read(file.path), file.path))
        elif (marker := parse_marker(relative)) is not None:
            found[marker.data_path] = marker
    return tuple(found[path] for path in sorted(found)) if seen else None
