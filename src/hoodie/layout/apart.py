"""Places of a table's files that are not its own: checked before a table has files there, as they would be listed as
its files, moved and deleted with it.

1. Where a root lies above the table path, no version may lead into the table path or have it among its own folders:
   one file would have two places in the table, and the end of a move would delete both (`ensure_outside`).
2. A root may have many tables. A folder without a prefix holds whatever lies below it, so it must not have the name of
   a prefix that strategies of others give, nor hold anything before it is the table's (`ensure_free`).
"""

from __future__ import annotations

import re
from typing import Final

from hoodie.errors import Conflict, Invalid
from hoodie.layout.layout import Layout, LayoutVersion, is_bare
from hoodie.layout.owner import list_owned
from hoodie.layout.roots import STORAGE_PATH, Place, parse_place
from hoodie.layout.strategy import may_give
from hoodie.storage import Storage

_LIKE_A_HASH: Final = re.compile(r"[0-9a-f-]{1,32}")
_REMEDY: Final = "Use another storage path, or name another folder in it with hoodie.storage.folder"


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


def ensure_free(root: Storage, version: LayoutVersion, is_used: bool = False) -> None:
    """Checks that files by a new version may go into a root. `is_used`: files of the table may lie in its folder there
    already. Lists one or two folders.

    Raises:
        Conflict: something lies there, or a folder of another table may be met. Invalid: the folder may be met by those
            of others.
    """
    if is_bare(version):
        if _LIKE_A_HASH.fullmatch(version.folder):
            raise Invalid(
                f"The folder {version.folder!r} looks like a prefix, which files of other tables may get in {root.uri}",
                remedy="Name another one with hoodie.storage.folder",
                key="hoodie.storage.folder",
            )
        there = root.list_dir(version.folder)
        if not is_used and (there.files or there.dirs):
            raise Conflict(
                f"{root.uri}: the folder {version.folder!r} is not empty, and belongs to no table that is known there",
                remedy=f"What lies there would be taken for files of this table, and be deleted with it. {_REMEDY}",
                root=root.uri,
            )
    met = [name for name in list_owned(root) if name != version.folder and may_give(version.strategy, name)]
    if met:
        raise Conflict(
            f"{root.uri}: by {version.text} files would get into the folder {met[0]!r}, which is another table's",
            remedy=_REMEDY,
            root=root.uri,
        )


def _below(home: Place, root: Place) -> tuple[str, ...]:
    return home.folders[len(root.folders) :]


def _meets(version: LayoutVersion, path: tuple[str, ...]) -> bool:
    """Whether folders of the version and a path below the same root are one, or one lies in the other."""
    if is_bare(version):
        return path[:1] == (version.folder,)
    return bool(path) and may_give(version.strategy, path[0]) and path[1:2] in ((), (version.folder,))
