"""A writer on an object store whose lease passes while the request that completes its write is under way: another one
takes over, rolls it back and commits; then the request arrives. What was completed too late goes again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from hoodie.errors import Fenced, HudiError
from hoodie.storage import object as object_module
from hoodie.storage.lease import HeldLease
from hoodie.table import Table, as_source, write
from hoodie.testing.lake import _OPTIONS, Awake, row, table_of

pytestmark = pytest.mark.deep

PATH = "s3://bucket/late"
LOCK = ".hoodie/.locks/table_lock.json"
COMPLETED = ("commit", "deltacommit", "replacecommit")
KINDS = [(version, kind) for version in (6, 8, 9) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]


class Store:
    """A store in memory whose requests can be held back; `lose` takes the lease of everyone who has one."""

    def __init__(self) -> None:
        self.memory = MemoryStore()
        self.before_put: Callable[[str], None] = lambda path: None
        self.leases: list[HeldLease] = []

    def lose(self) -> None:
        for lease in self.leases:
            lease.version = None
        obstore.delete(self.memory, LOCK)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    made = Store()
    put, take = obstore.put, HeldLease.take

    def held_back(store: MemoryStore, path: str, *given: Any, **named: Any) -> Any:
        made.before_put(path)
        return put(store, path, *given, **named)

    def taken(lease: HeldLease, what: str) -> None:
        take(lease, what)
        made.leases.append(lease)

    monkeypatch.setattr(object_module, "open_store", lambda location, options: made.memory)
    monkeypatch.setattr(obstore, "put", held_back)
    monkeypatch.setattr(HeldLease, "take", taken)
    return made


def options_of(version: int, kind: str, **more: str) -> dict[str, Any]:
    known = {key: value for key, value in _OPTIONS.items() if value is not None}
    return {
        **known,
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.metadata.enable": "true",
        "hoodie.compact.inline": "false",
        **more,
    }


def written(options: dict[str, Any], value: str, *keys: str, operation: str = "upsert") -> None:
    rows = as_source(table_of([row(key, value, 2) for key in keys]))
    write(rows, PATH, {**options, "hoodie.datasource.write.operation": operation}, "append", env=Awake())


def ensure_rows(options: dict[str, Any], wanted: dict[str, str]) -> None:
    table = Table.open(PATH, options=options, env=Awake())
    found = table.scan(columns=["id", "v"]).read_all().to_pylist()
    assert {one["id"]: one["v"] for one in found} == wanted
    assert table.validate() == []
    assert not table.timeline().pending()


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize("where", ["table", "metadata table"])
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_a_commit_that_arrives_after_another_took_over_goes_again(
    store: Store, version: int, kind: str, where: str, operation: str
) -> None:
    options = options_of(version, kind)
    written(options, "a", "a", "b")

    def take_over(path: str) -> None:
        in_metadata = "/metadata/" in path
        if path.startswith(".hoodie/") and path.endswith(COMPLETED) and in_metadata == (where == "metadata table"):
            store.before_put = lambda path: None
            store.lose()
            written(options, "second", "b", "s")

    store.before_put = take_over
    with pytest.raises(Fenced):
        written(options, "first", "a", "f", operation=operation)
    ensure_rows(options, {"a": "a", "b": "second", "s": "second"})
    written(options, "next", "z")
    ensure_rows(options, {"a": "a", "b": "second", "s": "second", "z": "next"})


@pytest.mark.parametrize("stops", ["before its commit", "until the other one deletes"])
def test_a_write_that_fails_after_its_lease_is_lost_takes_nothing_from_the_holder(
    store: Store, monkeypatch: pytest.MonkeyPatch, stops: str
) -> None:
    options = options_of(9, "COPY_ON_WRITE", **{"hoodie.clean.failed.writes.policy": "LAZY"})
    written(options, "a", "a", "b")
    arrived, may_go = threading.Event(), threading.Event()
    answers: list[str] = []

    def second() -> None:
        try:
            written(options, "second", "b", "s")
            answers.append("done")
        except HudiError as error:
            answers.append(repr(error))
        finally:
            arrived.set()

    other = threading.Thread(target=second)

    def stop_second(path: str) -> None:
        if "/metadata/" in path and path.endswith(".deltacommit"):
            store.before_put = lambda path: None
            arrived.set()
            may_go.wait(30)

    def fail_first(path: str) -> None:
        if path.startswith(".hoodie/metadata/") and path.endswith(".deltacommit.inflight"):
            store.before_put = stop_second
            store.lose()
            other.start()
            arrived.wait(30)
            raise RuntimeError("the store of the first writer fails")

    delete = obstore.delete

    def let_second_go(store: MemoryStore, names: Any) -> None:
        is_first = threading.current_thread() is not other and arrived.is_set()
        if stops == "until the other one deletes" and is_first and "/metadata/" in str(names) and not may_go.is_set():
            may_go.set()
            other.join(30)
        delete(store, names)

    monkeypatch.setattr(obstore, "delete", let_second_go)
    store.before_put = fail_first
    with pytest.raises(RuntimeError, match="first writer"):
        written(options, "first", "a", "f")
    may_go.set()
    other.join(30)
    assert answers == ["done"]
    ensure_rows(options, {"a": "a", "b": "second", "s": "second"})
