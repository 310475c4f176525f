"""A writer that stalls until its exclusion is over, and wakes when another one has taken the table: at every call.

Leases pass while their holder sleeps, and nothing stops its next request. So here exclusion excludes nobody: the first
writer is stopped at a call, the second one runs (whole, or up to a call of its own), the first one goes on. What both
were answered must then be true, and stay true after the next write.

`HOODIE_STALLS=all` stops at every call; else at a sample, and at every call around the commit. Log files of version 6,
which a rollback leaves where they are, are tried at every call.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

import hoodie.engine
from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import HudiError
from hoodie.locks.lock_provider import EndsWithProcess, Held
from hoodie.locks.waiting import Patience
from hoodie.services.ingest import Request
from hoodie.services.save import write_table
from hoodie.storage import Storage
from hoodie.table import as_source
from hoodie.testing.counting_storage import Call, CountingStorage
from hoodie.testing.lake import Awake, Lake, logged_lake, row, table_of

pytestmark = pytest.mark.deep

BEFORE = {"a": "a", "b": "a", "c": "a"}
FIRST = {"a": "first", "f": "first"}
SECOND = {"b": "second", "s": "second"}
ALL = os.environ.get("HOODIE_STALLS") == "all"
STEP = 1 if ALL else 6
KINDS = [(6, Lake), (8, Lake), (9, Lake), (6, logged_lake), (8, logged_lake), (9, logged_lake)]
IDS = [f"{'cow' if made is Lake else 'mor'}{version}" for version, made in KINDS]


class Unlocked(CountingStorage):
    """A storage on which leases are over as soon as they are taken."""

    @contextmanager
    def locked(self, what: str, scope: str, patience: Patience) -> Iterator[Held]:
        del what, scope, patience
        with self.counted("exclusive", ""):
            pass
        yield EndsWithProcess()  # which never says that it is lost


def lake_of(kind: tuple[int, Any]) -> Lake:
    version, made = kind
    lake: Lake = made(version, options={}) if made is Lake else made(version)
    lake.upsert(row("a"), row("b"), row("c", part="q"))
    return lake


def upsert(lake: Lake, storage: Storage, values: dict[str, str]) -> str:
    """Writes; the name of the answer: `done`, or that of the error."""
    rows = table_of([row(key, value, 2) for key, value in values.items()])
    try:
        # Another process counts its stages anew.
        with mock.patch.object(hoodie.engine, "_stages", itertools.count(1)):
            write_table(storage, Request("upsert", as_source(rows), resolve(lake.options), LocalEngine(1)), Awake())
    except HudiError as error:
        return type(error).__name__
    return "done"


def calls_of(kind: tuple[int, Any]) -> list[Call]:
    lake = lake_of(kind)
    counted = Unlocked(lake.storage)
    assert upsert(lake, counted, FIRST) == "done"
    assert lake.values() == {**BEFORE, **FIRST}
    return counted.calls


def stalls(calls: list[Call]) -> list[int]:
    commit = max(call.n for call in calls if call.op == "create" and is_commit(call.path))
    sampled = range(1, len(calls) + 1, 1 if ALL else 12)
    return sorted({*sampled, *range(commit - 3, commit + 4)} & {call.n for call in calls})


def is_commit(path: str) -> bool:
    return path.endswith(("commit",)) and "metadata" not in path


def ensure_true(lake: Lake, answers: dict[str, str], where: str) -> None:
    """Nothing, when the answers fit the rows, now and after the next write."""
    lake.upsert(row("z", "next", part="z"))
    found = lake.values()
    for values, answer in ((FIRST, answers["first"]), (SECOND, answers["second"])):
        there = {key for key, value in values.items() if found.get(key) == value}
        if answer == "done":
            assert there == set(values), f"{where}: acknowledged and lost"
        elif answer == "CommitUnknown":
            assert there in (set(), set(values)), f"{where}: half of a write"
        else:
            assert not there, f"{where}: refused ({answer}) and there"
    assert {key: found.get(key) for key in ("c", "z")} == {"c": "a", "z": "next"}, where
    assert not lake.table.timeline().pending(), where
    assert lake.table.validate() == [], where
    orphans = [path for path in lake.files() if path.startswith(".hoodie/.temp/")]
    assert orphans == [], where


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_writer_that_wakes_after_another_took_over_tells_the_truth(kind: tuple[int, Any]) -> None:
    answers = set()
    for n in stalls(calls_of(kind)):
        lake = lake_of(kind)
        told: dict[str, str] = {}

        def take_over(call: Call, lake: Lake = lake, told: dict[str, str] = told, n: int = n) -> None:
            if call.n == n:
                told["second"] = upsert(lake, Unlocked(lake.storage), SECOND)

        storage = Unlocked(lake.storage, on_call=take_over)
        told["first"] = upsert(lake, storage, FIRST)
        answers.add(told["first"])
        where = f"call {n}: {storage.calls[n - 1].op} {storage.calls[n - 1].path}: {told}"
        assert told["second"] == "done", where
        assert told["first"] in ("done", "Conflict", "Fenced", "CommitUnknown"), where
        ensure_true(lake, told, where)
    assert "done" in answers
    assert "Fenced" in answers


class Stop:
    """Stops a storage at one call until it is told to go on."""

    def __init__(self, is_there: Callable[[Call], bool]) -> None:
        self._is_there = is_there
        self.reached, self.may_go = threading.Event(), threading.Event()

    def __call__(self, call: Call) -> None:
        if not self.reached.is_set() and self._is_there(call):
            self.reached.set()
            assert self.may_go.wait(60)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_writer_that_completes_while_another_takes_over_tells_the_truth(kind: tuple[int, Any]) -> None:
    """The first writer stands right before its completed instant; the second one stops at a call of its own, the first
    one goes on to its end, then the second.
    """
    step = 1 if kind == (6, logged_lake) else STEP
    seen, n, is_over = set(), 1 - step, False
    with ThreadPoolExecutor(2) as pool:
        while not is_over:
            n += step
            lake = lake_of(kind)
            at_commit = Stop(lambda call: call.op == "create" and is_commit(call.path))
            at_n = Stop(lambda call, n=n: call.n == n)  # type: ignore[misc]
            first = pool.submit(upsert, lake, Unlocked(lake.storage, on_call=at_commit), FIRST)
            assert at_commit.reached.wait(60)
            storage = Unlocked(lake.storage, on_call=at_n)
            second = pool.submit(upsert, lake, storage, SECOND)
            while not (at_n.reached.wait(0.001) or second.done()):
                pass
            is_over = not at_n.reached.is_set()
            at_commit.may_go.set()
            told = {"first": first.result(60)}
            at_n.may_go.set()
            told["second"] = second.result(60)
            where = f"call {n}: {storage.calls[min(n, storage.count) - 1]}: {told}"
            assert set(told.values()) <= {"done", "Conflict", "Fenced", "CommitUnknown", "Unavailable"}, where
            ensure_true(lake, told, where)
            seen.add(told["first"])
    assert {"done", "CommitUnknown"} <= seen
