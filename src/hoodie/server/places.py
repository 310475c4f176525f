"""Which tables a service may open: those below its roots, however a client spells them.

A base path is a path, `file:` in any form, or a URL; `s3a:` and `s3n:` are `s3:`. Links are followed before it is
compared, so none leads out of a root.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from hoodie.errors import Invalid

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(/.*)")
_SAME = {"s3a": "s3", "s3n": "s3"}


def place_of(base_path: str) -> str:
    """One text for all spellings of a place.

    Raises:
        Invalid: it names no place, or a way up.
    """
    match = _URL.fullmatch(base_path)
    scheme, path = (match[1].lower(), match[2]) if match else ("file", base_path)
    if ".." in path.split("/") or "\0" in path or not path.startswith("/"):
        raise Invalid(f"{base_path!r} is no base path of a table", remedy="Send a full path or URL")
    if scheme == "file":
        return os.path.realpath(re.sub("^/+", "/", path))
    authority, _, key = path.removeprefix("//").partition("/")
    parts = [part for part in key.split("/") if part not in ("", ".")]
    return "/".join([f"{_SAME.get(scheme, scheme)}://{authority}", *parts])


def is_below(place: str, roots: Iterable[str]) -> bool:
    """Whether a place is one of the roots, or below one. All are texts of `place_of`."""
    return any(place == root or place.startswith(f"{root.rstrip('/')}/") for root in roots)
