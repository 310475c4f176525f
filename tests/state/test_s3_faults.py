"""Requests to S3 that fail as stores and networks do, at every request of write, compaction and clean.

1. The faults of `hoodie.testing.fault_proxy`, at request k of an action: once, or at it and its next two repeats. Such
   a fault is survived: the action succeeds. One that stays until the action has ended, a wrong clock among them, ends
   in success or in a `HudiError`. With faults by chance, both may be.
2. Then readers see the table before or after the action (after, if it succeeded); the lease is free within seconds,
   for other processes, too; the same action again succeeds, rows are right, `validate` finds nothing.
3. `HOODIE_S3_FAULT_EVERY=k` tries every k-th point (k = 1: all); `make test-deep` takes a sample, `make crash` more.
   The counts are printed at the end.
"""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import pytest

from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.errors import HudiError, Missing, Unavailable
from hoodie.locks import held_lock
from hoodie.state.handle import load_handle
from hoodie.storage import MemoryStorage, Storage
from hoodie.storage.lease import LEASE_PATH, Lease, parse_lease
from hoodie.storage.object import ObjectStorage
from hoodie.storage.object_io import PART_BYTES
from hoodie.table import Table, as_source, write
from hoodie.testing.fault_proxy import Fault, FaultProxy, Plan, running_fault_proxy
from hoodie.testing.lake import row, table_of
from hoodie.testing.s3_server import S3Server, s3_server
from hoodie.testing.table_kind import COW, MOR, Kind

__all__ = ["s3_server"]

EVERY = int(os.environ.get("HOODIE_S3_FAULT_EVERY", "499"))
ENGINE = LocalEngine(1)
OPTIONS: dict[str, Any] = {
    "hoodie.table.name": "faults",
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.write.lock.wait_time_ms": "0",
}
LASTING = {"max_retries": "1", "retry_timeout": "1"}
LEASE_PATIENCE_SECONDS = 10.0
TRANSIENT = [fault for fault in Fault if fault.is_transient]
COUNTS: Counter[str] = Counter()
_names = itertools.count()

World = Mapping[str, bytes]
Rows = dict[str, Any]


class Quick(SystemEnv):
    """The real world, whose sleep is short: our own repeats do not wait for a store that is fine in a moment."""

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / 20)


@dataclass(frozen=True)
class Disturbed:
    """A server, the proxy in front of it, and a bucket."""

    server: S3Server
    proxy: FaultProxy
    bucket: str

    def storage(self, name: str, **client: str) -> ObjectStorage:
        """A folder of the bucket, through the proxy."""
        options = {**self.server.options, "aws_endpoint": self.proxy.endpoint, **client}
        return ObjectStorage(f"s3://{self.bucket}/{name}", options, Quick())


@pytest.fixture(scope="module")
def disturbed(s3_server: S3Server) -> Iterator[Disturbed]:
    with running_fault_proxy(s3_server.endpoint) as proxy:
        yield Disturbed(s3_server, proxy, s3_server.new_bucket())
    print(f"\nfaults of S3: {sum(COUNTS.values())} points: {dict(COUNTS)}")


# calls of the storage


