"""Undoing writes of merge-on-read tables: log files, command blocks, completed writes, what is refused."""

from __future__ import annotations

from collections import Counter

import pytest
from undo_world import (
    AFTER,
    BEFORE,
    ENGINE,
    OLD,
    calls_of,
    handle_on,
    last_delta,
    paths,
    row,
    rows_of,
    small_table,
)

from hoodie.config import resolve
from hoodie.errors import Invalid, Unavailable, Unsupported
from hoodie.logs import read_blocks
from hoodie.present import as_json
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.rollback.plan import load_rollback_plan
from hoodie.services.rollback.preview import preview_rollback
from hoodie.services.rollback.rollback import roll_back_instant
from hoodie.services.rollback.savepoint import create_savepoint
from hoodie.spec import (
    COMPACTION,
    DELTA_COMMIT,
    RESTORE,
    ROLLBACK,
    V6,
    BlockKind,
    CompactionPlan,
    HeaderKey,
    Instant,
    InstantInfo,
    RollbackPlan,
    RollbackRequest,
    State,
    encode_compaction_plan,
    encode_container,
    encode_rollback_plan,
    parse_rollback_metadata,
    parse_rollback_plan,
)
from hoodie.spec.restore_plan import RestorePlan, encode_restore_plan
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.hand_logs import HandLogTable, at
from hoodie.timeline import load_instant, load_requested
from hoodie.transaction.abort import abort

CONFIG = resolve({})


def command_logs(table: HandLogTable) -> list[str]:
    return [path for path in paths(table.storage) if path.endswith("_1-0-1")]


def done(table: HandLogTable):
    """Plan and metadata of the newest rollback."""
    instant = [one for one in table.timeline().completed() if one.action == ROLLBACK][-1]
    plan = parse_rollback_plan(load_requested(table.storage, table.profile, instant), "plan")
    return instant, plan, parse_rollback_metadata(load_instant(table.storage, table.profile, instant), "done")


@pytest.mark.parametrize("markers", [True, False], ids=["markers", "listing"])
def test_failed_delta_commit_leaves_the_rows_of_before(profile, markers):
    table = small_table(profile)
    logs = last_delta(table, State.INFLIGHT, markers=markers)
    assert rows_of(table) == BEFORE
    timeline = roll_back_failed_writes(table.handle, ENGINE)
    assert rows_of(table) == BEFORE
    assert timeline.pending() == ()
    instant, plan, said = done(table)
    assert plan.instant_to_rollback == InstantInfo(at(3), DELTA_COMMIT)
    assert said.commits == (at(3),)
    left = [path for path in logs if path in paths(table.storage)]
    if profile is V6:  # the log file of an older slice stays, a command block takes its rows back
        assert left == [path for path in logs if ".a_" in path]
        assert command_logs(table) == [f"p0/.a_{at(1)}.log.3_1-0-1"]
        assert {path.rpartition("/")[2]: size for path, size in said.partitions["p0"].rollback_log_files.items()} == {
            f".a_{at(1)}.log.3_1-0-1": 105
        }
        failed = {path.rpartition("/")[2] for path in said.partitions["p0"].log_files_from_failed_commit}
        assert failed == ({left[0].rpartition("/")[2]} if markers else set())
    else:
        assert left == []
        assert command_logs(table) == []
        assert said.total_files_deleted == 2
        assert dict(said.partitions["p0"].rollback_log_files or {}) == {}
    assert not [path for path in paths(table.storage) if path.startswith(".hoodie/.temp/")]
    table.delta(instant.requested[:-3] + "999", {OLD: {"rows": [row("k1", 9)]}})
    assert ("k1", 9) in rows_of(table)


def test_command_block_says_who_takes_back_what():
    table = small_table(V6)
    last_delta(table, State.INFLIGHT)
    roll_back_failed_writes(table.handle, ENGINE)
    (path,) = command_logs(table)
    (block,) = read_blocks(table.storage, path, table.storage.head(path).size_bytes)
    assert block.kind is BlockKind.COMMAND
    assert list(block.header.items()) == [
        (HeaderKey.INSTANT_TIME, done(table)[0].requested),
        (HeaderKey.TARGET_INSTANT_TIME, at(3)),
        (HeaderKey.COMMAND_BLOCK_TYPE, "0"),
    ]


