"""Which files make the archived history of a version 8+ table: content of `manifest_<n>`.

1. A manifest is JSON: `files`, each with `fileName` and `fileLen`. What it does not name is not part of the history,
   whatever lies in the folder.
2. Names are bare file names; anything else would be a way out of the folder and is refused.
3. Names tell the range of instants inside, but not reliably (upgraded tables): nothing here interprets them.

It does not know which manifest is the current one (see `timeline.lsm_history`). A worked example:
`docs/format/history.md`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hoodie.errors import Corrupt
from hoodie.spec.json_text import parse_json

MANIFEST_PREFIX = "manifest_"
HISTORY_VERSION_FILE = "_version_"

_REMEDY = "Restore the file from a copy"


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A parquet file of the history, by its name in the history folder."""

    name: str
    size_bytes: int


def parse_manifest(data: bytes, path: str) -> tuple[HistoryFile, ...]:
    """The files a manifest names, in its order.

    Raises:
        Corrupt: not such JSON, or a name that leaves the folder.
    """
    try:
        files = parse_json(data)["files"]
        return tuple(HistoryFile(_checked(one["fileName"], path), int(one.get("fileLen") or 0)) for one in files)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise Corrupt(f"{path} is not a manifest", remedy=_REMEDY, path=path) from error


def encode_manifest(files: tuple[HistoryFile, ...]) -> bytes:
    """The bytes of a manifest as Hudi lays them out."""
    if not files:
        return b'{\n  "files" : [ ]\n}'
    entries = (f'{{\n    "fileName" : {json.dumps(one.name)},\n    "fileLen" : {one.size_bytes}\n  }}' for one in files)
    return f'{{\n  "files" : [ {", ".join(entries)} ]\n}}'.encode()


def _checked(name: object, path: str) -> str:
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\0" in name:
        raise Corrupt(f"{path} names {str(name)[:200]!r}, which is no file of its folder", remedy=_REMEDY, path=path)
    return name
