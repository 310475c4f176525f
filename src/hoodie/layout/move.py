"""A move of a table's files that is under way, as it is stored, and where it has copies that do not count.

The stored state names the files of a move, so that what is deleted in the end is what was copied. The properties alone
say which places count: the versions before the move, or those after it.

Bytes: `docs/format/storage-layout.md`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hoodie.errors import Corrupt, Missing
from hoodie.layout.federated import FederatedStorage
from hoodie.layout.layout import Layout, LayoutVersion
from hoodie.layout.places import places_of
from hoodie.layout.properties import encode_versions, parse_versions
from hoodie.layout.strategy import StorageStrategy
from hoodie.spec.typed_values import is_plain_path
from hoodie.storage import Storage

MOVE_FILE: Final = ".hoodie/.storage/move"


@dataclass(frozen=True, slots=True)
class Move:
    """A move that is under way. `before` and `after` are the versions of the layout; `files` the sizes, by logical
    path, of what lay elsewhere when it was planned; `flipped_ms` when `after` was seen to count, 0 until then;
    `partition`: which ones it is for, all if empty.
    """

    before: tuple[LayoutVersion, ...]
    after: tuple[LayoutVersion, ...]
    files: Mapping[str, int]
    flipped_ms: int = 0
    partition: str = ""


def plan_moves(sizes: Mapping[str, int], now: Layout, then: Layout) -> dict[str, int]:
    """Sizes, by logical path, of the files whose place differs between two layouts."""
    paths = list(sizes)
    here, there = places_of(now, paths), places_of(then, paths)
    differ = (
        (one, key) != (other, other_key)
        for one, key, other, other_key in zip(here.roots, here.keys, there.roots, there.keys, strict=True)
    )
    return {path: sizes[path] for path, is_other in zip(paths, differ, strict=True) if is_other}


def copies_that_do_not_count(storage: Storage) -> Iterator[tuple[Storage, Sequence[str]]]:
    """Storages that look where a move under way has copies, or has left them, and the paths of these. Who takes all
    files of a table away takes them first: a later table, or a later move, would find them in their place.

    Raises:
        Corrupt: the file of the move is damaged.
    """
    if not isinstance(storage, FederatedStorage) or storage.layout is None:
        return
    try:
        data = storage.read(MOVE_FILE)
    except Missing:
        return
    now = storage.layout
    move = parse_move(data, len(now.roots), storage.access.own)
    for versions in (move.before, move.after):
        other = replace(now, versions=versions)
        if paths := plan_moves(move.files, now, other):
            yield replace(storage, layout=other), list(paths)


def encode_move(move: Move) -> bytes:
    """The bytes of `MOVE_FILE`."""
    said = {
        "before": encode_versions(move.before),
        "after": encode_versions(move.after),
        "flipped": move.flipped_ms,
        "files": dict(move.files),
        **({"partition": move.partition} if move.partition else {}),
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
        files, flipped, partition = said["files"], said["flipped"], said.get("partition", "")
        if not all(is_plain_path(path) and type(size) is int for path, size in files.items()):
            raise ValueError("a file that is none")
        if not isinstance(partition, str):
            raise ValueError("a partition that is none")
        return Move(before, after, files, int(flipped), partition)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(
            f"{MOVE_FILE} is damaged: {error}",
            remedy="No file is lost: the table's properties say where files count. Delete it, and move again",
            path=MOVE_FILE,
        ) from error