def test_rows_stay_away_when_the_timeline_has_forgotten_the_rolled_back_write():
    """Version 6: what is older than the timeline counts as committed, so the block must say it itself."""
    table = small_table(V6)
    last_delta(table, State.INFLIGHT)
    roll_back_failed_writes(table.handle, ENGINE)
    for name in [path for path in paths(table.storage) if at(1) in path and path.startswith(".hoodie/")]:
        table.storage.delete(name)
    for name in [path for path in paths(table.storage) if at(2) in path and path.startswith(".hoodie/")]:
        table.storage.delete(name)
    table.delta(at(9), {OLD: {"rows": [row("k9", 9)]}})
    assert rows_of(table) == sorted([*BEFORE, ("k9", 9)], key=repr)


@pytest.mark.parametrize("spelled", ["file:/base/{}", "s3a://elsewhere/t/{}", "{}"])
def test_rollback_plan_of_hudi_is_carried_out(spelled):
    table = small_table(V6)
    logs = last_delta(table, State.INFLIGHT)
    old, new = sorted(logs)
    requests = (
        RollbackRequest("p0", "a", at(1), (), {spelled.format(old): 5}),
        RollbackRequest("p0", "", "", ("/base/" + new,)),
    )
    plan = encode_rollback_plan(RollbackPlan(InstantInfo(at(3), DELTA_COMMIT), requests))
    table.instant(at(4), ROLLBACK, state=State.INFLIGHT, content={State.REQUESTED: plan})
    roll_back_failed_writes(table.handle, ENGINE)
    assert rows_of(table) == BEFORE
    assert command_logs(table) == [f"p0/.a_{at(1)}.log.3_1-0-1"]
    assert new not in paths(table.storage)
    assert table.timeline().pending() == ()


@pytest.mark.parametrize("group", [("../a", at(1)), ("a", "x"), ("a", ""), ("", at(1))])
def test_rollback_plan_cannot_make_files_elsewhere(group):
    table = small_table(V6)
    last_delta(table, State.INFLIGHT)
    plan = RollbackPlan(InstantInfo(at(3), DELTA_COMMIT), (RollbackRequest("p0", *group, (), {"x": 1}),))
    table.instant(at(4), ROLLBACK, state=State.REQUESTED, content={State.REQUESTED: encode_rollback_plan(plan)})
    before = paths(table.storage)
    with pytest.raises(Unsupported, match="no file of that instant"):
        roll_back_failed_writes(table.handle, ENGINE)
    assert paths(table.storage) == before


def test_completed_delta_commit_is_rolled_back(profile):
    table = small_table(profile)
    last_delta(table)
    assert rows_of(table) == AFTER
    result = roll_back_instant(table.handle, CONFIG, ENGINE, at(3))
    assert rows_of(table) == BEFORE
    assert (result.target, result.action) == (at(3), DELTA_COMMIT)
    assert as_json(result)["files_deleted"] == (1 if profile is V6 else 2)
    assert result.command_logs == (1 if profile is V6 else 0)
    assert at(3) in result._repr_html_()
    assert not [one for one in table.timeline().instants if one.requested == at(3)]
    _, _, said = done(table)
    if profile is V6:  # full paths where the commit's metadata named the file
        failed = said.partitions["p0"].log_files_from_failed_commit
        assert list(failed) == [table.storage.absolute(f"p0/.a_{at(1)}.log.2_0-1-2")]


def test_base_files_of_a_completed_commit_are_deleted(profile):
    table = small_table(profile)
    table.commit(at(3), {("p1", "b"): [row("k9", 1, "p1")]})
    roll_back_instant(table.handle, CONFIG, ENGINE, at(3))
    assert rows_of(table) == BEFORE
    assert not [path for path in paths(table.storage) if path.endswith(".parquet") and path.startswith("p1/")]


