"""Deleting files of a table, spread over an engine. What is gone already is fine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hoodie.engine import Engine, TaskId
from hoodie.storage import Storage


def delete_files(storage: Storage, engine: Engine, paths: Iterable[str], label: str) -> None:
    """Deletes the files, one task for each; `label` names the step for people who wait."""
    engine.run(_delete, [_Delete(storage, path) for path in paths], label)


@dataclass(frozen=True, slots=True)
class _Delete:
    storage: Storage
    path: str


def _delete(_: TaskId, task: _Delete) -> None:
    task.storage.delete(task.path)
