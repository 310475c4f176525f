"""When archived commits completed: the part of archived history that incremental queries of version 8 and later need.

1. The history is the set of parquet files that the current manifest names; `_version_` says which manifest is current,
   without it the greatest one is.
2. Every row is one instant. Names of the files say nothing reliable about which instants are inside (upgraded tables).
3. Only the times and the action are read, not what the instants did.

Tables of version 6 keep their history in another form; their rows carry the times that incremental queries go by.
What it is used for: `docs/design/0004-reads.md`.
"""

from __future__ import annotations

import json

from hoodie.errors import Corrupt, Missing
from hoodie.records import read_columns
from hoodie.spec import COMPLETED_WRITE_ACTIONS, FormatProfile, InstantTime
from hoodie.storage import Storage

VERSION_FILE = "_version_"
MANIFEST_PREFIX = "manifest_"

_COLUMNS = ("instantTime", "completionTime", "action")


def load_archived_commits(storage: Storage, profile: FormatProfile) -> dict[InstantTime, InstantTime]:
    """Requested → completion time of every archived write. Reads the manifest and three columns of each history file.

    Raises:
        Corrupt: the manifest or a file it names is damaged or gone.
    """
    found: dict[InstantTime, InstantTime] = {}
    for name in _current_files(storage, profile.history_dir):
        path = f"{profile.history_dir}/{name}"
        try:
            rows = read_columns(storage, path, _COLUMNS)
        except Missing as error:
            raise Corrupt(
                f"Archived history {path} is gone", remedy="Restore the file from a copy", path=path
            ) from error
        for requested, completed, action in zip(*(rows[column].to_pylist() for column in _COLUMNS), strict=True):
            if action in COMPLETED_WRITE_ACTIONS:
                found[requested] = completed or requested
    return found


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
        raise Corrupt(f"{path} is not a manifest", remedy="Restore the file from a copy", path=path) from error