def test_replacing_commit_gives_its_groups_back(profile):
    table = small_table(profile)
    table.commit(at(3), {("p0", "b"): [row("k9", 1)]}, replaces={"p0": ("a",)})
    assert rows_of(table) == [("k9", 1)]
    roll_back_instant(table.handle, CONFIG, ENGINE, at(3))
    assert rows_of(table) == BEFORE


def pending_compaction(table: HandLogTable, requested: str, state: State) -> None:
    operation = {
        "baseInstantTime": at(1),
        "deltaFilePaths": [],
        "dataFilePath": None,
        "fileId": "a",
        "partitionPath": "p0",
        "metrics": {},
        "bootstrapFilePath": None,
    }
    plan = encode_container(
        "HoodieCompactionPlan", {"operations": [operation], "version": 2}, table.profile.avro_generation
    )
    table.instant(requested, COMPACTION, state=state, content={State.REQUESTED: plan})


def test_pending_compaction_loses_its_base_files_and_keeps_its_plan(profile):
    table = small_table(profile)
    pending_compaction(table, at(3), State.INFLIGHT)
    unfinished = table.path_of(at(3), "p0", "a")
    table.storage.put(unfinished, b"half")
    later = f"p0/.a_{at(3)}.log.1_0-1-2" if profile is V6 else f"p0/.a_{at(4)}.log.1_0-1-2"
    table.storage.put(later, table.storage.read(f"p0/.a_{at(1) if profile is V6 else at(2)}.log.1_0-1-2"))
    roll_back_instant(table.handle, CONFIG, ENGINE, at(3))
    assert unfinished not in paths(table.storage)
    assert later in paths(table.storage)
    assert [(one.requested, one.state) for one in table.timeline().pending()] == [(at(3), State.REQUESTED)]


def test_rollback_of_a_completed_compaction_takes_its_plan_too(profile):
    table = small_table(profile)
    pending_compaction(table, at(3), State.INFLIGHT)
    table.commit(at(3), {OLD: [row("k1", 2), row("k2", 1), row("k3", 1)]}, operation="COMPACT")
    roll_back_instant(table.handle, CONFIG, ENGINE, at(3))
    assert rows_of(table) == BEFORE
    assert table.timeline().pending() == ()
    assert table.path_of(at(3), "p0", "a") not in paths(table.storage)


def test_only_the_newest_write_can_be_rolled_back(profile):
    table = small_table(profile)
    last_delta(table)
    before = paths(table.storage)
    with pytest.raises(Invalid, match="came after"):
        roll_back_instant(table.handle, CONFIG, ENGINE, at(2))
    with pytest.raises(Invalid, match="no write"):
        roll_back_instant(table.handle, CONFIG, ENGINE, at(7))
    pending_compaction(table, at(4), State.REQUESTED)
    with pytest.raises(Invalid, match=f"compaction {at(4)} came after"):
        roll_back_instant(table.handle, CONFIG, ENGINE, at(3))
    create_savepoint(table.handle, CONFIG, at(3))
    with pytest.raises(Invalid, match="has a savepoint"):
        roll_back_instant(table.handle, CONFIG, ENGINE, at(3))
    assert set(before) <= set(paths(table.storage))
    assert rows_of(table) == AFTER


@pytest.mark.parametrize("state", [State.INFLIGHT, State.COMPLETED])
def test_rollback_that_dies_at_any_call_is_finished_by_the_next_write(profile, state):
    def make() -> HandLogTable:
        table = small_table(profile)
        last_delta(table, state)
        return table

    def act(handle) -> None:
        roll_back_instant(handle, CONFIG, ENGINE, at(3))

    seen: Counter[int] = Counter()
    for n in calls_of(make, act):
        table = make()
        with pytest.raises(Crash):
            act(handle_on(table, CountingStorage(table.storage, crash_at=n)))
        before = rows_of(table)
        assert before in (BEFORE, AFTER), f"call {n}"
        timeline = roll_back_failed_writes(table.handle, ENGINE)
        rollbacks = [one for one in timeline.completed() if one.action == ROLLBACK]
        expected = BEFORE if rollbacks else AFTER
        assert rows_of(table) == expected, f"call {n}"
        assert before in (expected, AFTER), f"call {n}"
        assert timeline.pending() == (), f"call {n}"
        if rollbacks:
            assert len(command_logs(table)) == (1 if profile is V6 else 0), f"call {n}"
        assert not [path for path in paths(table.storage) if path.startswith(".hoodie/.temp/")], f"call {n}"
        seen[len(rollbacks)] += 1
    assert set(seen) == ({0, 1} if state is State.COMPLETED else {1})


