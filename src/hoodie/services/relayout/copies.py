"""What a worker does to one file of a move: copy it, compare copies, delete one. Each may be done again.

Copies go through the client, by parts: storages have no copy.
"""

from __future__ import annotations

from typing import Final

from hoodie.engine import TaskId
from hoodie.errors import Corrupt, Missing
from hoodie.layout import physical
from hoodie.layout.roots import are_one
from hoodie.storage import Storage

_PART: Final = 8 << 20


def delete_at(_: TaskId, task: tuple[Storage, str]) -> bool:
    storage, path = task
    return storage.delete(path)


def copy_file(_: TaskId, task: tuple[Storage, Storage, str, int]) -> None:
    source, target, path, size = task
    if _size(target, path) == size:
        return
    with target.open_output(path) as out:
        for start in range(0, size, _PART):
            out.write(source.read_range(path, start, min(_PART, size - start)))
    if _size(target, path) != size:
        raise Corrupt(f"The copy of {path} is not as long as the file", remedy="Try again", path=path)


def delete_copy(_: TaskId, task: tuple[Storage, Storage, str]) -> None:
    """A file that a clean removed while the move was interrupted has a copy that must not come to count."""
    source, target, path = task
    if _size(source, path) is None:
        target.delete(path)


def delete_old(_: TaskId, task: tuple[Storage, Storage, str, bool]) -> bool:
    new, old, path, is_unknown = task
    size = _size(old, path)
    if size is None or are_one(physical(new, path), physical(old, path)):
        return False
    if not is_unknown and not _is_same(new, old, path, size):
        raise Corrupt(
            f"{path} is not the same in its old and its new place",
            remedy="Nothing was deleted of it. Compare both (hoodie files --physical), and copy the right one",
            path=path,
        )
    return old.delete(path)


def _is_same(new: Storage, old: Storage, path: str, size: int) -> bool:
    if _size(new, path) != size:
        return False
    parts = (min(_PART, size - start) for start in range(0, size, _PART))
    starts = range(0, size, _PART)
    return all(
        new.read_range(path, at, length) == old.read_range(path, at, length)
        for at, length in zip(starts, parts, strict=True)
    )


def _size(storage: Storage, path: str) -> int | None:
    try:
        return storage.head(path).size_bytes
    except Missing:
        return None
