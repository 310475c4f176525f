"""Moving instants from state to state, and what stops it."""

import pytest

from hoodie.errors import CommitUnknown, Conflict, Fenced, Missing, Unavailable
from hoodie.spec import (
    CommitMetadata,
    Instant,
    InstantInfo,
    RollbackPlan,
    State,
    encode_rollback_plan,
)
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.env import FakeEnv
from hoodie.timeline import (
    complete,
    create_requested,
    delete_instant_files,
    load_commit_metadata,
    load_instant,
    load_requested,
    load_timeline,
    to_inflight,
)

T = "20260102030405006"
LATER = "20260102030405900"


def names(storage, profile):
    return sorted(file.path.rpartition("/")[2] for file in storage.list_dir(profile.timeline_dir).files)


def begin(storage, profile, requested=T, action="commit"):
    return to_inflight(storage, profile, create_requested(storage, profile, requested, action))


def test_a_commit_goes_through_three_files(storage, profile):
    env = FakeEnv()
    metadata = CommitMetadata(operation_type="INSERT")
    inflight = to_inflight(storage, profile, create_requested(storage, profile, T, "commit"), b"")
    done = complete(storage, profile, inflight, profile.commit_codec.encode(metadata, "commit"), env, "UTC")
    assert names(storage, profile) == sorted(
        [f"{T}.commit.requested", f"{T}.inflight", profile.instant_names.file_name(done)]
    )
    assert done.is_completed
    assert done.completed > T
    (loaded,) = load_timeline(storage, profile, "UTC").instants
    assert load_commit_metadata(storage, profile, loaded) == metadata
    if profile.stores_completion_time:
        assert loaded == done


@pytest.mark.parametrize("action", ["compaction", "logcompaction", "clustering"])
def test_table_services_complete_as_writes(storage, profile, action):
    done = complete(storage, profile, begin(storage, profile, action=action), b"", FakeEnv(), "UTC")
    assert (
        done.action == {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}[action]
    )
    assert [i.logical for i in load_timeline(storage, profile).instants] == [done.logical]


def test_a_second_writer_of_the_same_instant_conflicts_at_each_step(storage, profile):
    requested = create_requested(storage, profile, T, "commit")
    with pytest.raises(Conflict):
        create_requested(storage, profile, T, "commit")
    inflight = to_inflight(storage, profile, requested)
    with pytest.raises(Conflict):
        to_inflight(storage, profile, requested)
    complete(storage, profile, inflight, b"", FakeEnv(), "UTC")
    with pytest.raises(Conflict):
        complete(storage, profile, inflight, b"", FakeEnv(), "UTC")


def test_an_instant_that_was_removed_is_fenced(storage, profile):
    requested = create_requested(storage, profile, T, "commit")
    delete_instant_files(storage, profile, requested)
    with pytest.raises(Fenced):
        to_inflight(storage, profile, requested)
    inflight = begin(storage, profile)
    delete_instant_files(storage, profile, inflight)
    with pytest.raises(Fenced, match=T):
        complete(storage, profile, inflight, b"", FakeEnv(), "UTC")
    assert names(storage, profile) == []


@pytest.mark.parametrize("state", list(State))
def test_a_rollback_aimed_at_the_instant_fences_it_in_any_state(storage, profile, state):
    inflight = begin(storage, profile)
    plan = encode_rollback_plan(RollbackPlan(InstantInfo(T, "commit")))
    rollback = create_requested(storage, profile, LATER, "rollback", plan)
    if state > State.REQUESTED:
        rollback = to_inflight(storage, profile, rollback)
    if state > State.INFLIGHT:
        complete(storage, profile, rollback, b"", FakeEnv(), "UTC")
    with pytest.raises(Fenced, match=LATER):
        complete(storage, profile, inflight, b"", FakeEnv(), "UTC")


def test_rollbacks_of_others_do_not_fence(storage, profile):
    inflight = begin(storage, profile)
    plan = encode_rollback_plan(RollbackPlan(InstantInfo("20260102030405001", "commit")))
    create_requested(storage, profile, "20260102030405002", "rollback", b"")
    create_requested(storage, profile, LATER, "rollback", plan)
    assert complete(storage, profile, inflight, b"", FakeEnv(), "UTC").is_completed


