"""Places of a table's files that are not its own: checked before a table has files there, as they would be listed as
its files, moved and deleted with it.

1. Where a root lies above the table path, no version may lead into the table path or have it among its own folders:
   one file would have two places in the table, and the end of a move would delete both (`ensure_outside`).
2. A root may have many tables. A folder without a prefix holds whatever lies below it: it must not have the name of a
   prefix that strategies of others may give, nor hold files before it is the table's (`ensure_free`). Nor may a root
   lie in such a folder (`ensure_nobody_above`).

Strategies of the caller's own that tell no list of prefixes are believed to keep apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from hoodie.errors import Conflict, HudiError, Invalid, Unavailable
from hoodie.layout.layout import Layout, LayoutVersion, is_bare
from hoodie.layout.owner import Owner, list_owned, load_owner
from hoodie.layout.roots import STORAGE_PATH, Place, parse_place, split_root
from hoodie.layout.strategy import may_give
from hoodie.storage import Storage

_LIKE_A_HASH: Final = re.compile(r"[0-9a-f-]{1,32}")
_REMEDY: Final = "Use another storage path, or for a new table another folder in it (hoodie.storage.folder)"


def ensure_outside(layout: Layout, table: str) -> None:
    """Checks that no version leads to the table path, into it, or to a folder above it. Pure.

    Raises:
        Invalid: one does.
    """
    home = parse_place(table)
    for version in layout.versions:
        for number in version.roots:
            root = parse_place(layout.roots[number])
            if home.is_inside(root) and _meets(version, _below(home, root)):
                raise Invalid(
                    f"By {version.text} files of the table would lie in {layout.roots[number]} where the table at "
                    f"{table} itself is",
                    remedy=_REMEDY,
                    key=STORAGE_PATH,
                    root=layout.roots[number],
                )


def ensure_free(root: Storage, version: LayoutVersion, uuid: str, table: str) -> None:
    """Checks that files by a new version of the table at `table` may go into a root. Lists one or two folders, and asks
    whose those are that might be met.

    Raises:
        Conflict: files lie there that are not the table's, or files of both could meet.
    """
    others = [name for name in list_owned(root) if name != version.folder]
    if is_bare(version):
        if others and _LIKE_A_HASH.fullmatch(version.folder):
            raise Conflict(
                f"The folder {version.folder!r} looks like a prefix, which files of other tables may get in {root.uri}",
                remedy=_REMEDY,
                root=root.uri,
            )
        if not _is_own(_owner(root, version.folder), uuid, table) and next(root.list(version.folder), None) is not None:
            raise Conflict(
                f"{root.uri}: files lie in the folder {version.folder!r}, which is not known to be this table's",
                remedy=f"They would be taken for files of this table, and be deleted with it. {_REMEDY}",
                root=root.uri,
            )
    for name in others:
        if may_give(version.strategy, name) and (owner := _owner(root, name)) is not None and owner.is_bare:
            raise Conflict(
                f"{root.uri}: by {version.text} files would get into the folder {name!r}, which is the table's at "
                f"{owner.table}",
                remedy=_REMEDY,
                root=root.uri,
            )


def ensure_nobody_above(root: str, open_root: Callable[[str], Storage], table: str) -> None:
    """Checks that a root does not lie in a folder that another table has in a root above: whatever is below that folder
    is taken for its own. One listing of each folder above that may be listed.

    Raises:
        Conflict: it does.
    """
    start, parts = split_root(root)
    for depth in range(len(parts)):
        above = start + "/".join(parts[:depth])
        try:
            store = open_root(above)
            owned = set(list_owned(store))
        except HudiError:  # who may not look there shares nothing with those that may
            continue
        first, second = (*parts[depth:], "")[:2]
        met = first if first in owned else second if second in owned and _LIKE_A_HASH.fullmatch(first) else None
        owner = None if met is None else _owner(store, met)
        if owner is not None and owner.table != table:
            raise Conflict(
                f"The storage path {root} lies in a folder of the table at {owner.table}, which would take what is "
                "below it for its own",
                remedy="Use a storage path that is beside the other table's folders",
                root=root,
            )


def _owner(root: Storage, folder: str) -> Owner | None:
    try:
        return load_owner(root, folder)
    except Unavailable:
        return None


def _is_own(owner: Owner | None, uuid: str, table: str) -> bool:
    """Whether a folder is the table's, or was claimed by a creation of it that failed."""
    return owner is not None and (owner.uuid == uuid or owner.table == table)


def _below(home: Place, root: Place) -> tuple[str, ...]:
    return home.folders[len(root.folders) :]


def _meets(version: LayoutVersion, path: tuple[str, ...]) -> bool:
    """Whether folders of the version and a path below the same root are one, or one lies in the other."""
    if is_bare(version):
        return path[:1] == (version.folder,)
    return bool(path) and may_give(version.strategy, path[0]) and path[1:2] in ((), (version.folder,))
