"""What a relayout is: the switch that is added to a layout, the move that follows, and its stored state. Pure.

1. A switch adds a version that counts from an instant after all others: nothing is moved, and both places stay known.
2. A move makes the newest version count from the beginning. `since` decides, in one replacement of the properties, so
   files are copied before and deleted after it.
3. The stored state names the files of a move, so that what is deleted in the end is what was copied.

Bytes: `docs/format/storage-layout.md`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from hoodie.errors import Corrupt, Invalid
from hoodie.layout import Layout, LayoutVersion, StorageStrategy
from hoodie.layout.layout import Guard
from hoodie.layout.properties import encode_versions, parse_versions
from hoodie.layout.strategy import parse_strategy
from hoodie.spec.typed_values import is_plain_path
from hoodie.storage import FileInfo

MOVE_FILE: Final = ".hoodie/.storage/move"
BEGINNING: Final = "0"


@dataclass(frozen=True, slots=True)
class Move:
    """A move that is under way. `before` and `after` are the versions of the layout; `files` the sizes, by logical
    path, of what lay elsewhere when it was planned; `flipped_ms` when `after` was seen to count, 0 until then.
    """

    before: tuple[LayoutVersion, ...]
    after: tuple[LayoutVersion, ...]
    files: Mapping[str, int]
    flipped_ms: int = 0


def plan_switch(  # noqa: PLR0917
    layout: Layout | None,
    strategy: tuple[str, StorageStrategy],
    roots: tuple[str, ...],
    folder: str,
    since: str,
    uuid: str,
) -> Layout:
    """The layout with one version more, of a strategy and its text. `roots` are those it uses; known ones are not added
    again. `folder` and `uuid` are for a table that has none.
    """
    text, made = strategy
    known = () if layout is None else layout.roots
    every = (*known, *(root for root in roots if root not in known))
    numbers = () if text == "hive" else tuple(every.index(root) for root in roots)
    versions = () if layout is None else layout.versions
    last = versions[-1].number if versions else 0
    used = next((one.folder for one in reversed(versions) if one.folder), folder)
    new = LayoutVersion(last + 1, since, text, numbers, "" if text == "hive" else used, "", made)
    guard: Guard = "strict" if layout is None else layout.guard
    return Layout(every, (*versions, new), uuid if layout is None else layout.uuid, guard)


def plan_target(layout: Layout) -> tuple[LayoutVersion, ...]:
    """The versions of a table all of whose files lie where the newest version says.

    Raises:
        Invalid: the newest version is for some partitions only.
    """
    newest = layout.versions[-1]
    if newest.partitions:
        raise Invalid(
            f"The newest strategy of the table is for partition {newest.partitions!r} only",
            remedy="Switch to a strategy for all partitions first (--to)",
        )
    return (replace(newest, since=BEGINNING),)


def plan_moves(files: Iterable[FileInfo], now: Layout, then: Layout) -> dict[str, int]:
    """Sizes, by logical path, of the files whose place differs between two layouts."""
    return {file.path: file.size_bytes for file in files if now.place(file.path) != then.place(file.path)}


def encode_move(move: Move) -> bytes:
    """The bytes of `MOVE_FILE`."""
    said = {
        "before": encode_versions(move.before),
        "after": encode_versions(move.after),
        "flipped": move.flipped_ms,
        "files": dict(move.files),
    }
    return json.dumps(said).encode()


def parse_move(data: bytes, roots: int, own: Mapping[str, StorageStrategy]) -> Move:
    """A move by its bytes, of a layout with so many roots.

    Raises:
        Corrupt: they say none.
    """
    try:
        said = json.loads(data)
        before, after = (parse_versions(said[name], roots, own, MOVE_FILE) for name in ("before", "after"))
        files, flipped = said["files"], said["flipped"]
        if not all(is_plain_path(path) and type(size) is int for path, size in files.items()):
            raise ValueError("a file that is none")
        return Move(before, after, files, int(flipped))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(
            f"{MOVE_FILE} is damaged: {error}",
            remedy="No file is lost: the table's properties say where files count. Delete it, and move again",
            path=MOVE_FILE,
        ) from error


def strategy_of(text: str, own: Mapping[str, StorageStrategy]) -> tuple[str, StorageStrategy]:
    """A strategy with its text. Raises as `parse_strategy`."""
    return text, parse_strategy(text, own)
