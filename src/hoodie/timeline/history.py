"""Archived history: whether there is any, and when archived commits completed.

1. In versions 8 and later the history is the set of parquet files that the current manifest names; `_version_` says
   which manifest is current, without it the greatest one is.
2. Every row is one instant. Names of the files say nothing reliable about which instants are inside (upgraded tables).
3. Only the times and the action are read, not what the instants did.

Tables of version 6 keep their history in another form; their rows carry the times that incremental queries go by.
What it is used for: `docs/design/0004-reads.md`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hoodie.errors import Corrupt, Missing, Unavailable
from hoodie.spec import COMPLETED_WRITE_ACTIONS, FormatProfile, InstantTime
from hoodie.storage import Storage, translated

if TYPE_CHECKING:
    import pyarrow as pa

VERSION_FILE = "_version_"
MANIFEST_PREFIX = "manifest_"
OLD_ARCHIVE_PREFIX = ".commits_.archive"

_COLUMNS = ("instantTime", "completionTime", "action")
_REMEDY = "Restore the file from a copy"


def has_history(storage: Storage, profile: FormatProfile) -> bool:
    """Whether instants were archived, by the names archives have: `manifest_N`, `X_Y_N.parquet` or
    `.commits_.archive.N`. One listing.
    """
    names = (file.path.rpartition("/")[2] for file in storage.list_dir(profile.history_dir).files)
    return any(name.startswith((OLD_ARCHIVE_PREFIX, MANIFEST_PREFIX)) or name.endswith(".parquet") for name in names)


def load_archived_commits(storage: Storage, profile: FormatProfile) -> dict[InstantTime, InstantTime]:
    """Requested → completion time of every archived write. Reads the manifest and three columns of each history file.

    Raises:
        Corrupt: the manifest or a file it names is damaged or gone.
    """
    found: dict[InstantTime, InstantTime] = {}
    for name in _current_files(storage, profile.history_dir):
        rows = _times(storage, f"{profile.history_dir}/{name}")
        for requested, completed, action in zip(*(rows[column].to_pylist() for column in _COLUMNS), strict=True):
            if action in COMPLETED_WRITE_ACTIONS:
                found[requested] = completed or requested
    return found


def _times(storage: Storage, path: str) -> pa.Table:
    # Nothing else of the timeline needs pyarrow, which takes longer to load than `hoodie timeline` to answer.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with translated("read", path), storage.open_input(path) as source:
            return pq.ParquetFile(source).read(_COLUMNS).select(_COLUMNS)
    except Missing as error:
        raise Corrupt(f"Archived history {path} is gone", remedy=_REMEDY, path=path) from error
    except (pa.ArrowException, KeyError, Unavailable) as error:
        # Arrow reports some damage as an input/output error without a number; those of the system have one.
        if isinstance(error, Unavailable) and error.facts.get("errno") != "0":
            raise
        raise Corrupt(f"Archived history {path} cannot be read: {error}", remedy=_REMEDY, path=path) from error


def _current_files(storage: Storage, folder: str) -> tuple[str, ...]:
    names = {file.path.rpartition("/")[2] for file in storage.list_dir(folder).files}
    versions = {name.removeprefix(MANIFEST_PREFIX) for name in names if name.startswith(MANIFEST_PREFIX)}
    known = [int(version) for version in versions if version.isdigit()]
    if not known:
        return ()
    current = storage.read(f"{folder}/{VERSION_FILE}").decode().strip() if VERSION_FILE in names else ""
    version = int(current) if current.isdigit() and int(current) in known else max(known)
    path = f"{folder}/{MANIFEST_PREFIX}{version}"
    try:
        return tuple(str(one["fileName"]) for one in json.loads(storage.read(path))["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"{path} is not a manifest", remedy=_REMEDY, path=path) from error
