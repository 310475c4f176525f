"""Which plans are pending stands in one place, for every kind of plan and version; each plan is read once."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hoodie.errors import Corrupt, Invalid
from hoodie.services.compaction.compact import COMPACTIONS
from hoodie.spec import (
    CLUSTERING,
    COMPACTION,
    DELTA_COMMIT,
    EMPTY_REPLACE,
    LOG_COMPACTION,
    PROFILES,
    REPLACE_COMMIT,
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CompactionOperation,
    CompactionPlan,
    FormatProfile,
    RequestedReplace,
    State,
    encode_compaction_plan,
    encode_requested_replace,
)
from hoodie.state.handle import timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.state.table_state import state_of
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.hand_logs import at
from hoodie.testing.hand_table import HandTable
from hoodie.timeline import Timeline

SOURCE = Path(__file__).parents[3] / "src" / "hoodie"
READERS = {"parse_compaction_plan", "parse_requested_replace", "load_replace_request", "is_clustering"}
MAY_READ = {
    "timeline": "what a step of an instant has to know of it",
    "state/pending_plans.py": "the one place",
    "services/rollback/rollback.py": "of the write that is rolled back, which may have been completed a moment before",
    "services/upgrading/timeline.py": "of all instants, completed ones as well: their files get other names",
}


@pytest.fixture(params=PROFILES.values(), ids=lambda profile: f"v{profile.table_version}")
def profile(request: pytest.FixtureRequest) -> FormatProfile:
    found: FormatProfile = request.param
    return found


def compaction_of(profile: FormatProfile, *file_ids: str) -> bytes:
    operations = tuple(CompactionOperation("p", file_id, at(1)) for file_id in file_ids)
    return encode_compaction_plan(CompactionPlan(operations), profile.avro_generation)


def clustering_of(profile: FormatProfile, *file_ids: str) -> bytes:
    group = ClusteringGroup(tuple(ClusteringSlice("p", file_id) for file_id in file_ids))
    return encode_requested_replace(RequestedReplace("CLUSTER", ClusteringPlan((group,))), profile.avro_generation)


@pytest.fixture
def table(profile: FormatProfile) -> HandTable:
    """One plan of each action, a dead write of each, and a compaction that is done."""
    made = HandTable(profile)
    made.instant(at(1), "commit")
    made.instant(at(2), COMPACTION, state=State.INFLIGHT, content={State.REQUESTED: compaction_of(profile, "a", "b")})
    made.instant(at(3), LOG_COMPACTION, state=State.REQUESTED, content={State.REQUESTED: compaction_of(profile, "c")})
    made.instant(
        at(4), clustering_action(profile), state=State.INFLIGHT, content={State.REQUESTED: clustering_of(profile, "d")}
    )
    empty = encode_requested_replace(EMPTY_REPLACE, profile.avro_generation)
    made.instant(at(5), REPLACE_COMMIT, state=State.INFLIGHT, content={State.REQUESTED: empty})
    made.instant(at(6), DELTA_COMMIT, state=State.INFLIGHT)
    made.instant(at(7), COMPACTION, state=State.REQUESTED, content={State.REQUESTED: compaction_of(profile, "b")})
    made.instant(at(8), REPLACE_COMMIT, state=State.REQUESTED, content={State.REQUESTED: b""})
    return made


def clustering_action(profile: FormatProfile) -> str:
    return CLUSTERING if profile.capabilities.clustering_action else REPLACE_COMMIT


def plans_of(table: HandTable) -> PendingPlans:
    return PendingPlans(table.storage, timeline_of(table.handle))


def test_every_action_sets_its_groups_aside(table: HandTable) -> None:
    plans = plans_of(table)
    assert [one.requested for one in plans.instants(COMPACTION)] == [at(2), at(7)]
    assert [one.requested for one in plans.instants(LOG_COMPACTION)] == [at(3)]
    assert [one.requested for one in plans.instants(CLUSTERING)] == [at(4)]
    assert plans.compactions() == {("p", "a"): at(2), ("p", "b"): at(7)}
    assert set(plans.clustered()) == {("p", "d")}
    assert plans.rewritten() == {("p", "c"), ("p", "d")}
    assert plans.read_from() == {("p", "a"): at(2), ("p", "b"): at(2), ("p", "c"): at(3), ("p", "d"): at(4)}


def test_writes_that_are_no_plans_are_incomplete(table: HandTable) -> None:
    plans = plans_of(table)
    assert [one.requested for one in plans.incomplete_writes()] == [at(5), at(6), at(8)]
    assert [one.requested for one in plans.timeline.pending() if plans.is_plan(one)] == [at(2), at(3), at(4), at(7)]
    assert all(plans.groups(one) == () for one in plans.incomplete_writes())


def test_a_plan_is_found_by_its_time_or_because_it_is_the_oldest(table: HandTable) -> None:
    plans = plans_of(table)
    oldest, named = COMPACTIONS.find(plans, None), COMPACTIONS.find(plans, at(7))
    assert oldest is not None
    assert named is not None
    assert (oldest.requested, named.requested) == (at(2), at(7))
    assert COMPACTIONS.find(PendingPlans(table.storage, Timeline(table.profile, ())), None) is None
    with pytest.raises(Invalid, match="no pending compaction"):
        COMPACTIONS.find(plans, at(3))


def test_nothing_is_read_before_it_is_asked_for_and_nothing_twice(table: HandTable) -> None:
    counted = CountingStorage(table.storage)
    handle = table.handle
    plans = state_of(type(handle)(counted, handle.config, handle.profile, handle.env)).plans
    assert [call.op for call in counted.calls] == ["list_dir"]
    counted.calls.clear()
    plans.compactions()
    assert sorted(call.path.rpartition("/")[2][:17] for call in counted.calls) == [at(2), at(7)]
    for _ in range(2):
        plans.read_from()
        plans.incomplete_writes()
        plans.compactions()
    read = [call.path for call in counted.calls]
    assert len(read) == len(set(read))


def test_damaged_plan_is_named(profile: FormatProfile) -> None:
    made = HandTable(profile)
    made.instant(at(2), COMPACTION, state=State.REQUESTED, content={State.REQUESTED: b"Obj\x01"})
    with pytest.raises(Corrupt, match=r"compaction\.requested"):
        plans_of(made).compactions()


def modules() -> list[str]:
    found = []
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        calls = (node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
        if not name.startswith("testing/") and any(isinstance(one, ast.Name) and one.id in READERS for one in calls):
            found.append(name)
    return found


def test_plans_are_read_in_one_place() -> None:
    strangers = [name for name in modules() if not any(name.startswith(home) for home in MAY_READ)]
    assert strangers == [], "ask hoodie.state.pending_plans which plans are pending"


def test_every_exception_is_used() -> None:
    names = modules()
    assert [home for home in MAY_READ if not any(name.startswith(home) for name in names)] == []
