"""Round trips one after the other: counted by what waits for what, not by a clock."""

from __future__ import annotations

import pytest

from hoodie.engine import LocalEngine, TaskId, side_by_side
from hoodie.errors import Missing
from hoodie.storage import MemoryStorage
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.fault_proxy import FaultProxy, Request
from hoodie.testing.round_trips import counted_depth


def three_reads(_: TaskId, storage: CountingStorage) -> None:
    for _ in range(3):
        storage.read("a")


@pytest.fixture
def storage() -> CountingStorage:
    inner = MemoryStorage("round-trips")
    inner.put("a", b"1")
    return CountingStorage(inner)


@pytest.mark.parametrize(("threads", "expected"), [(1, 12), (2, 6), (3, 6), (4, 3), (9, 3)])
def test_tasks_take_turns_on_the_threads_there_are(storage: CountingStorage, threads: int, expected: int) -> None:
    with counted_depth(storage) as depth:
        LocalEngine(threads).run(three_reads, [storage] * 4, "read")
    assert (depth.now, storage.count) == (expected, 12)


def test_tasks_within_tasks_begin_where_these_are(storage: CountingStorage) -> None:
    def within() -> None:
        storage.read("a")
        side_by_side(*[lambda: storage.read("a")] * 3)

    with counted_depth(storage) as depth:
        side_by_side(within, lambda: storage.read("a"))
    assert depth.now == 2


def test_a_written_file_is_one_round_trip(storage: CountingStorage) -> None:
    with counted_depth(storage) as depth, storage.open_output("b") as file:
        file.write(b"x")
        file.write(b"y")
    assert depth.now == 1


def test_calls_at_once_give_their_answers_in_order_and_the_first_error(storage: CountingStorage) -> None:
    assert side_by_side(lambda: 1, lambda: "b") == (1, "b")
    with pytest.raises(Missing):
        side_by_side(lambda: storage.read("nothing"), lambda: 1 // 0)


def test_of_requests_that_a_proxy_saw_the_longest_chain_is_counted_in_which_each_follows_an_ended_one() -> None:
    proxy = FaultProxy("http://127.0.0.1:1")
    times = [(0.0, 1.0), (0.5, 5.0), (1.0, 2.0), (1.5, 2.5), (2.5, 3.0), (6.0, float("inf"))]
    proxy.requests = [Request(at, "GET", "/", False, began, ended) for at, (began, ended) in enumerate(times)]
    assert proxy.one_after_the_other == 4
    proxy.begin(None)
    assert proxy.one_after_the_other == 0
