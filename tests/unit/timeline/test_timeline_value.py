"""The timeline as a value: what it answers, and that edits equal a fresh load."""

import itertools
import pickle
import random

import pytest

from hoodie.spec import V6, V9, Instant, State, profile_of
from hoodie.storage import LocalStorage
from hoodie.timeline import Timeline, instant_path, load_commit_metadata, load_table_config, load_timeline
from hoodie.timeline.timeline import furthest


def done(requested, action="commit", completed=None):
    return Instant(requested, action, State.COMPLETED, completed or requested + "9")


def pending(requested, action="commit", state=State.INFLIGHT):
    return Instant(requested, action, state)


LINE = Timeline(
    V9,
    furthest(
        [
            done("20"),
            done("10"),
            done("10", "savepoint"),
            done("30", "replacecommit"),
            pending("40", "compaction", State.REQUESTED),
            pending("50", "deltacommit"),
            done("60", "clean", "99"),
            pending("70", "rollback"),
        ]
    ),
)


def test_groups_of_instants():
    times = [(i.requested, i.action) for i in LINE.instants]
    assert times == sorted(times)
    assert [i.requested for i in LINE.completed()] == ["10", "10", "20", "30", "60"]
    assert [i.requested for i in LINE.pending()] == ["40", "50", "70"]
    assert [i.requested for i in LINE.writes()] == ["10", "20", "30", "40", "50"]
    assert [i.requested for i in LINE.completed_writes()] == ["10", "20", "30"]
    assert LINE.last_completed_write() == done("30", "replacecommit")
    assert LINE.last_time() == "99"


def test_a_savepoint_is_found_by_its_action_only():
    assert LINE.find("10") == done("10")
    assert LINE.find("10", "savepoint") == done("10", "savepoint")
    assert LINE.find("40", "commit") == LINE.find("40", "compaction") == LINE.find("40")
    assert LINE.find("11") is None


def test_commits_under_a_savepoint_do_not_start_the_timeline():
    assert LINE.first_write_instant == done("20")
    assert LINE.is_committed("15")
    assert LINE.is_committed("10")
    assert not LINE.is_before_start("20")


def test_where_only_saved_commits_are_left_history_ends_before_the_last_of_them():
    line = Timeline(V6, tuple(done(time, action) for time in ("10", "20") for action in ("commit", "savepoint")))
    assert line.first_write_instant == done("20")
    assert line.is_committed("05")
    assert line.is_committed("15")
    assert not line.is_committed("25")


def test_committed_is_completed_or_before_the_start():
    committed = {t: LINE.is_committed(t) for t in ("05", "20", "30", "40", "50", "60", "25")}
    assert committed == {"05": True, "20": True, "30": True, "40": False, "50": False, "60": False, "25": False}


def test_archived_writes_are_those_of_the_history_as_far_as_it_is_known():
    some, every = (
        LINE.with_archived({"05": "059", "03": "039"}),
        LINE.with_archived({"05": "059", "03": "039"}, whole=True),
    )
    times = ("02", "03", "04", "05", "06", "10", "15", "20")
    assert [some.is_committed(t) for t in times] == [True] * 8
    assert [every.is_committed(t) for t in times] == [True, True, False, True, False, True, False, True]
    assert not every.with_instant(done("80")).without(done("30", "replacecommit")).is_committed("04")
    assert LINE.with_archived({}, whole=True).is_committed("04")


def test_completion_times_are_known_for_active_writes_only():
    assert [LINE.completion_of(t) for t in ("05", "10", "30", "50", "60")] == [None, "109", "309", None, None]


def test_an_empty_timeline_has_no_start():
    empty = Timeline(V6, ())
    assert empty.first_write_instant is empty.last_time() is empty.last_completed_write() is None
    assert not empty.is_committed("1")


def test_a_table_service_is_one_instant_through_all_its_states():
    line = Timeline(V9, ()).with_instant(pending("1", "compaction", State.REQUESTED))
    assert line.instants == (pending("1", "compaction", State.REQUESTED),)
    line = line.with_instant(pending("1", "compaction")).with_instant(done("1", "commit"))
    assert line.instants == (done("1", "commit"),)
    assert line.with_instant(pending("1", "compaction")) == line


def test_without_forgets_all_states():
    assert Timeline(V9, (done("1"),)).without(pending("1")).instants == ()


def test_timelines_travel():
    copy = pickle.loads(pickle.dumps(LINE))
    assert copy == LINE
    assert copy.is_committed("20")


@pytest.mark.parametrize("seed", range(5))
def test_edits_in_any_order_equal_a_fresh_load(storage, seed):
    actions = ["commit", "deltacommit", "replacecommit", "compaction", "clustering", "clean", "rollback"]
    states = [
        Instant(f"2026010203040500{n}", action, state, f"20260102030405{n}99" if state is State.COMPLETED else None)
        for n, action in enumerate(actions)
        for state in State
        if n + state < 8
    ]
    states = [
        Instant(i.requested, i.comparable_action if i.is_completed else i.action, i.state, i.completed) for i in states
    ]
    random.Random(seed).shuffle(states)
    line = Timeline(V9, ())
    for instant in states:
        line = line.with_instant(instant)
        storage.create(instant_path(V9, instant), b"")
        assert line == load_timeline(storage, V9)
    for first, second in itertools.pairwise(line.instants):
        assert first < second


def test_loading_skips_what_is_no_instant_and_takes_the_furthest_state(storage, profile):
    completed = "20260102030405007" if profile.stores_completion_time else None
    for name in ("hoodie.properties", "20260102030405006.commit.tmp", ".20260102030405006.inflight.crc"):
        storage.create(f"{profile.timeline_dir}/{name}", b"x")
    for state in State:
        instant = Instant("20260102030405006", "commit", state, completed if state is State.COMPLETED else None)
        storage.create(instant_path(profile, instant), b"")
    (found,) = load_timeline(storage, profile).instants
    assert found.is_completed
    assert len(found.completed) == 17


def test_a_table_without_timeline_files_has_an_empty_timeline(storage, profile):
    assert load_timeline(storage, profile) == Timeline(profile, ())


def test_legacy_names_take_the_files_time_and_json(storage):
    storage.create(".hoodie/timeline/20260102030405006.commit", b'{"operationType":"INSERT"}')
    (found,) = load_timeline(storage, V9, "UTC").instants
    assert found.legacy_name
    assert found.completed is not None
    assert load_commit_metadata(storage, V9, found).operation_type == "INSERT"


def test_golden_timelines_load_as_hudi_lists_them(small_timelines):
    for table in small_timelines.values():
        storage = LocalStorage(str(table.path))
        profile = profile_of(load_table_config(storage))
        timeline = load_timeline(storage, profile, "UTC")
        theirs = {(i["requested_time"], i["action"]): i for i in table.expected["active_timeline"]}
        assert [(i.requested, i.action) for i in timeline.instants] == sorted(theirs), table.name
        for instant in timeline.instants:
            reported = theirs[instant.requested, instant.action]
            assert instant.state.name == reported["state"]
            if instant.is_completed:
                # File times passed through a float when the archive was made: they may be off by one in version 6.
                off = int(instant.completed) - int(reported["completion_time"])
                assert off == 0 if profile.stores_completion_time else abs(off) <= 1
        for instant in timeline.completed_writes():
            assert load_commit_metadata(storage, profile, instant).operation_type
