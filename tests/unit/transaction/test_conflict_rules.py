"""Which moves of others a write bears: a table of cases for each rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie.errors import Conflict
from hoodie.spec import Instant, State, WriteStat, profile_for
from hoodie.state.handle import TableHandle
from hoodie.testing.hand_table import at
from hoodie.testing.lake import Lake, row
from hoodie.timeline import Timeline
from hoodie.transaction import ConflictRule, NobodyElse, Outcome, PendingCommit, PlanSetAside, StillPending

OWN = Instant(at(9), "commit", State.INFLIGHT)
OLD = Instant(at(1), "commit", State.COMPLETED, at(2))
RUNNING = Instant(at(3), "commit", State.INFLIGHT)
RAN = replace(RUNNING, state=State.COMPLETED, completed=at(5))
PLAN = Instant(at(4), "compaction", State.REQUESTED)
COMPACTED = replace(PLAN, action="commit", state=State.COMPLETED, completed=at(7))
BASE = WriteStat(file_id="f", path="p/f_0-0-0_1.parquet", prev_commit=at(1), partition_path="p")
NEW = BASE._replace(prev_commit="null")
LOG = BASE._replace(path=f"p/.f_{at(1)}.log.1_0-0-0", log_version=1)

LATER = Instant(at(6), "commit", State.REQUESTED)
CLEAN = Instant(at(6), "clean", State.COMPLETED, at(7))


@pytest.fixture(scope="module")
def handle() -> TableHandle:
    lake = Lake()
    lake.upsert(row("a"))
    return lake.handle()


def pending(
    handle: TableHandle, before: list[Instant], now: list[Instant], *stats: WriteStat, version: int = 9
) -> PendingCommit:
    profile = profile_for(version)
    planned_on, seen = Timeline(profile, tuple(before)), Timeline(profile, tuple(now))
    return PendingCommit(handle, OWN, Outcome("UPSERT", stats, {}), planned_on, seen)


@pytest.mark.parametrize(
    ("before", "now", "stats", "other"),
    [
        ([OLD], [OLD, OWN], (BASE,), None),
        ([OLD], [OLD, CLEAN, OWN], (BASE,), None),
        ([OLD], [OLD, LATER, OWN], (BASE,), LATER),
        ([OLD], [OLD, RAN, OWN], (NEW,), RAN),
        ([OLD, RUNNING], [OLD, RUNNING, OWN], (BASE,), None),
        ([OLD, RUNNING], [OLD, RAN, OWN], (BASE,), RAN),
        ([OLD, RUNNING], [OLD, OWN], (BASE,), None),
        ([OLD, PLAN], [OLD, PLAN, OWN], (BASE,), None),
        ([OLD, PLAN], [OLD, COMPACTED, OWN], (BASE,), None),
        ([OLD], [OLD, PLAN, OWN], (BASE,), PLAN),
        ([OLD], [OLD, PLAN, OWN], (LOG, NEW), None),
        ([OLD], [OLD, PLAN, OWN], (LOG, BASE), PLAN),
    ],
)
def test_nobody_else_may_move(
    handle: TableHandle, before: list[Instant], now: list[Instant], stats: tuple[WriteStat, ...], other: Instant | None
) -> None:
    attempt = pending(handle, before, now, *stats)
    if other is None:
        NobodyElse().check(attempt)
        return
    with pytest.raises(Conflict, match="appeared while") as told:
        NobodyElse().check(attempt)
    assert told.value.facts["instant"] == OWN.requested
    assert told.value.facts["other"] == other.requested


def test_where_log_files_find_their_slice_by_base_instant_a_plan_made_meanwhile_is_a_conflict(
    handle: TableHandle,
) -> None:
    with pytest.raises(Conflict):
        NobodyElse().check(pending(handle, [OLD], [OLD, PLAN, OWN], LOG, version=6))


def test_what_a_plan_set_aside_is_nobody_elses(handle: TableHandle) -> None:
    PlanSetAside().check(pending(handle, [OLD], [OLD, LATER, RAN, OWN], BASE))


def test_an_overwrite_bears_all_but_to_be_rolled_back(handle: TableHandle) -> None:
    StillPending().check(pending(handle, [], [OLD, LATER, RAN, OWN], BASE))
    with pytest.raises(Conflict, match="rolled .* back"):
        StillPending().check(pending(handle, [], [OLD, LATER], BASE))


@pytest.mark.parametrize("rule", [NobodyElse(), StillPending()], ids=lambda rule: type(rule).__name__)
def test_where_the_lock_was_held_all_along_the_rule_looks_for_itself(handle: TableHandle, rule: ConflictRule) -> None:
    attempt = replace(pending(handle, [], [], BASE), seen=None)
    assert attempt.timeline is attempt.planned_on
    with pytest.raises(Conflict):
        rule.check(attempt)  # the table has another write, and not this one