def write_file(storage: Storage, path: str, data: bytes) -> None:
    with storage.open_output(path) as output:
        output.write(data[: len(data) // 2])
        output.write(data[len(data) // 2 :])
    assert storage.read(path) == data


def read_file(storage: Storage, path: str) -> bytes:
    with storage.open_input(path) as source:
        return bytes(source.read())


def locked(storage: Storage) -> bool:
    with held_lock(storage, "a test"):
        return True


SMALL, LARGE = bytes(range(256)) * 400, bytes(range(256)) * (PART_BYTES // 256 + 10)
CALLS: dict[str, tuple[Callable[[Storage], object], object]] = {
    "list_dir": (lambda storage: [info.path for info in storage.list_dir("d").files], ["d/a", "d/b"]),
    "list": (lambda storage: [info.path for info in storage.list("")], ["d/a", "d/b"]),
    "head": (lambda storage: storage.head("d/a").size_bytes, len(SMALL)),
    "read": (lambda storage: storage.read("d/a"), SMALL),
    "read_range": (lambda storage: storage.read_range("d/a", 5, 3), SMALL[5:8]),
    "create": (lambda storage: (storage.create("c", b"1"), storage.read("c"))[1], b"1"),
    "put": (lambda storage: (storage.put("d/a", b"2"), storage.read("d/a"))[1], b"2"),
    "delete": (lambda storage: storage.delete("d/a"), True),
    "delete_dir": (lambda storage: storage.delete_dir("d"), 2),
    "open_input": (lambda storage: read_file(storage, "d/b"), SMALL),
    "open_output": (lambda storage: write_file(storage, "new", SMALL), None),
    "open_output in parts": (lambda storage: write_file(storage, "new", LARGE), None),
    "exclusive": (locked, True),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_call_of_a_storage_survives_what_passes(name: str, disturbed: Disturbed) -> None:
    call, expected = CALLS[name]

    def disturb(plan: Plan | None) -> None:
        storage = disturbed.storage(f"calls{next(_names)}")
        disturbed.proxy.begin(None)
        storage.put("d/a", SMALL)
        storage.put("d/b", SMALL)
        disturbed.proxy.begin(plan)
        assert call(storage) == expected, plan

    disturb(None)
    requests = disturbed.proxy.requests
    for fault in TRANSIENT:
        every = 1 if EVERY == 1 or fault is Fault.CUT_BODY else 9
        for request in requests[crc32(f"{name}{fault}".encode()) % min(every, len(requests)) :: every]:
            if fault is not Fault.CUT_BODY or request.has_body:
                disturb(Plan(fault, request.number, times=3 if request.number % 2 else 1))
                COUNTS[f"calls, {fault}"] += 1


@pytest.mark.parametrize("name", CALLS)
def test_every_call_of_a_storage_names_a_wrong_clock(name: str, disturbed: Disturbed) -> None:
    storage = disturbed.storage(f"calls{next(_names)}", **LASTING)
    disturbed.proxy.begin(Plan(Fault.SKEWED_CLOCK, forever=True))
    with pytest.raises(Unavailable, match="clock differs"):
        CALLS[name][0](storage)
    disturbed.proxy.begin(None)


# actions of a table


def opened(storage: Storage, kind: Kind) -> Table:
    options = {key: str(value) for key, value in {**OPTIONS, **kind.options}.items() if "table.version" not in key}
    return Table(load_handle(storage, storage.env if isinstance(storage, ObjectStorage) else Quick()), options, ENGINE)


def upsert(table: Table) -> object:
    return table.upsert(table_of([row("k1", "up", 50, "p1"), row("new", "new", 1, "p2")]))


def clean(table: Table) -> object:
    return table.services.clean(**{"hoodie.clean.commits.retained": "1"})


ACTIONS: dict[str, Callable[[Table], object]] = {
    "upsert": upsert,
    "compact": lambda table: table.services.compact(),
    "clean": clean,
}
CASES = [("upsert", COW[2]), ("upsert", MOR[2]), ("compact", MOR[2]), ("clean", COW[2]), ("clean", MOR[2])]
OLDER = [("upsert", MOR[0]), ("compact", MOR[1]), ("clean", COW[0])]


@functools.cache
def prepared(action: str, kind: Kind) -> World:
    """A table with some history: base files, updates (in log files of a merge-on-read table), deletes."""
    storage = MemoryStorage(f"s3-faults-{next(_names)}", Quick())
    options = {key: str(value) for key, value in {**OPTIONS, **kind.options}.items()}
    first = table_of([row(f"k{n}", "0", 1, f"p{n % 2}") for n in range(6)])
    write(as_source(first), storage.uri, options, "append", engine=ENGINE, env=Quick())
    for number in range(1, 4):
        rows = table_of([row(f"k{n}", str(number), number + 1, f"p{n % 2}") for n in range(number % 3, 4)])
        opened(storage, kind).upsert(rows)
    opened(storage, kind).delete(table_of([row("k5", "", 99, "p1")]))
    if action == "clean" and kind in MOR:
        opened(storage, kind).services.compact()
    world = {info.path: storage.read(info.path) for info in storage.list("")}
    storage.forget()
    return world


def rows_of(storage: Storage) -> Rows:
    found = Table(load_handle(storage, Quick()), {}, ENGINE).scan(columns=["id", "v"]).read_all().to_pydict()
    assert len(found["id"]) == len(set(found["id"])), "a key occurs twice"
    return dict(zip(found["id"], found["v"], strict=True))


@dataclass(frozen=True)
class Trial:
    """An action on a table of its own in the bucket."""

    disturbed: Disturbed
    action: str
    kind: Kind

    def run(self, plan: Plan | None) -> int:
        """The number of requests of the action under the plan. All that is promised is asserted."""
        lasts = plan is not None and plan.forever
        storage = self.disturbed.storage(f"t{next(_names)}", **(LASTING if lasts else {}))
        direct = replace(storage, options={**storage.options, "aws_endpoint": self.disturbed.server.endpoint})
        for path, data in prepared(self.action, self.kind).items():
            direct.put(path, data)
        before, at = rows_of(direct), f"{self.action} {self.kind}: {plan}"
        error = self._act(storage, plan)
        requests = self.disturbed.proxy.requests
        names = [request.name for request in self.disturbed.proxy.struck][:1]
        self.disturbed.proxy.begin(None)
        after = {**before, "k1": "up", "new": "new"} if self.action == "upsert" else before
        assert error is None or lasts or (plan is not None and plan.rate), f"{at} {names}: {error}"
        assert rows_of(direct) in ([after] if error is None else [before, after]), f"{at} {names}: {error}"
        if plan is not None and plan.fault is Fault.SKEWED_CLOCK and error is not None:
            assert "clock" in str(error), at
        ensure_free(direct, f"{at} {names}")
        try:
            ACTIONS[self.action](opened(storage, self.kind))
        except HudiError as again:
            raise AssertionError(f"{at} {names}: {error}, then {again}") from again
        assert rows_of(direct) == after, at
        assert opened(direct, self.kind).validate() == [], at
        direct.delete_dir("")
        return len(requests)

    def _act(self, storage: Storage, plan: Plan | None) -> HudiError | None:
        self.disturbed.proxy.begin(plan)
        try:
            ACTIONS[self.action](opened(storage, self.kind))
        except HudiError as error:
            return error
        return None

    def points(self, requests: int) -> Iterator[Plan]:
        for fault in TRANSIENT:
            yield from (Plan(fault, k, times=3 if k % 2 else 1) for k in range(requests))
        for fault in (Fault.SKEWED_CLOCK, Fault.SLOW_DOWN, Fault.RESET, Fault.LOST_ANSWER):
            yield from (Plan(fault, k, forever=True) for k in range(requests))
        for fault in TRANSIENT:
            yield from (Plan(fault, times=3, rate=0.05, seed=seed) for seed in range(5))


def ensure_free(storage: Storage, at: str) -> None:
    """Other processes may take each lease, at the latest after some seconds."""
    deadline = time.monotonic() + LEASE_PATIENCE_SECONDS
    while held := [lease for lease in leases_of(storage) if lease.is_held(int(time.time() * 1000))]:
        assert time.monotonic() < deadline, f"{at}: {held} blocks others"
        time.sleep(0.1)


def leases_of(storage: Storage) -> Iterator[Lease]:
    for info in storage.list_dir(os.path.dirname(LEASE_PATH)).files:
        with suppress(Missing):
            yield parse_lease(storage.read(info.path), info.path)


@pytest.mark.parametrize(("action", "kind"), CASES + OLDER, ids=str)
def test_an_action_survives_what_passes_and_heals_after_what_lasts(
    action: str, kind: Kind, disturbed: Disturbed
) -> None:
    trial = Trial(disturbed, action, kind)
    points = list(trial.points(trial.run(None)))
    every = EVERY if kind.version == 9 else 4 * EVERY
    for plan in points[crc32(f"{action} {kind}".encode()) % every :: every]:
        trial.run(plan)
        COUNTS[f"{action}, {plan.fault}{', lasting' if plan.forever else ''}"] += 1