def test_a_later_restore_fences(storage, profile):
    inflight = begin(storage, profile)
    create_requested(storage, profile, LATER, "restore", b"")
    with pytest.raises(Fenced, match="restore"):
        complete(storage, profile, inflight, b"", FakeEnv(), "UTC")


def test_completion_is_after_every_time_on_the_timeline_even_if_the_clock_is_behind(storage, profile):
    inflight = begin(storage, profile)
    other = begin(storage, profile, "20990101000000000", "clean")
    done = complete(storage, profile, inflight, b"", FakeEnv(), "UTC")
    assert done.completed == "20990101000000001"
    assert complete(storage, profile, other, b"", FakeEnv(), "UTC").completed > "20990101000000000"


def test_a_look_that_fails_after_the_commit_point_is_taken_once_more(storage, profile):
    inflight = begin(storage, profile)
    assert complete(CountingStorage(storage, fail_at=3), profile, inflight, b"", FakeEnv(), "UTC").is_completed


def test_two_looks_that_fail_after_the_commit_point_say_that_nothing_is_known(storage, profile):
    def fails(call):
        if call.n in {3, 4}:
            raise Unavailable("503", remedy="again")

    inflight = begin(storage, profile)
    with pytest.raises(CommitUnknown):
        complete(CountingStorage(storage, on_call=fails), profile, inflight, b"", FakeEnv(), "UTC")
    assert load_timeline(storage, profile, "UTC").find(T).is_completed


def test_nothing_is_asked_of_storage_after_the_end_of_an_action_that_writes_nothing(storage, profile):
    calls = []
    counting = CountingStorage(storage, on_call=calls.append)
    complete(counting, profile, begin(storage, profile, action="clean"), b"", FakeEnv(), "UTC")
    assert calls[-1].op == "create"


@pytest.mark.parametrize("undone", ["planned", "files gone"])
def test_a_rollback_between_the_look_and_the_commit_is_seen(storage, profile, undone):
    inflight = begin(storage, profile)

    def roll_back(call):
        if call.n == 2:
            plan = encode_rollback_plan(RollbackPlan(InstantInfo(T, "commit")))
            create_requested(storage, profile, LATER, "rollback", plan)
            if undone == "files gone":
                delete_instant_files(storage, profile, inflight)

    counting = CountingStorage(storage, on_call=roll_back)
    with pytest.raises(CommitUnknown if undone == "planned" else Fenced, match=LATER):
        complete(counting, profile, inflight, b"", FakeEnv(), "UTC")
    found = load_timeline(storage, profile, "UTC").find(T)
    assert (found is not None and found.is_completed) == (undone == "planned")


def test_a_savepoint_begins_inflight(storage, profile):
    inflight = to_inflight(storage, profile, Instant(T, "savepoint", State.REQUESTED))
    done = complete(storage, profile, inflight, b"x", FakeEnv(), "UTC")
    delete_instant_files(storage, profile, done)
    assert names(storage, profile) == []


def test_removal_takes_completed_first_and_requested_last(storage, profile):
    done = complete(storage, profile, begin(storage, profile), b"", FakeEnv(), "UTC")
    calls = []
    delete_instant_files(CountingStorage(storage, on_call=lambda *call: calls.append(call)), profile, done)
    text = [str(call) for call in calls]
    assert [".inflight" in line for line in text] == [False, True, False]
    assert ".requested" in text[2]
    assert names(storage, profile) == []


def test_requested_content_is_found_in_any_state(storage, profile):
    inflight = to_inflight(storage, profile, create_requested(storage, profile, T, "clean", b"plan"))
    done = complete(storage, profile, inflight, b"done", FakeEnv(), "UTC")
    assert load_requested(storage, profile, done) == b"plan"
    assert load_requested(storage, profile, Instant("1", "clean", State.INFLIGHT)) == b""
    with pytest.raises(Missing):
        load_instant(storage, profile, Instant("1", "clean", State.INFLIGHT))
