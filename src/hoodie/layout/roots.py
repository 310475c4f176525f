"""Storage paths (roots): which URLs may be one, and which of them a caller allows.

1. What a table says about its roots is input of whoever could write its properties. A root is used only where the
   *caller* allows it (`hoodie.storage.allowed.roots`); without a word, the bucket of the table path is allowed.
2. URLs are compared as scheme, authority and whole folders, never as texts. `s3`, `s3a` and `s3n` are one scheme.
3. A folder of this machine is compared by where its links lead, and never allowed by default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from hoodie.errors import Invalid

ALLOWED_ROOTS: Final = "hoodie.storage.allowed.roots"
STORAGE_PATH: Final = "hoodie.storage.path"
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(.*)", re.DOTALL)
_SCHEMES: Final = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb", "azure": "az"}
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f?#,\\*]")


@dataclass(frozen=True, slots=True)
class Place:
    """A URL in comparable form."""

    scheme: str
    authority: str
    folders: tuple[str, ...]

    def is_inside(self, other: Place) -> bool:
        """Whether it is `other` or lies below it."""
        same = (self.scheme, self.authority) == (other.scheme, other.authority)
        return same and self.folders[: len(other.folders)] == other.folders


def parse_place(uri: str) -> Place:
    """The comparable form of a URL or a path.

    Raises:
        Invalid: it is no plain URL: it has `..`, a query, a fragment, a user, control characters, or names everything.
    """
    match = _URL.fullmatch(uri)
    scheme = _SCHEMES.get(match[1].lower(), match[1].lower()) if match else "file"
    authority, path = (match[2], match[3]) if match else ("", uri.removeprefix("file:"))
    if scheme == "file":
        path, authority = authority + path, ""
        plain = path.startswith("/") and ".." not in path.split("/")
        folders = tuple(filter(None, os.path.realpath(path).split("/"))) if plain else ()
    else:
        folders = tuple(path.strip("/").split("/")) if path.strip("/") else ()
        plain = bool(authority) and not any(part in ("", ".", "..") for part in folders)
    has_user = "@" in authority and scheme not in ("abfs", "wasb")
    if not plain or has_user or _FORBIDDEN.search(uri) or (scheme == "file" and not folders):
        raise Invalid(
            f"{uri[:200]!r} cannot be a storage path",
            remedy="Name a bucket or a folder by its full URL, without '..', user, query or wildcards",
            key=STORAGE_PATH,
        )
    return Place(scheme, authority, folders)


def split_root(root: str) -> tuple[str, tuple[str, ...]]:
    """A storage path as what comes before its folders (`s3://bucket/`, `/`), and its folders, where links lead to."""
    place, match = parse_place(root), _URL.fullmatch(root)
    return "/" if place.scheme == "file" or match is None else f"{match[1]}://{match[2]}/", place.folders


def are_one(one: str, other: str) -> bool:
    """Whether two full names are those of one file, however its store is spelled and wherever links lead."""
    return _spelled(one) == _spelled(other)


def ensure_roots(roots: Collection[str], table: str, allowed: Collection[str]) -> None:
    """Checks that a table at `table` may keep files in `roots`, by what the caller allows.

    Raises:
        Invalid: a root is not allowed, lies in the table or in another root, or is no plain URL.
    """
    home = parse_place(table)
    places = [parse_place(root) for root in roots]
    limits = [parse_place(one) for one in allowed]
    if home.scheme != "file":
        limits.append(Place(home.scheme, home.authority, ()))
    for number, (root, place) in enumerate(zip(roots, places, strict=True)):
        if not any(place.is_inside(limit) for limit in limits):
            raise Invalid(
                f"The table at {table} keeps files at {root}, which is not allowed: nothing was read or changed there",
                remedy=f"If you trust that place, name it in the option {ALLOWED_ROOTS}",
                key=ALLOWED_ROOTS,
                root=root,
            )
        others = places[:number] + places[number + 1 :]
        if place.is_inside(home) or any(place.is_inside(other) for other in others):
            raise Invalid(
                f"The storage path {root} lies inside the table or another storage path",
                remedy="Keep the table path and all storage paths apart",
                key=STORAGE_PATH,
                root=root,
            )


def _spelled(name: str) -> str:
    match = _URL.fullmatch(name)
    scheme = match[1].lower() if match else "file"
    if scheme == "file":
        return os.path.realpath((match[2] + match[3]) if match else name.removeprefix("file:"))
    assert match is not None
    return f"{_SCHEMES.get(scheme, scheme)}://{match[2]}{match[3]}"
