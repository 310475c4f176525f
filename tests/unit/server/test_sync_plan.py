"""Two looks at a timeline tell what has to be read; where they do not, everything is loaded anew."""

from __future__ import annotations

import pytest

from hoodie.server.sync_plan import Rebuild, Sync, plan_sync
from hoodie.spec import V6, V9, FormatProfile, Instant, State
from hoodie.timeline import Timeline


def time(number: int) -> str:
    return f"202601010000{number:02d}000"


def done(number: int, action: str = "commit", completed: int | None = None) -> Instant:
    return Instant(time(number), action, State.COMPLETED, time(completed or number + 1))


def pending(number: int, action: str = "commit", state: State = State.INFLIGHT) -> Instant:
    return Instant(time(number), action, state)


def line(*instants: Instant, profile: FormatProfile = V9) -> Timeline:
    return Timeline(profile, tuple(sorted(instants)))


def read(*instants: Instant) -> Sync:
    return Sync(instants, frozenset())


SYNCED = {
    "nothing new": (line(done(1)), line(done(1)), read()),
    "a commit": (line(done(1)), line(done(1), done(3)), read(done(3))),
    "what was pending, however late": (
        line(pending(1), done(3)),
        line(done(1, completed=9), done(3)),
        read(done(1, completed=9)),
    ),
    "in the order of completion": (
        line(done(1)),
        line(done(1), done(3, completed=9), done(5, completed=7)),
        read(done(5, completed=7), done(3, completed=9)),
    ),
    "a compaction that goes on is nothing new": (
        line(done(1), pending(3, "compaction", State.REQUESTED)),
        line(done(1), pending(3, "compaction")),
        read(),
    ),
    "a compaction that ends is a commit": (
        line(done(1), pending(3, "compaction")),
        line(done(1), done(3)),
        read(done(3)),
    ),
    "a log compaction that stays pending": (
        line(done(1), pending(3, "logcompaction")),
        line(done(1), pending(3, "logcompaction"), done(5)),
        read(done(5)),
    ),
    "a pending write that is gone": (
        line(done(1), pending(3)),
        line(done(1), done(5, "rollback")),
        read(done(5, "rollback")),
    ),
    "a commit that is gone was rolled back": (
        line(done(1), done(3)),
        line(done(1), done(5, "rollback")),
        Sync((done(5, "rollback"),), frozenset({time(3)})),
    ),
    "the oldest are archived": (line(done(1), done(3), done(5)), line(done(5), done(7)), read(done(7))),
    "the oldest are archived around a saved one": (
        line(done(1), done(1, "savepoint"), done(3), done(5)),
        line(done(1), done(1, "savepoint"), done(5), done(7)),
        read(done(7)),
    ),
    "the first clean": (line(done(1)), line(done(1), done(2, "clean")), read(done(2, "clean"))),
    "what was taken back and is done anew": (
        line(done(1), done(3, completed=4)),
        line(done(1), done(3, completed=9), done(5, "rollback")),
        Sync((done(5, "rollback"), done(3, completed=9)), frozenset(), frozenset({time(3)})),
    ),
    "a savepoint is made anew": (
        line(done(1), done(1, "savepoint", 2)),
        line(done(1), done(1, "savepoint", 7)),
        read(),
    ),
    "a savepoint comes and goes": (line(done(1), done(1, "savepoint")), line(done(1)), read()),
}


@pytest.mark.parametrize("case", SYNCED)
def test_new_instants_are_read(case: str) -> None:
    old, new, expected = SYNCED[case]
    assert plan_sync(old, new) == expected


REBUILT = {
    "a restore": (line(done(1)), line(done(1), done(3, "restore")), "restore"),
    "an action of the future": (line(done(1)), line(done(1), done(3, "vacuum")), "vacuum"),
    "nothing that was known is left": (line(done(1), done(3)), line(done(7), done(9)), "archived"),
    "a running write was archived": (line(pending(1), done(3)), line(done(3), done(5)), "running"),
    "a commit that is being rolled back": (
        line(done(1), done(3)),
        line(done(1), pending(3), pending(5, "rollback")),
        "taken back",
    ),
    "a compaction that is being restored": (
        line(done(1), done(3)),
        line(done(1), pending(3, "compaction"), pending(5, "restore")),
        "taken back",
    ),
    "writes may have come and gone behind a saved one": (
        line(done(1)),
        line(done(1), done(1, "savepoint"), done(9), done(11)),
        "archived",
    ),
    "also when its savepoint is gone": (
        line(done(1), done(1, "savepoint")),
        line(done(1), done(9), done(11)),
        "archived",
    ),
    "writes may have come and gone since the table was empty": (line(), line(done(9), done(11)), "archived"),
    "cleans may have come and gone since there was none": (
        line(done(1)),
        line(done(1), done(8, "clean"), done(10, "clean")),
        "archived",
    ),
    "rollbacks may have come and gone though no write was archived": (
        line(done(1), done(2, "rollback")),
        line(done(1), done(8, "rollback"), done(10, "rollback")),
        "archived",
    ),
    "a clean that is done anew": (
        line(done(1), done(2, "clean")),
        line(done(1), done(2, "clean", 9)),
        "clean 20260101000002000 was taken back and done anew",
    ),
    "a write that is done anew where log files do not say who wrote them": (
        line(done(1), done(3), profile=V6),
        line(done(1), done(3, completed=9), profile=V6),
        "done anew",
    ),
    "a clean that was running is gone": (line(done(1), pending(2, "clean")), line(done(1)), "running"),
    "cleans may have come and gone": (
        line(done(1), done(2, "clean"), done(5)),
        line(done(5), done(7), done(8, "clean")),
        "archived",
    ),
    "the first clean that is seen may not be the first": (
        line(done(1), done(5)),
        line(done(5), done(7), done(8, "clean")),
        "archived",
    ),
}


@pytest.mark.parametrize("case", REBUILT)
def test_what_cannot_be_told_is_loaded_anew_with_the_reason(case: str) -> None:
    old, new, reason = REBUILT[case]
    plan = plan_sync(old, new)
    assert isinstance(plan, Rebuild)
    assert reason in plan.reason
