"""The checker of histories: it takes those that have an order, and no others."""

from __future__ import annotations

import random
from itertools import permutations
from math import inf

import pytest

from hoodie.testing.registers import Act, acts_of, is_serial


def wrote(value: str | None, begin: float, end: float = inf) -> Act:
    return Act(begin, end, value)


def saw(value: str | None, begin: float, end: float) -> Act:
    return Act(begin, end, value, is_read=True)


@pytest.mark.parametrize(
    ("acts", "is_right"),
    [
        ([], True),
        ([saw(None, 0, 1)], True),
        ([wrote("a", 0, 1), saw("a", 2, 3)], True),
        ([wrote("a", 0, 1), saw(None, 2, 3)], False),  # lost
        ([wrote("a", 0, 1), wrote("b", 2, 3), saw("a", 4, 5)], False),  # an update is lost
        ([wrote("a", 0, 9), wrote("b", 1, 8), saw("b", 10, 11)], True),  # at the same time: any order
        ([wrote("a", 0, 9), wrote("b", 1, 8), saw("b", 10, 11), saw("a", 12, 13)], False),  # it turned round
        ([wrote("a", 0, 9), saw("a", 1, 2), saw(None, 3, 4)], False),  # seen, then not
        ([wrote("a", 0, 9), saw(None, 1, 2), saw("a", 3, 4)], True),
        ([saw("a", 0, 1), wrote("a", 2, 3)], False),  # seen too early
        ([wrote("a", 0), saw(None, 5, 6), saw("a", 7, 8)], True),  # no answer: it came late
        ([wrote("a", 0), saw(None, 5, 6)], True),  # or never
        ([wrote("a", 0), saw("a", 1, 2), wrote("b", 3, 4), saw("a", 5, 6)], False),  # but not twice
        ([wrote("a", 0, 1), wrote(None, 2), saw("a", 3, 4), saw(None, 5, 6)], True),
        ([wrote("a", 0, 1), wrote(None, 2, 3), saw("a", 4, 5)], False),  # a removed row came back
        ([wrote("a", 0, 1), saw("a and b", 2, 3)], False),  # there twice
    ],
)
def test_a_history_is_right_or_not(acts: list[Act], is_right: bool) -> None:
    assert is_serial(acts) == is_right
    assert is_serial(reversed(acts)) == is_right


def by_every_order(acts: list[Act]) -> bool:
    """The same by trying all orders, of all subsets of what may not have happened."""
    certain = [act for act in acts if act.is_certain]
    open_ = [act for act in acts if not act.is_certain]
    for chosen in range(1 << len(open_)):
        some = [*certain, *(act for place, act in enumerate(open_) if chosen >> place & 1)]
        if any(explains(order) for order in permutations(some)):
            return True
    return False


def explains(order: tuple[Act, ...]) -> bool:
    value, latest = None, -inf
    for act in order:
        if act.end < latest:
            return False
        latest = max(latest, act.begin)
        if act.is_read and act.value != value:
            return False
        value = act.value
    return True


def test_it_says_what_trying_every_order_says() -> None:
    chance = random.Random(20261125)
    answers = [0, 0]
    for _ in range(400):
        acts = []
        for number in range(chance.randint(2, 6)):
            begin = chance.randrange(20)
            end = begin + chance.randrange(1, 9)
            if chance.random() < 0.5:
                acts.append(saw(chance.choice([None, "v0", "v1", "v2"]), begin, end))
            else:
                acts.append(wrote(chance.choice([None, f"v{number}"]), begin, chance.choice([end, end, inf])))
        expected = by_every_order(acts)
        answers[expected] += 1
        assert is_serial(acts) == expected, acts
    assert min(answers) > 50


def test_journals_become_actions() -> None:
    full = dict.fromkeys(("g-0-0", "g-0-1", "g-0-2"), "x")
    notes = [
        {"what": "begin", "group": 0, "text": "x", "at": 1.0},
        {"what": "end", "how": "done", "at": 2.0},
        {"what": "begin", "group": 0, "text": "y", "at": 3.0},
        {"what": "end", "how": "WriteConflict", "at": 4.0},
        {"what": "begin", "group": 1, "text": "z", "at": 5.0},
        {"what": "end", "how": "done", "at": 6.0},
        {"what": "begin", "group": 0, "text": None, "at": 7.0},
        {"what": "saw", "rows": full, "began": 8.0, "at": 9.0},
        {"what": "saw", "rows": {"g-0-0": "x"}, "began": 10.0, "at": 11.0},
    ]
    assert acts_of([notes], 0) == (
        wrote("x", 1.0, 2.0),
        wrote(None, 7.0),
        saw("x", 8.0, 9.0),
        saw("half: ['x']", 10.0, 11.0),
    )
