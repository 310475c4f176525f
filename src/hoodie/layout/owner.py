"""Who a folder of a root belongs to: one small object, made by a conditional create; without it nothing changes there.

`<root>/.hoodie_owners/<folder>` holds `{"uuid": …, "table": <table path>}`, and `"bare": true` once files of the table
may lie in `<root>/<folder>` itself, without a prefix: prefixes of other tables must not lead there (`apart`).

Two tables of one name in one root share folders, and the clean of one would delete files of the other. A copied
`.hoodie` makes two tables own the same files, so the table path has to be the one that is named, too; a table that was
moved says so (`was_moved`). Tables in memory are known by their UUID alone: nobody else finds them, and tests copy
them.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from hoodie.errors import Conflict, Invalid, Missing, Unavailable
from hoodie.layout.roots import parse_place
from hoodie.storage import Storage

OWNERS_DIR: Final = ".hoodie_owners"


class Owner(NamedTuple):
    """UUID and path of the table that a folder belongs to. `is_bare`: its files may lie in the folder itself."""

    uuid: str
    table: str
    is_bare: bool = False


def claim(  # noqa: PLR0917
    root: Storage,
    folder: str,
    uuid: str,
    table: str,
    is_new: bool = False,
    was_moved: bool = False,
    is_bare: bool = False,
) -> None:
    """Makes the folder the table's. Nothing happens where it is already. `is_new`: there is no table at `table` yet and
    no file in the folder, so what a creation that died there claimed may be taken over. `was_moved`: the table with
    this UUID is at `table` now. `is_bare`: files will lie in the folder itself.

    Raises:
        Conflict: it belongs to another table. Unavailable: nobody can say to which.
    """
    data = json.dumps({"uuid": uuid, "table": table} | ({"bare": True} if is_bare else {})).encode()
    try:
        root.create(_path(folder), data)
    except Conflict:
        owner = load_owner(root, folder)
        is_taken_over = is_new and owner.table == table and owner.uuid != uuid
        if not is_taken_over and not (was_moved and owner.uuid == uuid):
            ensure_owner(root, folder, uuid, table)
            if owner.is_bare or not is_bare:
                return
        root.put(_path(folder), data)


def ensure_owner(root: Storage, folder: str, uuid: str, table: str) -> None:
    """Checks that the folder is that of the table with this UUID at `table`. One read.

    Raises:
        Conflict: it belongs to another table, or to one of which this is a copy. Unavailable: nobody says whose it is,
            as when the root is not reached.
    """
    owner, place, _ = load_owner(root, folder)
    if owner != uuid:
        raise Conflict(
            f"{root.uri}: the folder {folder!r} belongs to the table at {place}, not to this one",
            remedy="Nothing was changed there. Give a new table another folder (hoodie.storage.folder)",
            root=root.uri,
        )
    if not _is_same(place, table):
        raise Conflict(
            f"{root.uri}: the folder {folder!r} belongs to the table at {place}, and {table} is a copy of it, or the "
            "table itself after it was moved",
            remedy="Nothing was changed there: two tables would delete each other's files. Change nothing of a copy; "
            "if the table was moved here and is there no more: hoodie relayout --claim",
            root=root.uri,
        )


def _is_same(place: str, table: str) -> bool:
    """Whether two table paths are one, however they are spelled."""
    try:
        one, other = parse_place(place), parse_place(table)
    except Invalid:
        return place == table
    return one == other or "memory" in (one.scheme, other.scheme)


def load_owner(root: Storage, folder: str) -> Owner:
    """Whose the folder is. Raises Unavailable where nobody says so."""
    try:
        said = json.loads(root.read(_path(folder)))
        return Owner(str(said["uuid"]), str(said["table"]), said.get("bare") is True)
    except (Missing, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unavailable(
            f"{root.uri} does not say whose the folder {folder!r} is: {_path(folder)} is missing or damaged",
            remedy="See that the storage path is what it was (mounted, the right bucket), then retry; if only that "
            "object was lost, hoodie relayout --claim makes it again (delete a damaged one first)",
            root=root.uri,
        ) from error


def list_owned(root: Storage) -> list[str]:
    """Folders of a root that belong to tables. One listing."""
    names = (file.path.rpartition("/")[2] for file in root.list_dir(OWNERS_DIR).files)
    return [name for name in names if not name.startswith(".")]  # else the probe of one that died


def disclaim(root: Storage, folder: str, uuid: str, table: str) -> None:
    """Gives the folder up, of a table that is gone."""
    ensure_owner(root, folder, uuid, table)
    root.delete(_path(folder))


def _path(folder: str) -> str:
    return f"{OWNERS_DIR}/{folder}"