def test_writer_that_fails_takes_its_log_files_back(profile):
    table = small_table(profile)
    known = paths(table.storage)
    last_delta(table, State.INFLIGHT)
    abort(table.handle, at(3))
    assert paths(table.storage) == known


def test_rollback_keeps_copies_of_instants_when_asked(profile):
    table = small_table(profile)
    last_delta(table)
    config = resolve({"hoodie.rollback.instant.backup.enabled": "true"})
    roll_back_instant(table.handle, config, ENGINE, at(3))
    kept = [path for path in paths(table.storage) if path.startswith(".hoodie/.rollback_backup/")]
    assert len(kept) == 3


def test_preview_names_files_and_writes_nothing(profile):
    table = small_table(profile)
    logs = last_delta(table)
    before = {path: table.storage.read(path) for path in paths(table.storage)}
    shown = preview_rollback(table.handle, CONFIG, ENGINE, at(3))
    assert {path: table.storage.read(path) for path in paths(table.storage)} == before
    deleted = {path for step in shown.steps for path in step.paths}
    assert deleted == {path for path in logs if profile is not V6 or ".new_" in path}
    assert [step.action for step in shown.steps].count("create") == (1 if profile is V6 else 0)
    assert shown.size_bytes == sum(len(before[path]) for path in deleted)


def test_pending_restore_blocks_everything_else(profile):
    table = small_table(profile)
    plan = encode_restore_plan(RestorePlan((), at(1)))
    table.instant(at(5), RESTORE, state=State.REQUESTED, content={State.REQUESTED: plan})
    for act in (
        lambda: roll_back_failed_writes(table.handle, ENGINE),
        lambda: roll_back_instant(table.handle, CONFIG, ENGINE, at(2)),
    ):
        with pytest.raises(Unavailable, match="begun and is not finished"):
            act()


@pytest.mark.parametrize("name", [f".a_{at(1)}.log.7_1-1-1", f".a_{at(3)}.log.1_0-7-7"])
def test_a_marker_of_a_log_file_that_a_write_cannot_have_made_holds_up_no_rollback(profile, name):
    """Of one that carries the instant of a compaction, too: in version 6 it is a later write's."""
    table = small_table(profile)
    pending = Instant(at(3), COMPACTION, State.INFLIGHT)
    plan = encode_compaction_plan(CompactionPlan(()), profile.avro_generation)
    table.instant(at(3), COMPACTION, state=State.INFLIGHT, content={State.REQUESTED: plan})
    table.storage.put(f"p0/{name}", b"rows of another write")
    table.storage.put(f".hoodie/.temp/{at(3)}/p0/{name}.marker.APPEND", b"")
    table.storage.put(f".hoodie/.temp/{at(3)}/p0/a_0-1-1_{at(3)}.parquet.marker.MERGE", b"")
    table.storage.put(f"p0/a_0-1-1_{at(3)}.parquet", b"half a file")
    found = load_rollback_plan(table.handle, table.timeline(), pending, ENGINE)
    deleted = [path.rpartition("/")[2] for one in found.requests for path in one.files_to_delete]
    assert deleted == [f"a_0-1-1_{at(3)}.parquet"]
    assert not any(one.log_blocks_to_delete for one in found.requests)


def test_write_whose_earlier_files_were_cleaned_cannot_be_taken_back(profile):
    table = small_table(profile)
    table.commit(at(3), {OLD: [row("k1", 3)]}, stats={"prev_commit": at(1)})
    table.clean(at(4), at(3), [path for path in paths(table.storage) if path.startswith("p0/") and at(3) not in path])
    table.put_metafile(at(1), "p0")
    before = paths(table.storage)
    with pytest.raises(Invalid, match="no files of before"):
        roll_back_instant(table.handle, CONFIG, ENGINE, at(3))
    assert paths(table.storage) == before
