"""How many round trips to the storage follow one another, as an object store would have it.

1. Every call is one round trip, but for opening a data file for writing and writing to it: a small one is sent when it
   is closed.
2. Tasks that `LocalEngine` runs side by side are run one after the other, each as if it began when a thread was free:
   the count depends on no clock and no scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import pytest

from hoodie.engine import LocalEngine, TaskId
from hoodie.testing.counting_storage import Call, CountingStorage

_NOT_SENT: Final = frozenset({"open_output", "write"})
_STAGES = count(1)


class Depth:
    """`now` round trips have been made, those that went side by side counted as one."""

    def __init__(self) -> None:
        self.now = 0

    def tick(self, call: Call) -> None:
        """One more call."""
        self.now += call.op not in _NOT_SENT

    def side_by_side(
        self, engine: LocalEngine, work: Callable[[TaskId, Any], Any], tasks: Sequence[Any], label: str
    ) -> list[Any]:
        """In place of `LocalEngine.run`."""
        del label
        stage, found = next(_STAGES), []
        threads = [self.now] * max(1, min(engine.parallelism, len(tasks)))
        for number, task in enumerate(tasks):
            free = threads.index(min(threads))
            self.now = threads[free]
            found.append(work(TaskId(number, stage, 0), task))
            threads[free] = self.now
        self.now = max(threads)
        return found


@contextmanager
def counted_depth(storage: CountingStorage) -> Iterator[Depth]:
    """Counts the round trips one after the other that are made inside the block."""
    depth = Depth()

    def run(engine: LocalEngine, work: Any, tasks: Sequence[Any], label: str) -> list[Any]:
        return depth.side_by_side(engine, work, tasks, label)

    with pytest.MonkeyPatch.context() as patch, storage.told(depth.tick):
        patch.setattr(LocalEngine, "run", run)
        yield depth
