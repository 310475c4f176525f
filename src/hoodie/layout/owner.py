"""Who a folder of a root belongs to: one small object, made by a conditional create; without it nothing changes there.

`<root>/.hoodie_owners/<folder>` holds `{"uuid": …, "table": <table path>}`. Two tables of one name in one root share
folders, and the clean of one would delete files of the other; a copied `.hoodie` makes two tables own the same files.
"""

from __future__ import annotations

import json
from typing import Final

from hoodie.errors import Conflict, Missing, Unavailable
from hoodie.storage import Storage

OWNERS_DIR: Final = ".hoodie_owners"


def claim(root: Storage, folder: str, uuid: str, table: str, *, is_new: bool = False) -> None:
    """Makes the folder the table's. Nothing happens where it is already. `is_new`: there is no table at `table` yet, so
    what a creation that died there claimed may be taken over.

    Raises:
        Conflict: it belongs to another table.
    """
    data = json.dumps({"uuid": uuid, "table": table}).encode()
    try:
        root.create(_path(folder), data)
    except Conflict:
        owner, place = load_owner(root, folder)
        if is_new and place == table and owner != uuid:
            root.put(_path(folder), data)
        else:
            ensure_owner(root, folder, uuid)


def ensure_owner(root: Storage, folder: str, uuid: str) -> None:
    """Checks that the folder is the table's. One read.

    Raises:
        Conflict: it belongs to another table. Unavailable: nobody says whose it is, as when the root is not reached.
    """
    owner, table = load_owner(root, folder)
    if owner != uuid:
        raise Conflict(
            f"{root.uri}: the folder {folder!r} belongs to the table at {table}, not to this one",
            remedy="Nothing was changed there. Give a new table another folder (hoodie.storage.folder); of a copied "
            "table change nothing until its files were copied as well",
            root=root.uri,
        )


def load_owner(root: Storage, folder: str) -> tuple[str, str]:
    """UUID and path of the table that the folder belongs to. Raises Unavailable where nobody says so."""
    try:
        said = json.loads(root.read(_path(folder)))
        return str(said["uuid"]), str(said["table"])
    except (Missing, ValueError, KeyError, TypeError) as error:
        raise Unavailable(
            f"{root.uri} does not say whose the folder {folder!r} is: {_path(folder)} is missing or damaged",
            remedy="See that the storage path is what it was (mounted, the right bucket), then retry; if only that "
            "object was lost, hoodie relayout --claim makes it again",
            root=root.uri,
        ) from error


def disclaim(root: Storage, folder: str, uuid: str) -> None:
    """Gives the folder up, of a table that is gone."""
    ensure_owner(root, folder, uuid)
    root.delete(_path(folder))


def _path(folder: str) -> str:
    return f"{OWNERS_DIR}/{folder}"
