"""Which tables a service may open: those below its roots, however a client spells them.

A base path is a path, `file:` in any form, or a URL; `s3a:` and `s3n:` are `s3:`. Links are followed before it is
compared, so none leads out of a root.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from hoodie.errors import Invalid

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(/.*)")
_SAME = {"s3a": "s3", "s3n": "s3"}


def place_of(base_path: str) -> str:
    """One text for all spellings of a place.

    Raises:
        Invalid: it names no place, or a way up.
    """
    spelled = spelled_place(base_path)
    return os.path.realpath(spelled) if spelled.startswith("/") else spelled


def spelled_place(base_path: str) -> str:
    """One text for all spellings of a place but those by links, which are not followed: no disk is asked.

    Raises:
        As `place_of`.
    """
    match = _URL.fullmatch(base_path)
    scheme, path = (match[1].lower(), match[2]) if match else ("file", base_path)
    if ".." in path.split("/") or "\0" in path or not path.startswith("/"):
        raise Invalid(f"{base_path!r} is no base path of a table", remedy="Send a full path or URL")
    if scheme == "file":
        return os.path.normpath(re.sub("^/+", "/", path))
    authority, _, key = path.removeprefix("//").partition("/")
    parts = [part for part in key.split("/") if part not in ("", ".")]
    return "/".join([f"{_SAME.get(scheme, scheme)}://{authority}", *parts])


@dataclass(frozen=True, slots=True)
class Lane:
    """Whose turn it is that a question takes: that of a table, among those below one root."""

    table: str
    root: str = ""


def lane_of(base_path: str, roots: Iterable[str]) -> Lane:
    """The lane of the table at a base path, however it is spelled. No disk is asked; what is no place has one, too."""
    try:
        place = spelled_place(base_path)
    except Invalid:
        return Lane("")
    return Lane(place, next((root for root in roots if is_below(place, (root,))), ""))


def is_below(place: str, roots: Iterable[str]) -> bool:
    """Whether a place is one of the roots, or below one. All are texts of `place_of`."""
    return any(place == root or place.startswith(f"{root.rstrip('/')}/") for root in roots)
