"""Kill a process at every storage call of an action, and look at what is left.

`crash_points` runs the action once to count its calls. Then, for each call, it copies the prepared table, starts a
process that is killed (SIGKILL) right before that call, and hands the remains to a check. The last point is after the
last call. The action is a module-level function of a `Storage`, so any action of any package can be put through it.
"""

from __future__ import annotations

import multiprocessing
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hoodie.storage import Storage, open_storage
from hoodie.testing.counting_storage import Call, CountingStorage

Action = Callable[[Storage], object]

_PRELOAD = ["hoodie.table", "hoodie.testing.counting_storage"]
_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Remains:
    """What a kill left: the table's folder, and the call before which the process died (None: after the last one)."""

    path: Path
    call: Call | None


def count_calls(table: Path, action: Action, scratch: Path) -> list[Call]:
    """Storage calls `action` makes on a copy of `table`, in order."""
    copy = _copied(table, scratch / "counted")
    storage = CountingStorage(open_storage(str(copy)))
    action(storage)
    shutil.rmtree(copy)
    return list(storage.calls)


def crash_points(table: Path, action: Action, scratch: Path, *, every: int = 1) -> Iterator[Remains]:
    """The remains of a kill before each `every`-th storage call of `action` on a copy of `table`, and after the last.

    The copy is deleted when the iterator advances.

    Raises:
        AssertionError: the process did not die by the kill, so the action is not what was counted.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOAD)
    calls = count_calls(table, action, scratch)
    for call in [*calls[::every], None]:
        copy = _copied(table, scratch / "killed")
        kill_at, kill_after = (None, len(calls)) if call is None else (call.n, None)
        process = context.Process(target=_act, args=(str(copy), action, kill_at, kill_after))
        process.start()
        process.join(_LIMIT_S)
        assert process.exitcode == -signal.SIGKILL, f"{call} ended with {process.exitcode}, not by the kill"
        yield Remains(copy, call)
        shutil.rmtree(copy)


def _copied(table: Path, to: Path) -> Path:
    shutil.copytree(table, to, symlinks=True)
    return to


def _act(uri: str, action: Action, kill_at: int | None, kill_after: int | None) -> None:
    action(CountingStorage(open_storage(uri), kill_at=kill_at, kill_after=kill_after))
