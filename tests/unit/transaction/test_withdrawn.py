"""Who was rolled back while it slept takes back all it has made, whatever fails, and nothing that completed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.errors import Conflict, Fenced, HudiError, Unavailable
from hoodie.services.ingest import Request
from hoodie.services.save import write_table
from hoodie.table import as_source
from hoodie.testing.counting_storage import Call, CountingStorage
from hoodie.testing.lake import Lake, logged_lake, row, table_of
from hoodie.testing.unlocked_storage import UnlockedStorage

ARCHIVING = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}
CAUSES = [KeyboardInterrupt, ValueError, Unavailable]
ROOT = (".hoodie", ".hoodie/timeline")


def lake_of(version: int, made: Any, **options: str) -> Lake:
    given = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", **options}
    lake: Lake = Lake(version, given) if made is Lake else made(version, **given)
    lake.upsert(row("a"), row("b"))
    return lake


def answer_of(
    lake: Lake, operation: str, on_call: Callable[[Call], None], storage: type[CountingStorage] = UnlockedStorage
) -> BaseException | None:
    """What a writer is told that meets `on_call`; None when its write is done."""
    options = resolve({**lake.options, "hoodie.datasource.write.operation": operation})
    rows = as_source(table_of([row("a", "late", 9), row("new", "late", 9)]))
    try:
        write_table(
            storage(lake.storage, on_call=on_call), Request(operation, rows, options, LocalEngine(1)), SystemEnv()
        )
    except (HudiError, KeyboardInterrupt, ValueError) as error:
        return error
    return None


def error_of(cause: type[BaseException]) -> BaseException:
    return Unavailable("503", remedy="again") if cause is Unavailable else cause("x")


def is_begun(call: Call) -> bool:
    return call.op == "open_output" and not call.path.startswith(".hoodie")


def is_completion(call: Call) -> bool:
    return call.op == "create" and call.path.endswith("commit") and "/metadata/" not in call.path


def at_first(
    is_then: Callable[[Call], bool], act: Callable[[], object]
) -> tuple[Callable[[Call], None], dict[str, bool]]:
    """What others do at the first call of a kind, and whether they did it: the one who makes it sleeps meanwhile."""
    state = {"asleep": False}

    def others(call: Call) -> None:
        if is_then(call) and not state["asleep"]:
            state["asleep"] = True
            act()

    return others, state


def roll_back(lake: Lake) -> None:
    lake.table.services.rollback(lake.table.timeline().pending()[-1].requested)


def ensure_refused(lake: Lake) -> None:
    """Checks that nothing of the write counts: now, and when the timeline begins later."""
    assert lake.values() == {"a": "a", "b": "a"}
    for number in range(8):
        lake.upsert(row("c", f"c{number}", 2 + number, part="q"))
    lake.table.services.clean()
    lake.table.services.archive(**ARCHIVING)
    assert lake.values() == {"a": "a", "b": "a", "c": "c7"}
    assert lake.table.validate() == []
    lake.upsert(row("a", "more", 20))
    assert lake.values()["a"] == "more"


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 9])
def test_the_look_behind_a_completed_instant_is_taken_once_more(
    version: int, made: Any, operation: str, cause: type[BaseException]
) -> None:
    """Without it the instant of a write without files stays; of an overwrite, in the place of rows that were there."""
    lake, state = lake_of(version, made), {"created": False, "failed": False}

    def others(call: Call) -> None:
        if is_completion(call) and not state["created"]:
            state["created"] = True
            roll_back(lake)
        elif state["created"] and not state["failed"] and call.op == "list_dir" and call.path in ROOT:
            state["failed"] = True
            raise error_of(cause)

    answer = answer_of(lake, operation, others)
    assert state["failed"]
    assert isinstance(answer, Fenced if cause is Unavailable else cause)
    ensure_refused(lake)


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 9])
def test_the_look_is_taken_where_the_answer_to_the_completed_instant_is_lost(
    version: int, made: Any, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, create = lake_of(version, made), UnlockedStorage.create

    def lost(self: UnlockedStorage, path: str, data: bytes) -> Any:
        if not (path.endswith("commit") and "/metadata/" not in path):
            return create(self, path, data)
        roll_back(lake)
        create(self, path, data)
        raise error_of(Unavailable)

    monkeypatch.setattr(UnlockedStorage, "create", lost)
    assert isinstance(answer_of(lake, operation, lambda call: None), Unavailable | Fenced)
    ensure_refused(lake)


@pytest.mark.deep
@pytest.mark.sampled(6)
@pytest.mark.parametrize("nth", range(12))
@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 9])
def test_what_its_part_of_the_metadata_table_says_goes_with_it(
    version: int, made: Any, cause: type[BaseException], nth: int
) -> None:
    """One call fails after that was stored: before the completed instant, or while all is taken back."""
    lake, state = lake_of(version, made), {"asleep": -1, "stored": -1, "failed": -1}

    def others(call: Call) -> None:
        if is_begun(call) and state["asleep"] < 0:
            state["asleep"] = call.n
            roll_back(lake)
        elif call.op == "create" and "/metadata/" in call.path and call.path.endswith(".deltacommit"):
            state["stored"] = call.n
        elif state["stored"] > 0 and call.n > state["stored"] + nth and state["failed"] < 0:
            state["failed"] = call.n
            raise error_of(cause)

    assert answer_of(lake, "insert", others) is not None
    ensure_refused(lake)


@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_write_older_than_the_timeline_does_not_come_back(version: int, made: Any) -> None:
    """The timeline would begin with it, and what was archived since would not count."""
    lake, state = lake_of(version, made), {"asleep": False, "failed": False}
    expected = {"a": "a", "b": "a"}

    def others(call: Call) -> None:
        if is_begun(call) and not state["asleep"]:
            state["asleep"] = True
            roll_back(lake)
            for number in range(9):
                lake.upsert(row(f"m{number}", part=f"q{number}"))
                expected[f"m{number}"] = "a"
            lake.table.services.clean(**ARCHIVING)
            lake.table.services.archive(**ARCHIVING)
            state["woken"] = True
        elif "woken" in state and not state["failed"] and call.op == "list_dir" and call.path in ("", "p"):
            state["failed"] = True
            raise error_of(Unavailable)

    answer = answer_of(lake, "insert", others)
    assert isinstance(answer, Conflict | Fenced)
    assert state["failed"]
    assert lake.values() == expected
    lake.upsert(row("c"))
    assert lake.values() == {**expected, "c": "a"}


@pytest.mark.parametrize(("before", "after"), [(9, 6), (8, 6), (6, 8), (8, 9)])
@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
def test_files_of_a_completed_write_stay_in_a_table_that_changes_its_version(
    before: int, after: int, made: Any
) -> None:
    """Its timeline lies elsewhere then, and that of before tells nothing of the write."""
    lake = lake_of(before, made, **{"hoodie.metadata.enable": "false", "hoodie.write.auto.upgrade": "false"})
    state = {"completed": False, "interrupted": False, "moved": False}

    def others(call: Call) -> None:
        if is_completion(call):
            state["completed"] = True
        elif state["completed"] and not state["interrupted"]:
            state["interrupted"] = True
            raise KeyboardInterrupt
        elif state["interrupted"] and not state["moved"] and call.op == "list_dir":
            state["moved"] = True
            lake.table.services.upgrade(after)

    assert isinstance(answer_of(lake, "upsert", others), KeyboardInterrupt)
    assert state["moved"]
    lake.options = {**lake.options, "hoodie.write.table.version": str(after)}
    assert lake.values() == {"a": "late", "b": "a", "new": "late"}
    assert lake.table.validate() == []


def leave_an_older_instant(lake: Lake, how: str) -> None:
    """An instant that stays on the timeline when later writes are archived."""
    if how == "rollback":  # version 6 counts each action for itself
        lake.upsert(row("gone"))
        lake.table.services.rollback(lake.table.timeline().completed_writes()[-1].requested)
    elif how == "restore":
        first = lake.table.timeline().completed_writes()[0].requested
        lake.table.savepoints.create(first)
        lake.upsert(row("gone"))
        lake.table.services.restore(first)
        lake.table.savepoints.delete(first)
    else:
        lake.table.savepoints.create(lake.table.timeline().completed_writes()[0].requested)


@pytest.mark.parametrize(
    ("version", "how"), [(6, "rollback"), (6, "restore"), (9, "restore"), (8, "savepoint"), (9, "savepoint")]
)
@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
def test_a_write_that_was_archived_meanwhile_is_not_taken_for_one_that_was_rolled_back(
    version: int, how: str, made: Any
) -> None:
    """Both have no inflight file any more, and older instants may be there; the history knows."""
    lake, state = lake_of(version, made), {"created": False, "archived": False}
    archiving = {**ARCHIVING, "hoodie.archive.beyond.savepoint": "true"}
    leave_an_older_instant(lake, how)
    expected = {"a": "late", "b": "a", "new": "late"}

    def others(call: Call) -> None:
        if is_completion(call):
            state["created"] = True
        elif state["created"] and not state["archived"] and call.op == "list_dir" and call.path in ROOT:
            state["archived"] = True
            for number in range(9):
                lake.upsert(row(f"m{number}", part="q"))
                expected[f"m{number}"] = "a"
            lake.table.services.clean(**archiving)
            assert lake.table.services.archive(**archiving) is not None

    assert answer_of(lake, "upsert", others) is None
    assert state["archived"]
    assert lake.values() == expected
    assert lake.table.validate() == []


OPTIMISTIC = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
}


@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_timeline_does_not_begin_with_a_writer_that_slept_before_its_inflight_file(
    version: int, made: Any, metadata: str
) -> None:
    """Locks that hold: optimistic writers have none there. Its rollback is archived, too, when it wakes."""
    lake = lake_of(version, made, **OPTIMISTIC, **{"hoodie.metadata.enable": metadata})
    expected, state = {"a": "a", "b": "a"}, {"asleep": False}

    def others(call: Call) -> None:
        if state["asleep"] or not (
            call.op == "create" and call.path.endswith(".inflight") and "/metadata/" not in call.path
        ):
            return
        state["asleep"] = True
        roll_back(lake)
        for number in range(8):
            lake.upsert(row(f"s{number}", part="s"))
            expected[f"s{number}"] = "a"
        lake.table.services.clean(**ARCHIVING)
        lake.table.services.archive(**ARCHIVING)

    assert isinstance(answer_of(lake, "upsert", others, CountingStorage), Fenced)
    assert state["asleep"]
    assert lake.values() == expected
    assert lake.table.timeline().pending() == ()
    lake.upsert(row("c"))
    assert lake.values() == {**expected, "c": "a"}
    assert lake.table.validate() == []


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_timeline_does_not_begin_with_a_writer_that_slept_before_its_completed_instant(
    version: int, made: Any, metadata: str, operation: str
) -> None:
    """Its rollback is archived, too, when it wakes: no instant says that it was undone, the history lacks it."""
    lake = lake_of(version, made, **{"hoodie.metadata.enable": metadata})
    expected, state = {"a": "a", "b": "a"}, {"asleep": False}

    def others(call: Call) -> None:
        if not is_completion(call) or state["asleep"]:
            return
        state["asleep"] = True
        for number in range(9):
            lake.upsert(row(f"s{number}", part=f"s{number}"))
            expected[f"s{number}"] = "a"
        lake.table.services.clean(**ARCHIVING)
        if metadata == "true":
            lake.table.services.metadata(**{"hoodie.metadata.compact.max.delta.commits": "1"})
        assert lake.table.services.archive(**ARCHIVING) is not None

    assert isinstance(answer_of(lake, operation, others), Fenced)
    assert state["asleep"]
    assert lake.values() == expected
    lake.upsert(row("c"))
    assert lake.values() == {**expected, "c": "a"}
    assert lake.table.validate() == []


def is_metadata_commit(call: Call) -> bool:
    return call.op == "create" and call.path.endswith(".deltacommit") and "/metadata/" in call.path


def write_beside(lake: Lake) -> None:
    lake.upsert(row("b", "other", 8))


def plan_a_compaction(lake: Lake) -> None:
    assert lake.table.services.schedule_compaction() is not None


def compact_beside(lake: Lake) -> None:
    assert lake.table.services.compact() is not None


def compact_metadata(lake: Lake) -> None:
    assert lake.table.services.metadata(**{"hoodie.metadata.compact.max.delta.commits": "1"}) is not None


BESIDE = [
    (version, made, sleeps, act)
    for version in (6, 8, 9)
    for made, sleeps, act in (
        (Lake, is_completion, write_beside),
        (Lake, is_metadata_commit, write_beside),
        (logged_lake, is_completion, write_beside),
        (logged_lake, is_completion, plan_a_compaction),
        (logged_lake, is_completion, compact_beside),
        (Lake, is_metadata_commit, compact_metadata),
        (logged_lake, is_metadata_commit, compact_metadata),
    )
    if version > 6 or act not in (plan_a_compaction, compact_beside)  # which waits for the writer there
]


@pytest.mark.parametrize("concurrency", [{}, OPTIMISTIC], ids=["single", "optimistic"])
@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_metadata_table_that_is_made_anew_knows_of_no_writer_that_sleeps_before_its_completed_instant(
    version: int, made: Any, operation: str, concurrency: dict[str, str]
) -> None:
    """It would list none of its files. Its heart may beat."""
    lake = lake_of(version, made, **concurrency)
    others, state = at_first(is_completion, lambda: lake.table.indexes.rebuild("files"))

    assert isinstance(answer_of(lake, operation, others), Fenced)
    assert state["asleep"]
    ensure_refused(lake)


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize(("version", "made", "sleeps", "act"), BESIDE)
def test_an_optimistic_writer_whose_lock_was_lost_gives_way_to_what_others_did_meanwhile(
    version: int, made: Any, sleeps: Callable[[Call], bool], act: Callable[[Lake], None], operation: str
) -> None:
    """Nobody rolls its write back while its heart may beat. They looked for conflicts before it completed, and it did
    before they completed; its completion time was drawn before it slept.
    """
    lake = lake_of(version, made, **OPTIMISTIC, **{"hoodie.compact.inline": "false"})
    lake.upsert(row("b", "b2", 2))
    others, state = at_first(sleeps, lambda: act(lake))

    assert isinstance(answer_of(lake, operation, others), Fenced | Conflict)
    assert state["asleep"]
    expected = {"a": "a", "b": "other" if act is write_beside else "b2"}
    assert lake.values() == expected
    lake.upsert(row("c", part="q"))
    if made is logged_lake:
        lake.table.services.compact()
    assert lake.values() == {**expected, "c": "a"}
    assert lake.table.validate() == []


@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_so_does_a_single_writer_beside_an_optimistic_one(version: int, made: Any) -> None:
    """It has looked around before it told the metadata table."""
    lake, state = lake_of(version, made), {"asleep": False}
    alone = lake.options

    def others(call: Call) -> None:
        if is_metadata_commit(call) and not state["asleep"]:
            state["asleep"] = True
            lake.options = {**alone, **OPTIMISTIC}
            lake.upsert(row("a", "other", 8))
            lake.options = alone

    assert isinstance(answer_of(lake, "upsert", others), Fenced | Conflict)
    assert state["asleep"]
    assert lake.values() == {"a": "other", "b": "a"}
    lake.upsert(row("c", part="q"))
    assert lake.values() == {"a": "other", "b": "a", "c": "a"}
    assert lake.table.validate() == []


@pytest.mark.parametrize("concurrency", [{}, OPTIMISTIC], ids=["single", "optimistic"])
@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_an_index_that_was_built_knows_of_no_writer_that_sleeps_before_its_completed_instant(
    version: int, made: Any, concurrency: dict[str, str]
) -> None:
    """A key that it has written would be inserted a second time."""
    lake = lake_of(version, made, **concurrency)
    others, state = at_first(is_completion, lambda: lake.table.indexes.create("record_index"))

    assert isinstance(answer_of(lake, "upsert", others), Fenced | Conflict)
    assert state["asleep"]
    lake.options = {**lake.options, "hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"}
    lake.upsert(row("a", "again", 9), row("new", "again", 9))
    assert lake.values() == {"a": "again", "b": "a", "new": "again"}
    assert lake.table.validate() == []


def cluster_beside(lake: Lake) -> None:
    assert lake.table.services.cluster() is not None


@pytest.mark.parametrize("concurrency", [{}, OPTIMISTIC], ids=["single", "optimistic"])
@pytest.mark.parametrize("act", [write_beside, plan_a_compaction, compact_beside, cluster_beside])
@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_what_was_completed_before_others_went_on_from_it_stays(
    version: int, made: Any, act: Callable[[Lake], None], concurrency: dict[str, str]
) -> None:
    """They have seen it. The store's clock tells, not that of who has slept."""
    if made is Lake and act in (plan_a_compaction, compact_beside):
        pytest.skip("a copy-on-write table is not compacted")
    options = {"hoodie.compact.inline": "false", "hoodie.parquet.small.file.limit": "0"}
    lake, state = lake_of(version, made, **concurrency, **options), {"done": 0}
    lake.upsert(row("k"))

    def others(call: Call) -> None:
        if is_completion(call):
            state["done"] = 1
        elif state["done"] == 1 and call.op == "list_dir":
            state["done"] = 2
            act(lake)

    assert answer_of(lake, "upsert", others) is None
    assert state["done"] == 2
    expected = {"a": "late", "b": "other" if act is write_beside else "a", "k": "a", "new": "late"}
    assert lake.values() == expected
    lake.upsert(row("c", part="q"))
    if made is logged_lake:
        lake.table.services.compact()
    assert lake.values() == {**expected, "c": "a"}
    assert lake.table.validate() == []


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_who_was_rolled_back_while_it_wrote_tells_the_metadata_table_nothing(
    version: int, made: Any, operation: str
) -> None:
    """Locks that hold. If it died behind that, nobody would know that what it said there is to be taken back."""
    lake = lake_of(version, made, **OPTIMISTIC)
    state: dict[str, list[str]] = {"rolled back": [], "told": []}

    def others(call: Call) -> None:
        if is_begun(call) and not state["rolled back"]:
            state["rolled back"].append(call.path)
            roll_back(lake)
        elif state["rolled back"] and call.op == "create" and "/metadata/" in call.path:
            state["told"].append(call.path)

    assert isinstance(answer_of(lake, operation, others, CountingStorage), Fenced | Conflict)
    assert state["rolled back"]
    assert state["told"] == []
    ensure_refused(lake)
