"""Deleting files of a table, spread over an engine. What is gone already is fine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hoodie.engine import Engine, TaskId
from hoodie.storage import Storage

DELETING_THREADS: Final = 16
"""Threads of a `LocalEngine` that deletes: it waits for the storage most of the time."""

_MAX_FILES_PER_TASK: Final = 64


def delete_files(storage: Storage, engine: Engine, paths: Iterable[str], label: str) -> None:
    """Deletes the files, some in each task; `label` names the step for people who wait."""
    going = tuple(paths)
    portion = max(1, min(_MAX_FILES_PER_TASK, -(-len(going) // DELETING_THREADS)))
    engine.run(_delete, [_Delete(storage, going[at : at + portion]) for at in range(0, len(going), portion)], label)


@dataclass(frozen=True, slots=True)
class _Delete:
    storage: Storage
    paths: tuple[str, ...]


def _delete(_: TaskId, task: _Delete) -> None:
    for path in task.paths:
        task.storage.delete(path)
