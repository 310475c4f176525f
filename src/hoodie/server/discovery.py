"""Which tables lie below the roots of a service: looked for on demand, not longer and not deeper than is sensible.

1. A folder with a `.hoodie` in it is a table; nothing is looked for inside one. Hidden folders, and those that begin
   with `_`, are passed over.
2. Folders are listed breadth first, until there are enough, or time is up: what was not looked at is said.
3. What is found lies below a root also when links are followed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hoodie.env import Env
from hoodie.errors import HudiError, Invalid
from hoodie.server.places import is_below, place_of
from hoodie.server.roots import trouble_of
from hoodie.spec import keys
from hoodie.storage import Storage

MAX_FOLDERS = 2000
MAX_TABLES = 1000
MAX_DEPTH = 6
SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Found:
    """Places of tables, sorted. `note`: what was not looked at, and why; empty when all was."""

    places: tuple[str, ...]
    note: str = ""


def find_tables(roots: Sequence[str], storage_at: Callable[[str], Storage], env: Env) -> Found:
    """The tables below `roots`. Lists at most `MAX_FOLDERS` folders, and begins none after `SECONDS`."""
    until, listed = env.monotonic() + SECONDS, 0
    found: set[str] = set()
    notes: list[str] = []
    for root in roots:
        trouble = trouble_of(root, storage_at)
        if trouble:
            notes.append(f"{root} cannot be reached: {trouble}")
            continue
        storage = storage_at(root)
        folders = deque([("", 0)])
        while folders:
            folder, depth = folders.popleft()
            if listed >= MAX_FOLDERS or len(found) >= MAX_TABLES or env.monotonic() > until:
                notes.append(
                    f"Not all folders below {root} were looked at (after {listed:,}): open tables there by their path"
                )
                break
            listed += 1
            try:
                inside = storage.list_dir(folder).dirs
            except HudiError as error:
                notes.append(f"{root}/{folder} cannot be listed: {error.cause}")
                continue
            if any(_name(path) == keys.HOODIE_DIR for path in inside):
                found.update(_places(root, folder, roots))
            elif depth < MAX_DEPTH:
                folders.extend((path, depth + 1) for path in inside if not _name(path).startswith((".", "_")))
    return Found(tuple(sorted(found)), ". ".join(dict.fromkeys(notes)))


def _places(root: str, folder: str, roots: Sequence[str]) -> tuple[str, ...]:
    try:
        place = place_of(f"{root}/{folder}" if folder else root)
    except Invalid:
        return ()
    return (place,) if is_below(place, roots) else ()


def _name(path: str) -> str:
    return path.rpartition("/")[2]
