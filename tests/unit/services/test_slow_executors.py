"""An executor that was only slow, while others took its plan from it: none of its files count, none of theirs go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.errors import Conflict, Fenced, HudiError, Unavailable
from hoodie.services.rewrite.executor import roll_back_run
from hoodie.spec import State
from hoodie.state.handle import load_handle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.table import Table
from hoodie.testing.counting_storage import Call, Crash
from hoodie.testing.lake import Lake, logged_lake, row
from hoodie.testing.unlocked_storage import LosingStorage, UnlockedStorage
from hoodie.timeline import to_inflight

LOCAL = LocalEngine(1)
WORK: dict[str, Callable[[Table], Any]] = {
    "compact": lambda table: table.services.compact(**{"hoodie.compact.inline.max.delta.commits": "1"}),
    "cluster": lambda table: table.services.cluster(),
}


def lake_of(version: int, metadata: str) -> Lake:
    """A table with log files in two partitions."""
    off = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.compact.inline": "false"}
    lake: Lake = logged_lake(version, **off, **{"hoodie.metadata.enable": metadata})
    lake.upsert(row("a"), row("b"))
    lake.upsert(row("x", part="q"))
    lake.upsert(row("b", "b2", 2), row("x", "x2", 2, part="q"))
    return lake


def answer_of(lake: Lake, work: str, on_call: Callable[[Call], None]) -> BaseException | None:
    """What an executor is told that meets `on_call`; None when its work is done."""
    storage = UnlockedStorage(lake.storage, on_call=on_call)
    try:
        WORK[work](Table(load_handle(storage, SystemEnv()), lake.options, LOCAL))
    except (HudiError, Crash, KeyboardInterrupt) as error:
        return error
    return None


def ensure_right(lake: Lake, expected: dict[str, str]) -> None:
    """Checks rows as the metadata table and as the folders have them, and that no file is out of place."""
    assert lake.values() == expected
    by_folder = Table.open(lake.uri, options={**lake.options, "hoodie.metadata.enable": "false"})
    rows = by_folder.scan(["id", "v"]).read_all().to_pydict()
    assert sorted(zip(rows["id"], rows["v"], strict=True)) == sorted(expected.items())
    assert lake.table.validate() == []


def take_over(lake: Lake, work: str) -> None:
    assert WORK[work](lake.table) is not None


def roll_back(lake: Lake, work: str) -> None:
    del work
    lake.table.services.rollback(lake.table.timeline().pending()[-1].requested)


def begin_anew(lake: Lake, work: str) -> None:
    """Another executor has rolled the run back and begins the next."""
    del work
    handle = load_handle(lake.storage, SystemEnv())
    plans = PendingPlans(handle.storage, timeline_of(handle))
    (inflight,) = (one for one in plans.timeline.pending() if one.state is State.INFLIGHT)
    roll_back_run(handle, LOCAL, plans, inflight)
    to_inflight(handle.storage, handle.profile, inflight)


def take_off(lake: Lake, work: str) -> None:
    """Others unschedule the plan."""
    requested = lake.table.timeline().pending()[-1].requested
    if work == "compact":
        lake.table.services.unschedule_compaction(requested)
    else:
        lake.table.services.cluster(op="unschedule", instant=requested)


def archive(lake: Lake, expected: dict[str, str]) -> None:
    """Others write on until what was there is archived."""
    options = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}
    for number in range(8):
        lake.upsert(row("z", f"z{number}", number, part="r"))
    expected["z"] = "z7"
    lake.table.services.clean(**options)
    assert lake.table.services.archive(**options) is not None


def is_file(call: Call) -> bool:
    return call.op == "open_output" and call.path.endswith(".parquet") and not call.path.startswith(".hoodie")


def is_completion(call: Call) -> bool:
    is_done = call.path.rpartition(".")[2] in ("commit", "replacecommit")
    return call.op == "create" and is_done and "/metadata/" not in call.path


def die_at_completion(lake: Lake, work: str) -> None:
    """An executor dies behind its part of the metadata table."""
    state = {"dead": False}

    def die(call: Call) -> None:
        state["dead"] |= is_completion(call)
        if state["dead"]:
            raise Crash

    assert isinstance(answer_of(lake, work, die), Crash)


@pytest.mark.parametrize("others", [take_over, roll_back, begin_anew])
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("nth", [1, 2, 0], ids=["at the first file", "at the second", "when it completes"])
def test_files_of_a_run_that_others_took_the_plan_from_go(
    nth: int, version: int, metadata: str, work: str, others: Callable[[Lake, str], None]
) -> None:
    lake = lake_of(version, metadata)
    expected, state = lake.values(), {"files": 0, "struck": 0}

    def strike(call: Call) -> None:
        state["files"] += is_file(call)
        if not state["struck"] and (is_file(call) and state["files"] == nth if nth else is_completion(call)):
            state["struck"] = 1
            others(lake, work)

    answer = answer_of(lake, work, strike)
    assert state["struck"]
    assert isinstance(answer, Conflict | Fenced)
    ensure_right(lake, expected)
    if others is not take_over:
        take_over(lake, work)
    ensure_right(lake, expected)
    lake.upsert(row("a", "more", 9))
    ensure_right(lake, {**expected, "a": "more"})


@pytest.mark.parametrize("cause", [KeyboardInterrupt, Unavailable])
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("version", [6, 9])
def test_so_do_those_of_one_that_fails_by_something_else(version: int, work: str, cause: type[BaseException]) -> None:
    lake = lake_of(version, "false")
    expected, state = lake.values(), {"files": 0}

    def strike(call: Call) -> None:
        state["files"] += is_file(call)
        if is_file(call) and state["files"] == 1:
            take_over(lake, work)
        elif is_file(call) and state["files"] == 2:
            raise Unavailable("503", remedy="again") if cause is Unavailable else cause

    assert isinstance(answer_of(lake, work, strike), cause)
    ensure_right(lake, expected)


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_plan_is_carried_out_after_a_run_died_behind_its_part_of_the_metadata_table_and_was_rolled_back(
    version: int, work: str
) -> None:
    """The rollback is recorded there, too, and is not aimed at the next run."""
    lake = lake_of(version, "true")
    expected = lake.values()
    die_at_completion(lake, work)
    roll_back(lake, work)
    take_over(lake, work)
    ensure_right(lake, expected)


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("version", [6, 9])
def test_what_a_dead_executor_and_a_dead_rollback_of_it_left_goes_with_the_plan(version: int, work: str) -> None:
    lake = lake_of(version, "true")
    expected = lake.values()
    die_at_completion(lake, work)
    deleted: list[str] = []

    def die_again(call: Call) -> None:
        if call.op == "delete" and not call.path.startswith(".hoodie"):
            raise Crash
        if call.op == "delete":
            deleted.append(call.path)

    assert isinstance(answer_of(lake, work, die_again), Crash)
    assert any(path.endswith(".inflight") for path in deleted)
    requested = lake.table.timeline().pending()[-1].requested
    take_off(lake, work)
    assert lake.table.timeline().pending() == ()
    assert [path for path in lake.files() if requested in path and not path.startswith(".hoodie")] == []
    ensure_right(lake, expected)


@pytest.mark.parametrize("cause", [KeyboardInterrupt, Unavailable])
@pytest.mark.parametrize("version", [6, 9])
def test_files_of_a_run_whose_plan_was_taken_off_go_whatever_it_fails_by(
    version: int, cause: type[BaseException]
) -> None:
    lake = lake_of(version, "true")
    expected, state = lake.values(), {"files": 0, "requested": ""}

    def strike(call: Call) -> None:
        state["files"] += is_file(call)  # type: ignore[operator]
        if is_file(call) and state["files"] == 1:
            state["requested"] = lake.table.timeline().pending()[-1].requested
            lake.table.services.cluster(op="unschedule", instant=state["requested"])
        elif is_file(call) and state["files"] == 2:
            raise Unavailable("503", remedy="again") if cause is Unavailable else cause

    assert isinstance(answer_of(lake, "cluster", strike), cause)
    assert [path for path in lake.files() if str(state["requested"]) in path and not path.startswith(".hoodie")] == []
    ensure_right(lake, expected)


PLANS: dict[str, Callable[[Table], Any]] = {
    "compact": lambda table: table.services.schedule_compaction(**{"hoodie.compact.inline.max.delta.commits": "1"}),
    "cluster": lambda table: table.services.cluster(op="schedule"),
}


@pytest.mark.parametrize("others", [None, "execute"], ids=["write", "carry out"])
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_plan_that_others_have_seen_stays(version: int, metadata: str, plan: str, others: str | None) -> None:
    """Log files of version 6 may carry its instant by then. Its maker sleeps before the look behind it."""
    lake, losses, stored = lake_of(version, metadata), list[str](), list[str]()
    expected = lake.values()

    def go_on(call: Call) -> None:
        if call.op == "create" and call.path.endswith(".requested") and "/metadata/" not in call.path:
            stored.append(call.path)
        elif stored and not losses and call.op == "list_dir":
            losses.append("lost")
            if others == "execute":
                WORK[plan](lake.table)
            if plan == "compact" or others == "execute":  # else the clustering refuses
                lake.upsert(row("b", "other", 8), row("new", "other", 8))
                expected.update(b="other", new="other")

    storage = LosingStorage(lake.storage, losses, go_on)
    assert PLANS[plan](Table(load_handle(storage, SystemEnv()), lake.options, LOCAL)) is not None
    assert losses
    assert lake.values() == expected
    WORK[plan](lake.table)
    ensure_right(lake, expected)


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("version", [8, 9])
def test_a_metadata_table_that_is_made_anew_knows_of_no_executor_that_sleeps_before_its_completed_instant(
    version: int, work: str
) -> None:
    """It would list none of its files, and the files it has replaced still. Version 6 waits for it."""
    lake, state = lake_of(version, "true"), {"struck": False}
    expected = lake.values()

    def strike(call: Call) -> None:
        if is_completion(call) and not state["struck"]:
            state["struck"] = True
            lake.table.indexes.rebuild("files")

    assert isinstance(answer_of(lake, work, strike), Fenced)
    assert state["struck"]
    ensure_right(lake, expected)
    WORK[work](lake.table)
    ensure_right(lake, expected)


@pytest.mark.parametrize("knows", [True, False])
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_timeline_does_not_begin_with_a_plan_whose_maker_slept_before_it_was_stored(
    version: int, metadata: str, plan: str, knows: bool
) -> None:
    """What was archived meanwhile would not count."""
    lake, losses = lake_of(version, metadata), list[str]()
    expected, state = lake.values(), {"slept": False}

    def others(call: Call) -> None:
        if call.op == "create" and call.path.endswith(".requested") and not state["slept"]:
            state["slept"] = True
            archive(lake, expected)
            losses.append("lost")

    storage = LosingStorage(lake.storage, losses, others) if knows else UnlockedStorage(lake.storage, on_call=others)
    with pytest.raises(Fenced):
        PLANS[plan](Table(load_handle(storage, SystemEnv()), lake.options, LOCAL))
    assert lake.table.timeline().pending() == ()
    ensure_right(lake, expected)
    WORK[plan](lake.table)
    ensure_right(lake, expected)


@pytest.mark.parametrize("cause", [KeyboardInterrupt, Unavailable])
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("version", [6, 9])
def test_the_metadata_table_forgets_a_run_whose_plan_was_taken_off_before_it_was_told(
    version: int, work: str, cause: type[BaseException]
) -> None:
    """Its delta commit would count as soon as it is older than the timeline."""
    lake, state = lake_of(version, "true"), {"taken": False, "told": False, "struck": False}
    expected = lake.values()

    def strike(call: Call) -> None:
        if call.op == "create" and "/metadata/" in call.path and not state["taken"]:
            state["taken"] = True
            take_off(lake, work)
        elif call.op == "create" and "/metadata/" in call.path and call.path.endswith(".deltacommit"):
            state["told"] = True
        elif state["told"] and not state["struck"] and "/metadata/" not in call.path:
            state["struck"] = True
            raise Unavailable("503", remedy="again") if cause is Unavailable else cause

    assert isinstance(answer_of(lake, work, strike), cause)
    assert state["struck"]
    ensure_right(lake, expected)
    archive(lake, expected)
    ensure_right(lake, expected)
    take_over(lake, work)
    ensure_right(lake, expected)


@pytest.mark.deep
@pytest.mark.sampled(20)
@pytest.mark.parametrize("nth", range(40))
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_others_carry_a_plan_out_while_its_executor_sleeps_anywhere_from_its_last_file_to_its_end(
    version: int, work: str, nth: int
) -> None:
    """What the metadata table says of the plan is theirs by then. A file of it that is being written meanwhile is the
    exception: it has the same name in every run.
    """
    lake, state = lake_of(version, "true"), {"files": 0, "calls": 0, "slept": False}
    expected = lake.values()

    def others(call: Call) -> None:
        state["files"] += is_file(call)
        if state["files"] < 2 or (
            "metadata/files" in call.path and call.op in ("put", "open_output", "write", "close")
        ):
            return
        state["calls"] += 1
        if state["calls"] == nth + 1:
            state["slept"] = True
            WORK[work](lake.table)

    answer = answer_of(lake, work, others)
    if not state["slept"]:
        pytest.skip("it is done before")
    assert answer is None or isinstance(answer, HudiError)
    ensure_right(lake, expected)
    lake.upsert(row("a", "more", 9))
    ensure_right(lake, {**expected, "a": "more"})


@pytest.mark.parametrize("nth", [1, 2, 3], ids=["list", "head", "behind"])
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_plan_that_is_archived_while_its_executor_looks_behind_its_completion_keeps_its_files(
    version: int, metadata: str, work: str, nth: int
) -> None:
    lake, state = lake_of(version, metadata), {"created": False, "calls": 0}
    expected = lake.values()

    def strike(call: Call) -> None:
        if is_completion(call):
            state["created"] = True
        elif state["created"] and call.op in ("list_dir", "head", "delete_dir"):
            state["calls"] += 1
            if state["calls"] == nth:
                archive(lake, expected)

    assert answer_of(lake, work, strike) is None
    assert state["calls"] >= nth
    ensure_right(lake, expected)


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_who_completes_a_plan_that_others_have_completed_and_archived_withdraws_it(version: int, work: str) -> None:
    """The timeline would begin with it, and the history has the others' run."""
    lake, state = lake_of(version, "true"), {"struck": False}
    expected = lake.values()

    def strike(call: Call) -> None:
        if is_completion(call) and not state["struck"]:
            state["struck"] = True
            take_over(lake, work)
            archive(lake, expected)

    assert isinstance(answer_of(lake, work, strike), Fenced)
    ensure_right(lake, expected)
    lake.upsert(row("a", "more", 9))
    ensure_right(lake, {**expected, "a": "more"})


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("metadata", ["true", "false"])
def test_files_of_a_run_go_where_the_table_was_upgraded_meanwhile(metadata: str, work: str) -> None:
    lake, state = lake_of(6, metadata), {"struck": False}
    expected = lake.values()

    def strike(call: Call) -> None:
        if is_file(call) and not state["struck"]:
            state["struck"] = True
            lake.table.services.upgrade(9)
            lake.options = {**lake.options, "hoodie.write.table.version": "9"}

    assert answer_of(lake, work, strike) is not None
    ensure_right(lake, expected)
    if work == "cluster":
        take_over(lake, work)
    ensure_right(lake, expected)
