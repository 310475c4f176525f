"""What a clean would remove of small tables: the three policies, and everything that keeps a file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hoodie.config import Config
from hoodie.fileview import FolderView
from hoodie.services.cleaning.facts import load_protected
from hoodie.services.cleaning.options import CleanOptions
from hoodie.services.cleaning.plan import PlannedClean, plan_clean, touched_partitions
from hoodie.services.cleaning.retention import earliest_retained
from hoodie.services.rollback.savepoint import create_savepoint
from hoodie.spec import (
    CLUSTERING,
    COMMIT,
    COMPACTION,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    V9,
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CommitMetadata,
    FormatProfile,
    Instant,
    State,
    WriteStat,
    encode_container,
    encode_requested_replace,
    parse_instant_time,
)
from hoodie.spec.replace_plan import RequestedReplace
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.testing.hand_logs import HandLogTable
from hoodie.testing.hand_table import HandTable, at
from hoodie.timeline import Timeline

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
KEEP_2 = CleanOptions(commits=2)
TWO_VERSIONS = CleanOptions(policy="KEEP_LATEST_FILE_VERSIONS", versions=2)


def row(key: str = "k", part: str = "p") -> dict[str, object]:
    return {"id": key, "part": part, "qty": 1}


def table_of(profile: FormatProfile, commits: int, group: tuple[str, str] = ("p", "f")) -> HandTable:
    """A group that commits 1 to n have rewritten."""
    table = HandTable(profile)
    for second in range(1, commits + 1):
        table.commit(at(second), {group: [row(part=group[0])]})
    return table


def planned(handle: TableHandle, options: CleanOptions, now: datetime = NOON) -> PlannedClean:
    timeline = timeline_of(handle)
    earliest = earliest_retained(timeline, options, now, "UTC")
    view = FolderView(handle.storage, timeline).load()
    return plan_clean(view, earliest, options, load_protected(handle, PendingPlans(handle.storage, timeline)))


def instants_that_go(plan: PlannedClean) -> list[tuple[str, str]]:
    """(file id, instant) of the base files that go."""
    names = [path.rpartition("/")[2] for step in plan.steps for path in step.paths]
    return sorted((name.split("_")[0], name.split("_")[2].split(".")[0]) for name in names if not name.startswith("."))


# --- by commits


def test_the_last_commits_and_the_state_before_them_stay(profile: FormatProfile) -> None:
    plan = planned(table_of(profile, 5).handle, KEEP_2)
    assert plan.earliest is not None
    assert plan.earliest.requested == at(4)
    assert instants_that_go(plan) == [("f", at(1)), ("f", at(2))]
    assert plan.last_completed == at(5)
    assert all(step.size_bytes > 0 and at(4) in step.reason for step in plan.steps)


@pytest.mark.parametrize("commits", [1, 2])
def test_nothing_goes_while_there_are_not_more_commits_than_kept(commits: int) -> None:
    plan = planned(table_of(V9, commits).handle, KEEP_2)
    assert plan.earliest is None
    assert plan.is_empty


def test_the_newest_slice_stays_however_old_it_is() -> None:
    table = table_of(V9, 1, ("p", "old"))
    for second in range(2, 9):
        table.commit(at(second), {("p", "f"): [row()]})
    assert ("old", at(1)) not in instants_that_go(planned(table.handle, CleanOptions(commits=1)))


@pytest.mark.parametrize("action", [COMMIT, COMPACTION, REPLACE_COMMIT])
def test_a_pending_write_holds_the_earliest_commit_back(profile: FormatProfile, action: str) -> None:
    table = HandTable(profile)
    content = {}
    if action == REPLACE_COMMIT:
        content = {State.REQUESTED: encode_requested_replace(RequestedReplace(), profile.avro_generation)}
    elif action == COMPACTION:
        content = {
            State.REQUESTED: encode_container("HoodieCompactionPlan", {"operations": []}, profile.avro_generation)
        }
    for second in (1, 2, 3, 5, 6, 7):
        table.commit(at(second), {("p", "f"): [row()]})
    table.instant(at(4), action, state=State.INFLIGHT, content=content)
    plan = planned(table.handle, KEEP_2)
    assert plan.earliest is not None
    assert plan.earliest.requested == at(3)
    assert instants_that_go(plan) == [("f", at(1))]


def test_a_pending_write_before_all_commits_keeps_everything() -> None:
    table = table_of(V9, 5)
    table.instant(f"{at(0)[:-1]}1", COMMIT, state=State.INFLIGHT)
    assert planned(table.handle, KEEP_2).is_empty


def test_a_clean_moves_on_by_so_many_commits_at_most() -> None:
    timeline = timeline_of(table_of(V9, 9).handle)
    options = CleanOptions(commits=2, max_commits=3)
    moved = earliest_retained(timeline, options, NOON, "UTC", previous=at(2))
    assert moved is not None
    assert moved.requested == at(5)
    unlimited = earliest_retained(timeline, options, NOON, "UTC")
    assert unlimited is not None
    assert unlimited.requested == at(8)


# --- by hours


def test_states_of_the_last_hours_stay(profile: FormatProfile) -> None:
    table = HandTable(profile)
    for second in (3600, 7200, 10800, 14400):
        table.commit(at(second), {("p", "f"): [row()]})
    options = CleanOptions(policy="KEEP_LATEST_BY_HOURS", hours=1)
    now = parse_instant_time(at(14400), "UTC") + timedelta(minutes=10)
    plan = planned(table.handle, options, now)
    assert plan.earliest is not None
    assert plan.earliest.requested == at(14400)
    assert instants_that_go(plan) == [("f", at(3600)), ("f", at(7200))]
    assert planned(table.handle, options, now + timedelta(days=1)).is_empty


# --- by versions


def test_the_newest_versions_stay_and_nothing_is_promised(profile: FormatProfile) -> None:
    plan = planned(table_of(profile, 5).handle, TWO_VERSIONS)
    assert plan.earliest is None
    assert instants_that_go(plan) == [("f", at(1)), ("f", at(2)), ("f", at(3))]


def test_by_versions_replaced_groups_go_at_once(profile: FormatProfile) -> None:
    table = table_of(profile, 1)
    table.commit(at(2), {("p", "new"): [row()]}, replaces={"p": ("f",)})
    assert instants_that_go(planned(table.handle, TWO_VERSIONS)) == [("f", at(1))]


# --- what goes along, what stays


def test_log_files_go_with_their_slice(profile: FormatProfile) -> None:
    table = HandLogTable(profile)
    table.commit(at(1), {("p", "f"): [row()]})
    table.delta(at(2), {("p", "f"): {"rows": [row()]}})
    for second in (3, 4, 5):
        table.commit(at(second), {("p", "f"): [row()]})
    plan = planned(table.handle, KEEP_2)
    paths = [path for step in plan.steps for path in step.paths]
    assert len(paths) == 2
    assert f"f_0-1-2_{at(1)}.parquet" in paths[0]
    assert ".log." in paths[1]


def test_change_data_files_go_with_the_slice_they_were_written_along_with(profile: FormatProfile) -> None:
    table = table_of(profile, 5)
    for second in range(1, 7):  # that of 6 is of a write that never completed
        table.storage.put(f"p/.f_{at(second)}.log.1_0-1-2.cdc", b"changes")
    plan = planned(table.handle, KEEP_2)
    assert [step.paths[1] for step in plan.steps] == [f"p/.f_{at(second)}.log.1_0-1-2.cdc" for second in (2, 1)]


def test_replaced_groups_go_when_the_replacing_commit_is_past(profile: FormatProfile) -> None:
    table = table_of(profile, 2, ("p", "gone"))
    table.commit(at(3), {("p", "f"): [row()]}, replaces={"p": ("gone",)})
    table.commit(at(4), {("p", "f"): [row()]})
    assert instants_that_go(planned(table.handle, KEEP_2)) == []
    table.commit(at(5), {("p", "f"): [row()]})
    assert instants_that_go(planned(table.handle, KEEP_2)) == [("gone", at(1)), ("gone", at(2))]


def test_an_emptied_partition_goes_unless_something_else_is_there(profile: FormatProfile) -> None:
    table = table_of(profile, 1, ("gone", "g"))
    table.commit(at(2), {("p", "f"): [row()]}, replaces={"gone": ("g",)})
    table.commit(at(3), {("p", "f"): [row()]})
    table.commit(at(4), {("p", "f"): [row()]})
    assert planned(table.handle, KEEP_2).partitions == ("gone",)
    dead = f"gone/other_0-1-2_{at(5)}.parquet"
    table.storage.put(dead, b"of a write nobody knows")
    assert planned(table.handle, KEEP_2).partitions == ()
    table.storage.delete(dead)
    table.instant(at(6), COMMIT, state=State.INFLIGHT)
    assert planned(table.handle, KEEP_2).partitions == (), "a pending write may be about to use it"


def test_the_root_of_an_unpartitioned_table_never_goes() -> None:
    table = HandTable(V9, partition_fields=())
    table.commit(at(1), {("", "g"): [row()]})
    table.commit(at(2), {}, replaces={"": ("g",)}, operation="DELETE_PARTITION")
    for second in (3, 4):
        table.commit(at(second), {})
    plan = planned(table.handle, KEEP_2)
    assert instants_that_go(plan) == [("g", at(1))]
    assert plan.partitions == ()


def test_saved_files_stay_also_of_replaced_groups(profile: FormatProfile) -> None:
    table = table_of(profile, 2, ("p", "f"))
    create_savepoint(table.handle, Config(), at(1))
    table.commit(at(3), {("p", "new"): [row()]}, replaces={"p": ("f",)})
    for second in (4, 5):
        table.commit(at(second), {("p", "new"): [row()]})
    plan = planned(table.handle, KEEP_2)
    assert instants_that_go(plan) == [("f", at(2))]
    assert plan.stored(str).savepoints == (at(1),)


@pytest.mark.parametrize("action", [COMPACTION, LOG_COMPACTION, CLUSTERING])
@pytest.mark.parametrize("options", [KEEP_2, CleanOptions(policy="KEEP_LATEST_FILE_VERSIONS", versions=1)])
def test_what_a_pending_plan_reads_stays(profile: FormatProfile, action: str, options: CleanOptions) -> None:
    table = table_of(profile, 3)
    group = {"partitionPath": "p", "fileId": "f", "baseInstantTime": at(3)}
    if action == CLUSTERING:
        plan = ClusteringPlan((ClusteringGroup((ClusteringSlice("p", "f"),)),))
        data = encode_requested_replace(RequestedReplace("CLUSTER", plan), profile.avro_generation)
    else:
        data = encode_container("HoodieCompactionPlan", {"operations": [group]}, profile.avro_generation)
    name = REPLACE_COMMIT if action == CLUSTERING and not profile.capabilities.clustering_action else action
    table.instant(at(4), name, state=State.REQUESTED, content={State.REQUESTED: data})
    for second in range(5, 9):
        table.commit(at(second), {("p", "other"): [row()]})
    assert ("f", at(3)) not in instants_that_go(planned(table.handle, options))


def test_files_of_writes_that_are_not_committed_are_not_touched(profile: FormatProfile) -> None:
    table = table_of(profile, 5)
    table.commit(at(6), {("p", "f"): [row()]}, state=State.INFLIGHT)
    assert ("f", at(6)) not in instants_that_go(planned(table.handle, CleanOptions(commits=1)))


# --- where to look


def stat(prev: str | None, path: str = "p/x.parquet") -> WriteStat:
    return WriteStat(file_id="f", path=path, partition_path="p", prev_commit=prev)


def test_partitions_that_were_only_inserted_into_need_no_look() -> None:
    def touched(operation: str, *stats: WriteStat, mor: bool = False) -> frozenset[str]:
        return touched_partitions([CommitMetadata({"p": stats}, operation_type=operation)], is_merge_on_read=mor)

    assert touched("UPSERT", stat("null")) == frozenset()
    assert touched("UPSERT", stat("null"), stat(at(1))) == {"p"}
    assert touched("UPSERT", stat("null"), mor=True) == {"p"}
    assert touched("COMPACT", stat("null")) == {"p"}
    replaced = CommitMetadata(partition_to_replace_file_ids={"q": ("g",)}, operation_type="DELETE_PARTITION")
    assert touched_partitions([replaced], is_merge_on_read=False) == {"q"}


def test_counting_commits_takes_the_oldest_of_the_last() -> None:
    instants = tuple(Instant(at(n), COMMIT, State.COMPLETED, at(n, 500)) for n in range(1, 16))
    found = earliest_retained(Timeline(V9, instants), CleanOptions(), NOON, "UTC")
    assert found == instants[5]
