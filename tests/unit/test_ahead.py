"""Work ahead of the caller: results in order, errors in their turn, few results at a time, no thread left behind."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from functools import partial
from itertools import count, islice

import pytest

from hoodie.ahead import MADE_AHEAD, all_made_ahead, done_ahead, made_ahead


def threads():
    return [one.name for one in threading.enumerate() if one.name.startswith("hoodie-ahead")]


def counting(made, end=None):
    """Numbers, each noted when it is made; an error at the end if there is one."""
    for number in count() if end is None else range(end):
        made.append(number)
        yield number
    raise ValueError("no more numbers")


def settled(made):
    """How many were made, when no more are."""
    before = -1
    while before != len(made):
        before = len(made)
        time.sleep(0.3)
    return before


def test_what_is_made_comes_in_order_then_its_error():
    seen = []
    with made_ahead(partial(counting, [], 50)) as numbers, pytest.raises(ValueError, match="no more numbers"):
        seen.extend(numbers)
    assert seen == list(range(50))
    assert not threads()


def test_only_a_few_are_made_ahead_and_none_after_the_block():
    made = []
    with made_ahead(partial(counting, made)) as numbers:
        assert list(islice(numbers, 3)) == [0, 1, 2]
        assert settled(made) == 3 + MADE_AHEAD + 1
    assert not threads()
    assert settled(made) == 3 + MADE_AHEAD + 1


def test_several_are_made_at_the_same_time_and_come_in_turn():
    both = threading.Barrier(2, timeout=30)

    def make(name):
        both.wait()
        yield from (f"{name}{number}" for number in range(20))

    with closing(all_made_ahead([partial(make, name) for name in "abcd"], 2)) as found:
        assert [list(one) for one in found] == [[f"{name}{number}" for number in range(20)] for name in "abcd"]
    assert not threads()


def test_those_that_nobody_asks_for_wait():
    made = [[] for _ in range(9)]
    with closing(all_made_ahead([partial(counting, one) for one in made], 2)) as found:
        assert next(next(found)) == 0
        for one in made:
            settled(one)
        assert [bool(one) for one in made] == [True, True] + [False] * 7
    assert not threads()


def test_work_is_done_by_several_threads_and_its_results_come_in_order():
    both = threading.Barrier(2, timeout=30)

    def work(number):
        both.wait()
        return number * number

    assert list(done_ahead(work, range(10), 2)) == [number * number for number in range(10)]
    assert not threads()


def test_items_are_taken_as_results_are_asked_for():
    taken = []
    with closing(done_ahead(str, counting(taken), 2)) as found:
        assert list(islice(found, 3)) == ["0", "1", "2"]
        assert len(taken) == 3 + 2
    assert not threads()


def test_an_error_in_work_comes_in_its_turn_and_ends_it():
    seen = []
    with pytest.raises(ZeroDivisionError):
        seen.extend(done_ahead(lambda number: 6 // (3 - number), range(100), 2))
    assert seen == [2, 3, 6]
    assert not threads()
