"""Which moves of others go with an optimistic write: a table of cases, and what is read for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie.spec import Instant, State, WriteStat, profile_for
from hoodie.testing.hand_table import at
from hoodie.timeline import Timeline
from hoodie.transaction.moves import Mine, Move
from hoodie.transaction.overlaps import conflict_of, lost_ground

OWN = Instant(at(9), "commit", State.INFLIGHT)
DONE = Instant(at(3), "commit", State.COMPLETED, at(5))
PLAN = Instant(at(4), "compaction", State.REQUESTED)
CLUSTERING = Instant(at(4), "clustering", State.REQUESTED)
F, G, H = ("p", "00000001-f"), ("p", "00000001-g"), ("q", "00000001-f")
LOGS = Mine(frozenset({F}), only_logs=True, finds_slice_by_completion=True)
BASES = replace(LOGS, only_logs=False)
LOGS_6 = replace(LOGS, finds_slice_by_completion=False)


@pytest.mark.parametrize(
    ("mine", "other", "by_bucket", "both"),
    [
        (BASES, Move(DONE, frozenset({F}), "UPSERT"), False, {F}),
        (LOGS, Move(DONE, frozenset({F, G}), "UPSERT"), False, {F}),
        (BASES, Move(DONE, frozenset({G, H}), "UPSERT"), False, set()),
        (BASES, Move(DONE, frozenset({G}), "UPSERT"), True, {F}),
        (BASES, Move(DONE, frozenset({H}), "UPSERT"), True, set()),
        (BASES, Move(PLAN, frozenset({F})), False, {F}),
        (LOGS, Move(PLAN, frozenset({F})), False, set()),
        (LOGS_6, Move(PLAN, frozenset({F})), False, {F}),
        (LOGS, Move(DONE, frozenset({F}), "COMPACT"), False, set()),
        (LOGS_6, Move(DONE, frozenset({F}), "COMPACT"), False, {F}),
        (LOGS, Move(CLUSTERING, frozenset({F})), False, {F}),
        (LOGS, Move(DONE, frozenset({F}), "CLUSTER"), False, {F}),
    ],
)
def test_what_both_changed_stands_against_them(mine: Mine, other: Move, by_bucket: bool, both: set[object]) -> None:
    assert conflict_of(mine, other, by_bucket=by_bucket) == both


RUNNING = Instant(at(2), "commit", State.INFLIGHT)
LATER = Instant(at(7), "commit", State.COMPLETED, at(8))


@pytest.mark.parametrize(
    ("before", "now", "gone"),
    [
        ([DONE], [DONE, OWN], None),
        ([DONE], [OWN], None),  # archived: it lies before the timeline's start
        ([RUNNING, DONE], [RUNNING, OWN], DONE),  # undone
        ([RUNNING, DONE], [DONE, OWN], RUNNING),  # archived, so it had completed
        ([DONE, RUNNING], [replace(DONE, requested=at(1)), DONE, OWN], None),  # rolled back: its files are gone
        ([PLAN], [replace(PLAN, action="commit", state=State.COMPLETED, completed=at(6)), OWN], None),
        ([OWN, DONE], [DONE], None),
        ([DONE, LATER], [DONE, OWN], LATER),
    ],
)
def test_what_a_write_stood_on_must_still_be_there(
    before: list[Instant], now: list[Instant], gone: Instant | None
) -> None:
    profile = profile_for(9)
    assert lost_ground(Timeline(profile, tuple(sorted(before))), Timeline(profile, tuple(sorted(now))), OWN) == gone


MIXES = Mine(frozenset({F}), only_logs=True, finds_slice_by_completion=True, only_log_files=True, operation="UPSERT")
LOG = WriteStat("00000001-f", "p/.00000001-f_1.log.1_0-0-0", partition_path="p", log_version=1)
BASE = WriteStat("00000001-f", "p/00000001-f_0-0-0_1.parquet", partition_path="p")


@pytest.mark.parametrize(
    ("mine", "operation", "stats", "mixes"),
    [
        (MIXES, "UPSERT", (LOG,), True),
        (MIXES, "INSERT", (LOG, LOG), True),
        (MIXES, "UPSERT", (LOG, BASE), False),
        (MIXES, "UPSERT", (), False),
        (MIXES, "DELETE", (LOG,), False),
        (MIXES, "DELETE_PREPPED", (LOG,), False),
        (replace(MIXES, operation="DELETE"), "UPSERT", (LOG,), False),
        (MIXES, "LOG_COMPACT", (LOG,), False),
        (LOGS, "UPSERT", (LOG,), False),  # it has begun a file group with a base file
    ],
)
def test_log_files_mix_where_ordering_values_decide(
    mine: Mine, operation: str, stats: tuple[WriteStat, ...], mixes: bool
) -> None:
    assert mine.mixes_with(Move(DONE, frozenset({F}), operation, stats=stats)) == mixes
