"""Log files named as version 6 names them: by the base instant of their slice and a number that counts up.

1. In version 8 and later a log file carries its own delta commit. A reader of version 6 would take that for a base
   instant, and put the file into another slice.
2. Before a downgrade the latest slices are compacted; what remains are log files of older slices, for time travel,
   savepoints and incremental queries.
3. The new names are written down first. Then each file is copied under its new name, and the old one goes, while the
   table still has its version: the copies are read as part of the same slice there too. Who goes on after a crash knows
   from the list what was called what; commits and savepoints name files.
4. A copy is there as a whole or not at all, so that whichever of the two files is found is the file. That costs the
   memory of one log file for each task.

Change-data files keep their names: version 6 names them so as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from hoodie.engine import Engine, TaskId
from hoodie.errors import Missing
from hoodie.spec import LogFileName, keys
from hoodie.storage import Storage
from hoodie.view import FileSlice


def plan_renames(slices: Iterable[FileSlice]) -> dict[str, str]:
    """Old to new path of every log file whose name is not that of its slice, in slice order."""
    renames: dict[str, str] = {}
    for one in slices:
        own = [log.name.version for log in one.logs if log.name.instant == one.base_instant and one.base is not None]
        version = max(own, default=0)
        for log in one.logs:
            if log.name.instant == one.base_instant and (one.base is not None or log.name.version == version + 1):
                version = max(version, log.name.version)
                continue
            version += 1
            name: LogFileName = replace(log.name, instant=one.base_instant, version=version)
            folder = log.path.rpartition("/")[0]
            renames[log.path] = f"{folder}/{name.text}" if folder else name.text
    return renames


def store_renames(storage: Storage, renames: Mapping[str, str]) -> None:
    """Write the list down. The caller deletes the file when the table's commits have the new names."""
    storage.put(keys.LOG_RENAMES_FILE, json.dumps(dict(renames)).encode())


def run_renames(storage: Storage, engine: Engine, renames: Mapping[str, str]) -> None:
    """Every log file stands under its new name, and under that only."""
    tasks = [_Copy(storage, old, new) for old, new in renames.items()]
    engine.run(_copy, tasks, "name log files")
    engine.run(_delete, tasks, "name log files")


@dataclass(frozen=True, slots=True)
class _Copy:
    storage: Storage
    old: str
    new: str


def _copy(_: TaskId, task: _Copy) -> None:
    try:
        data = task.storage.read(task.old)
    except Missing:  # an earlier attempt was here, or a clean
        return
    task.storage.put(task.new, data)


def _delete(_: TaskId, task: _Copy) -> None:
    task.storage.delete(task.old)
