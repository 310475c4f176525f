"""Actors that work on one table step by step, in an order that a test names: every order of two writers and a service.

1. An actor is a function that takes a `Gate` and passes it between its steps. It runs in a thread of its own, but only
   one actor runs at a time: the one whose step it is.
2. A writer has three steps: it begins (the table lock is taken and given back), writes (plans, makes files), commits.
3. What an actor raises is its outcome; who does not let others in holds the lock longer than a step, and cannot be one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import pyarrow as pa

from hoodie.config import resolve
from hoodie.engine import ArrowSource, LocalEngine
from hoodie.env import SystemEnv
from hoodie.locks import NO_WAIT
from hoodie.services.ingest import Request, write_and_look
from hoodie.state.handle import TableHandle
from hoodie.storage import Snapshot
from hoodie.testing.lake import Lake, Row, table_of
from hoodie.timeline import Timeline
from hoodie.transaction import Committed, TakenAtBothEnds
from hoodie.write import Operation

SEVERAL = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
WRITER_STEPS = 3

Actor = Callable[["Gate"], object]


@dataclass(slots=True)
class Gate:
    """Where an actor waits for its next step."""

    _go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _reached: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def step(self) -> None:
        """The actor's: ends a step, and waits for the next."""
        self._reached.release()
        self._go.acquire()

    def let(self) -> None:
        """The test's: lets the actor run to the end of a step."""
        self._go.release()
        self._reached.acquire()


def orders(steps: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Every order of the steps of so many actors, each of whose own come one after the other."""
    every = [name for name, count in steps.items() for _ in range(count)]
    return sorted(set(permutations(every)))


def run_in_order(order: Sequence[str], actors: Mapping[str, Actor]) -> dict[str, object]:
    """What each actor gave or raised, after the steps were made in this order."""
    gates = {name: Gate() for name in actors}
    ends: dict[str, object] = {}

    def run(name: str) -> None:
        gate = gates[name]
        gate._go.acquire()
        try:
            ends[name] = actors[name](gate)
        except Exception as error:
            ends[name] = error
        finally:
            ends.setdefault(name, None)
            gate._reached.release()
            while gate._go.acquire(timeout=0.2):  # steps that an early end has left over
                gate._reached.release()

    threads = [threading.Thread(target=run, args=(name,), daemon=True) for name in actors]
    for thread in threads:
        thread.start()
    for name in order:
        gates[name].let()
    for thread in threads:
        thread.join()
    return ends


def writer(lake: Lake, rows: Sequence[Row], operation: Operation = "upsert", **options: str) -> Actor:
    """An optimistic writer: it begins, writes, commits."""

    def write(gate: Gate) -> Committed:
        config = resolve({**lake.options, **SEVERAL, **options})
        request = Request(operation, ArrowSource(table_of(rows), LocalEngine(1)), config, LocalEngine(1))
        return write_and_look(_Stepped(lake, gate), request)[0]

    return write


@dataclass(slots=True)
class _Stepped:
    """A `Locking` with a gate between its blocks."""

    lake: Lake
    gate: Gate
    has_committed: bool = False

    @property
    def below(self) -> Snapshot | None:
        return None

    @property
    def lets_others_in(self) -> bool:
        return True

    @contextmanager
    def to_begin(self) -> Iterator[TableHandle]:
        with self._inner().to_begin() as handle:
            yield handle
        self.gate.step()

    def to_commit(self, handle: TableHandle) -> AbstractContextManager[tuple[TableHandle, Timeline | None]]:
        if not self.has_committed:
            self.has_committed = True
            self.gate.step()
        return self._inner().to_commit(handle)

    def _inner(self) -> TakenAtBothEnds:
        return TakenAtBothEnds(self.lake.storage, SystemEnv(), "a write", NO_WAIT)


def write_around(
    lake: Lake, operation: str, rows: pa.Table, between: Callable[[], object], options: Mapping[str, Any] | None = None
) -> Committed:
    """A write that has begun when `between` is done, and goes on after it."""
    calls: list[object] = []

    def batches() -> Iterator[pa.RecordBatch]:
        calls.append(between() if not calls else None)
        yield from rows.to_batches()

    return lake.write(operation, pa.RecordBatchReader.from_batches(rows.schema, batches()), options)
