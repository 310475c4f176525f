"""Markers: files that announce a data file before it is written, so that it can be removed when the write dies.

1. A direct marker is an empty file `.hoodie/.temp/<instant>/<partition>/<data file>.marker.<kind>`.
2. Hudi's timeline server writes lists instead: `MARKERS0`, `MARKERS1`, ... with one relative marker path per line,
   beside `MARKERS.type`. The union of all lines counts.
3. Hudi's server that was started anew joins the lines it finds by commas (its fault): such a line is read as many,
   apart behind names of data files. The same may stand in the name of a partition.
4. The kind says what the writer was about to do: create a base file (in version 8+ also a log file), rewrite one
   (merge), or append a log file (version 6).

It does not know storage. Grammar and examples: `docs/format/markers.md`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from hoodie.errors import Corrupt
from hoodie.spec.file_names import parse_data_file_name
from hoodie.spec.instant import InstantTime
from hoodie.spec.keys import TEMP_DIR
from hoodie.spec.typed_values import is_plain_path

MARKER_TYPE_FILE = "MARKERS.type"
MARKER_LIST_PREFIX = "MARKERS"
MARKER_TYPE = b"TIMELINE_SERVER_BASED"
"""What `MARKERS.type` says, without a line break."""

_INFIX = ".marker."
_JOINED = re.compile(r"(\.marker\.(?:CREATE|MERGE|APPEND)),")


class MarkerKind(Enum):
    """What the writer was about to do to the data file."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


@dataclass(frozen=True, slots=True)
class Marker:
    """A data file (path relative to the table's base path) that a write announced."""

    data_path: str
    kind: MarkerKind


def marker_dir(instant: InstantTime) -> str:
    """The folder of all markers of one instant."""
    return f"{TEMP_DIR}/{instant}"


def marker_path(instant: InstantTime, data_path: str, kind: MarkerKind) -> str:
    """Where the direct marker of a data file stands."""
    return f"{marker_dir(instant)}/{marker_name(data_path, kind)}"


def marker_name(data_path: str, kind: MarkerKind) -> str:
    """A marker relative to its folder, as it stands in a list."""
    return f"{data_path}{_INFIX}{kind.value}"


def marker_list_path(instant: InstantTime, number: int) -> str:
    """Where a list of markers stands."""
    return f"{marker_dir(instant)}/{MARKER_LIST_PREFIX}{number}"


def marker_type_path(instant: InstantTime) -> str:
    """Where it stands that there are lists of markers."""
    return f"{marker_dir(instant)}/{MARKER_TYPE_FILE}"


def parse_marker(path: str, instant: InstantTime | None = None) -> Marker | None:
    """The marker a path names, None for any other file and for one that would lie outside the table.

    `path` is relative to the base path when `instant` is given, else relative to the marker folder.
    """
    relative = path if instant is None else path.removeprefix(marker_dir(instant) + "/")
    data_path, infix, kind = relative.rpartition(_INFIX)
    if not infix or not is_plain_path(data_path) or kind not in MarkerKind.__members__:
        return None
    return Marker(data_path, MarkerKind[kind])


def is_marker_list(name: str) -> bool:
    """Whether a file name in a marker folder is one of the timeline server's lists."""
    return name.startswith(MARKER_LIST_PREFIX) and name[len(MARKER_LIST_PREFIX) :].isdigit()


def parse_marker_list(data: bytes, path: str) -> tuple[Marker, ...]:
    """The markers of one list file, which may be empty.

    Raises:
        Corrupt: a line is not a marker path. The last line may be cut off: its write never began.
    """
    markers: list[Marker] = []
    start = 0
    *lines, rest = data.split(b"\n")
    for line in lines:
        for one in split_joined(line.decode("utf-8", "replace")):
            marker = parse_marker(one)
            if marker is None:
                raise Corrupt(f"{path} has a line that is no marker: {line[:80]!r}", path=path, offset=start)
            markers.append(marker)
        start += len(line) + 1
    last = (parse_marker(one) for one in split_joined(rest.decode("utf-8", "replace")))
    return (*markers, *(one for one in last if one is not None))


def ensure_marker_type(data: bytes, path: str) -> None:
    """Checks that a marker folder has no markers but direct ones and lists. An empty file says nothing: its writer
    died before it announced anything.

    Raises:
        Corrupt: it may have others.
    """
    if data.strip() not in (b"", MARKER_TYPE):
        raise Corrupt(f"{path} names a kind of markers that nobody knows: {data[:40]!r}", path=path, offset=0)


def split_joined(line: str) -> list[str]:
    """The markers in a line of a list: one, or as many as were joined to it by commas."""
    found, start = [], 0
    for match in _JOINED.finditer(line):
        if parse_data_file_name(line[start : match.start()].rpartition("/")[2]) is not None:
            found.append(line[start : match.end(1)])
            start = match.end()
    return [*found, line[start:]] if start < len(line) else found
