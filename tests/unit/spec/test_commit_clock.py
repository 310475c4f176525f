"""The clock that writes are ordered by: requests in version 6, completions since version 8."""

import pytest

from hoodie.spec import COMMIT, COMPLETION_CLOCK, REQUEST_CLOCK, V6, V8, V9, Instant, State


def write(requested, completed=None):
    return Instant(requested, COMMIT, State.COMPLETED if completed else State.INFLIGHT, completed)


EARLY_AND_LONG = write("10", "40")
LATE_AND_SHORT = write("20", "30")
PENDING = write("15")


def test_each_version_has_its_clock() -> None:
    assert (V6.clock, V8.clock, V9.clock) == (REQUEST_CLOCK, COMPLETION_CLOCK, COMPLETION_CLOCK)


def test_requests_order_writes_by_when_they_began() -> None:
    assert REQUEST_CLOCK.of(EARLY_AND_LONG) == "10"
    assert sorted([LATE_AND_SHORT, PENDING, EARLY_AND_LONG], key=REQUEST_CLOCK.order) == [
        EARLY_AND_LONG,
        PENDING,
        LATE_AND_SHORT,
    ]
    assert REQUEST_CLOCK.is_after(LATE_AND_SHORT, EARLY_AND_LONG)
    assert not REQUEST_CLOCK.is_after(PENDING, LATE_AND_SHORT)


def test_completions_order_writes_by_when_they_ended_and_pending_ones_last() -> None:
    assert COMPLETION_CLOCK.of(EARLY_AND_LONG) == "40"
    assert sorted([EARLY_AND_LONG, PENDING, LATE_AND_SHORT], key=COMPLETION_CLOCK.order) == [
        LATE_AND_SHORT,
        EARLY_AND_LONG,
        PENDING,
    ]
    assert COMPLETION_CLOCK.is_after(EARLY_AND_LONG, LATE_AND_SHORT)
    assert COMPLETION_CLOCK.is_after(PENDING, EARLY_AND_LONG)


def test_a_completion_nobody_knows_counts_as_the_request() -> None:
    archived = Instant("25", COMMIT, State.COMPLETED)
    assert COMPLETION_CLOCK.of(archived) == "25"
    assert COMPLETION_CLOCK.is_after(LATE_AND_SHORT, Instant("25", COMMIT, State.COMPLETED))


@pytest.mark.parametrize(("clock", "hollow"), [(REQUEST_CLOCK, True), (COMPLETION_CLOCK, False)])
def test_only_requests_let_a_write_appear_behind_one_that_was_read(clock, hollow) -> None:
    assert clock.has_hollow_commits is hollow
