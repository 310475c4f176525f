"""What travels to a task of a write does not grow with the files of the table."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hoodie.engine import LocalEngine
from hoodie.testing.lake import Lake, row
from hoodie.write.file_task import FileTask

OPTIONS = {
    "hoodie.parquet.small.file.limit": "1",
    "hoodie.metadata.enable": "false",
    "hoodie.archive.automatic": "false",
}


def _sent(tasks: Sequence[Any]) -> list[bytes]:
    """Base files to be written, as another process gets them: what is open in this one stays here."""
    return [pickle.dumps(replace(task, kept=None)) for task in tasks if isinstance(task, FileTask)]


@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_a_task_of_a_large_table_is_as_small_as_one_of_a_small_table(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: dict[int, int] = {}
    run = LocalEngine.run
    for files in (2, 20):
        lake = Lake(options=OPTIONS)
        for number in range(files):
            lake.write("insert", [row(f"k{number}")])
        tasks: list[bytes] = []

        def heard(engine: LocalEngine, work: Callable[..., Any], given: Sequence[Any], label: str) -> list[Any]:
            tasks.extend(_sent(given))  # noqa: B023 - each table has its own
            return run(engine, work, given, label)

        with monkeypatch.context() as patch:
            patch.setattr(LocalEngine, "run", heard)
            lake.write(operation, [row("k0" if operation == "upsert" else "new", "new", ts=2)])
        assert tasks
        sizes[files] = max(map(len, tasks))
    assert sizes[20] <= sizes[2] + 50
