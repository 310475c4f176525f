"""Writers that hold the lock only to begin and to commit: every order of their steps, and what the loser leaves."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hoodie.errors import Conflict, Invalid, Missing
from hoodie.storage import MemoryStorage, Storage
from hoodie.storage.object import ObjectStorage
from hoodie.table import Table
from hoodie.testing.interleaved import SEVERAL, WRITER_STEPS, Gate, orders, run_in_order, writer
from hoodie.testing.lake import Lake, row, table_of
from hoodie.transaction import Committed, WriteConflict

pytestmark = pytest.mark.deep

MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
COW = {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
TWO = orders({"A": WRITER_STEPS, "B": WRITER_STEPS})
WITH_SERVICE = orders({"A": WRITER_STEPS, "S": 2})


def overlap(order: tuple[str, ...]) -> bool:
    """Whether the second writer begins before the first one has committed."""
    first, second = ("A", "B") if order[0] == "A" else ("B", "A")
    return order.index(second) < len(order) - 1 - order[::-1].index(first)


def ensure_whole(lake: Lake) -> None:
    """Nothing is pending or left behind, and the table is sound."""
    assert lake.table.timeline().pending() == ()
    assert not [path for path in lake.files() if "/.temp/" in path or "/.heartbeat/" in path]
    assert lake.table.validate() == []


def committed(ends: dict[str, object]) -> list[str]:
    """Who committed, in this order. Nobody failed in another way than by giving way."""
    for end in ends.values():
        assert isinstance(end, Committed | WriteConflict), end
    done = {name: end for name, end in ends.items() if isinstance(end, Committed)}
    return sorted(done, key=lambda name: done[name].completed or done[name].instant)


@pytest.mark.parametrize("options", [COW, MOR], ids=["cow", "mor"])
@pytest.mark.parametrize("order", TWO, ids="".join)
def test_of_two_that_change_the_same_rows_the_later_gives_way(order: tuple[str, ...], options: dict[str, str]) -> None:
    lake = Lake(options=options)
    lake.upsert(row("a"), row("b", part="other"))
    ends = run_in_order(order, {name: writer(lake, [row("a", name, 2), row(name, name)]) for name in "AB"})
    done = committed(ends)
    assert len(done) == (1 if overlap(order) else 2)
    assert lake.values() == {"a": done[-1], "b": "a", **{name: name for name in done}}
    ensure_whole(lake)


@pytest.mark.parametrize("order", TWO, ids="".join)
def test_of_two_that_add_the_same_key_one_does(order: tuple[str, ...]) -> None:
    """Without a look at the keys both would begin a file group of their own, and the key would be there twice."""
    lake = Lake(options={"hoodie.metadata.enable": "false"})
    lake.upsert(row("a"))
    ends = run_in_order(order, {name: writer(lake, [row("new", name, 2, "q"), row(name, part="q")]) for name in "AB"})
    done = committed(ends)
    assert len(done) == (1 if overlap(order) else 2)
    assert lake.values() == {"a": "a", "new": done[-1], **dict.fromkeys(done, "a")}
    ensure_whole(lake)


@pytest.mark.parametrize("order", [("A", "B", "A", "B", "A", "B"), ("A", "A", "B", "B", "B", "A")], ids="".join)
def test_two_that_change_different_rows_both_commit(version: int, order: tuple[str, ...]) -> None:
    lake = Lake(version)
    lake.upsert(row("a"), row("b", part="q"))
    ends = run_in_order(order, {"A": writer(lake, [row("a", "A", 2)]), "B": writer(lake, [row("b", "B", 2, "q")])})
    assert len(committed(ends)) == 2
    assert lake.values() == {"a": "A", "b": "B"}
    ensure_whole(lake)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("order", WITH_SERVICE, ids="".join)
def test_a_compaction_beside_a_writer_loses_nothing(version: int, order: tuple[str, ...]) -> None:
    lake = Lake(version, {**MOR, "hoodie.compact.inline": "false", "hoodie.metadata.enable": "false"})
    lake.upsert(row("a"))
    lake.upsert(row("a", "log", 2))

    def compact(gate: Gate) -> object:
        planned = lake.table.services.schedule_compaction()
        gate.step()
        return None if planned is None else lake.table.services.compact(planned.requested)

    ends = run_in_order(order, {"A": writer(lake, [row("a", "A", 3)]), "S": compact})
    done = committed({"A": ends["A"]})
    assert not isinstance(ends["S"], Exception), ends["S"]
    assert done or version == 6, "where logs find their slice by completion nobody gives way"
    assert lake.values() == {"a": "A" if done else "log"}
    lake.table.services.compact()
    assert lake.values() == {"a": "A" if done else "log"}
    ensure_whole(lake)


@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE"])
@pytest.mark.parametrize("order", WITH_SERVICE, ids="".join)
def test_a_deleted_key_that_comes_back_beside_a_compaction_stands_once(order: tuple[str, ...], index: str) -> None:
    """The compaction knows of its deletion alone. The next upsert, which looks into base files, must find it."""
    options = {"hoodie.compact.inline": "false", "hoodie.metadata.enable": "false", "hoodie.index.type": index}
    lake = Lake(options={**MOR, **options, "hoodie.table.ordering.fields": None})
    lake.upsert(row("a"), row("b"), row("c"))
    lake.write("delete", [row("a")])

    def compact(gate: Gate) -> object:
        planned = lake.table.services.schedule_compaction()
        gate.step()
        return None if planned is None else lake.table.services.compact(planned.requested)

    again = [row("a", "A", 2), row("b", "A", 2)]
    ends = run_in_order(order, {"A": writer(lake, again), "S": compact})
    assert not isinstance(ends["S"], Exception), ends["S"]
    if not committed({"A": ends["A"]}):
        conflict = ends["A"]
        assert isinstance(conflict, WriteConflict)
        assert conflict.facts["keys"] == ("a",)
        lake.upsert(*again)
    assert sorted(lake.rows()) == [("a", "A"), ("b", "A"), ("c", "a")]
    lake.upsert(row("a", "9", 3))
    assert sorted(lake.rows()) == [("a", "9"), ("b", "A"), ("c", "a")]
    ensure_whole(lake)


@pytest.mark.parametrize("order", WITH_SERVICE, ids="".join)
def test_a_clustering_beside_a_writer_loses_nothing(order: tuple[str, ...]) -> None:
    lake = Lake(options={"hoodie.metadata.enable": "false", "hoodie.parquet.small.file.limit": "0"})
    lake.upsert(row("a"))
    lake.upsert(row("b"))

    def cluster(gate: Gate) -> object:
        planned = lake.table.services.cluster(op="schedule")
        gate.step()
        return None if planned is None else lake.table.services.cluster(planned.instant, "execute")

    ends = run_in_order(order, {"A": writer(lake, [row("a", "A", 2)]), "S": cluster})
    gave_way = [end for end in ends.values() if isinstance(end, Conflict)]
    assert len(gave_way) <= 1
    assert lake.values() == {"a": "a" if ends["A"] in gave_way else "A", "b": "a"}
    assert lake.table.validate() == []


@pytest.mark.parametrize("options", [COW, MOR], ids=["cow", "mor"])
def test_the_error_tells_who_was_faster_and_what_both_changed(options: dict[str, str]) -> None:
    lake = Lake(options=options)
    lake.upsert(row("a"))
    ends = run_in_order(tuple("AABBBA"), {name: writer(lake, [row("a", name, 2)]) for name in "AB"})
    error, winner = ends["A"], ends["B"]
    assert isinstance(error, WriteConflict)
    assert isinstance(winner, Committed)
    assert error.facts["other"] == winner.instant
    assert error.facts["owner"].operation == "upsert"
    assert [partition for partition, _ in error.facts["groups"]] == ["p"]
    assert error.facts["keys"] == ("a",)
    assert error.facts["partitions"] == ("p",)
    assert (error.facts["operation"], error.facts["other_operation"]) == ("UPSERT", "UPSERT")
    assert error.facts["writer"].process == os.getpid()
    assert f"the UPSERT {winner.instant} by process " in str(error)


def test_who_gives_way_is_tried_again_as_often_as_options_say() -> None:
    lake = Lake(options={"hoodie.metadata.enable": "false"})
    lake.upsert(row("count", "0"))
    options = {**lake.options, **SEVERAL, "hoodie.write.num.retries.on.conflict.failures": "100"}
    table = Table.open(lake.uri, options=options, wait=60)

    def add(number: int) -> None:
        table.upsert(table_of([row("count", str(number), 2 + number), row(f"k{number}")]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(12)))
    assert lake.values() == {"count": "11", **{f"k{number}": "a" for number in range(12)}}
    ensure_whole(lake)


def test_beside_others_pending_writes_are_not_taken_for_dead(version: int) -> None:
    """Neither by another optimistic writer nor by one that holds the lock throughout."""
    lake = Lake(version)
    lake.upsert(row("a"), row("b", part="q"))

    def single(gate: Gate) -> object:
        del gate
        return lake.upsert(row("b", "S", 2, "q"))

    ends = run_in_order(tuple("AASA"), {"A": writer(lake, [row("a", "A", 2)]), "S": single})
    assert len(committed(ends)) == 2
    assert lake.values() == {"a": "A", "b": "S"}
    ensure_whole(lake)


def test_eager_rollbacks_are_refused_beside_others() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    with pytest.raises(Invalid, match="EAGER"):
        lake.write("upsert", [row("a")], {**SEVERAL, "hoodie.clean.failed.writes.policy": "EAGER"})


@pytest.mark.parametrize("operation", ["insert_overwrite", "delete"])
def test_other_operations_give_way_too(operation: str) -> None:
    lake = Lake()
    lake.upsert(row("a"), row("b", part="q"))
    ends = run_in_order(
        tuple("AABBBA"),
        {"A": writer(lake, [row("a", "A", 2)], operation), "B": writer(lake, [row("a", "B", 2)])},  # type: ignore[arg-type]
    )
    assert isinstance(ends["A"], WriteConflict)
    assert lake.values() == {"a": "B", "b": "a"}
    ensure_whole(lake)


@pytest.mark.parametrize("looks", [True, False])
def test_another_schema_that_came_meanwhile_is_a_conflict_unless_options_say_otherwise(looks: bool) -> None:
    lake = Lake(options={"hoodie.metadata.enable": "false"})
    lake.upsert(row("a"), row("b", part="q"))
    wide = table_of([row("b", part="q")]).append_column("more", table_of([row("b")])["v"])

    def evolve(gate: Gate) -> object:
        del gate
        return lake.write("upsert", wide)

    option = {"hoodie.write.concurrency.schema.conflict.resolution.enable": str(looks).lower()}
    ends = run_in_order(tuple("AASA"), {"A": writer(lake, [row("a", "A", 2)], **option), "S": evolve})
    if looks:
        assert isinstance(ends["A"], WriteConflict)
        assert "schema" in str(ends["A"])
        filling = "hoodie.write.set.null.for.missing.columns"
        assert f"{filling}=true" in str(ends["A"])
        lake.write("upsert", [row("a", "A", 2)], {filling: "true"})
        assert lake.rows(("id", "v", "more")) == [("a", "A", None), ("b", "a", "a")]
    else:
        assert isinstance(ends["A"], Committed)


def file_of(lake: Lake, committed: Committed | None) -> str:
    """The one base file of a write."""
    assert committed is not None
    (path,) = [path for path in lake.base_files() if committed.instant in path and not path.startswith(".hoodie")]
    return path


def taking(path: str, before: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first who opens a file finds it gone, and that another did something before."""
    taken = False

    def watched(opened: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        def open_input(self: Storage, asked: str) -> Any:
            nonlocal taken
            if not taken and asked.rpartition("/")[2] == path.rpartition("/")[2]:
                taken = True
                before()
                self.delete(asked)
            return opened(self, asked)

        return open_input

    for kind in (MemoryStorage, ObjectStorage):
        monkeypatch.setattr(kind, "open_input", watched(kind.open_input))


def test_new_keys_that_nobody_can_read_any_more_are_a_conflict(version: int) -> None:
    """The other's file was changed again, and cleaned since."""
    lake = Lake(version, {"hoodie.parquet.small.file.limit": "0"})
    lake.upsert(row("a"))

    def single(gate: Gate) -> object:
        del gate
        first = file_of(lake, lake.upsert(row("new", "S", 2)))
        lake.upsert(row("new", "S2", 2))
        return lake.storage.delete(first)

    ends = run_in_order(tuple("AASA"), {"A": writer(lake, [row("new", "A", 3)]), "S": single})
    error = ends["A"]
    assert isinstance(error, WriteConflict), error
    assert "may have added the same keys, in a file that is cleaned by now, meanwhile" in str(error)
    assert error.remedy is not None
    assert lake.values() == {"a": "a", "new": "S2"}


@pytest.mark.parametrize("retries", [0, 1])
def test_a_file_that_goes_while_others_are_at_work_is_a_conflict(
    version: int, retries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a cleaner that knows nothing of this writer took the state it began with."""
    lake = Lake(version, {**SEVERAL, "hoodie.write.num.retries.on.conflict.failures": str(retries)})
    first = file_of(lake, lake.save([row("a")]))
    taking(first, lambda: lake.upsert(row("a", "S", 2)), monkeypatch)
    if retries:
        lake.upsert(row("a", "A", 3))
    else:
        with pytest.raises(WriteConflict, match="is gone") as told:
            lake.upsert(row("a", "A", 3))
        assert first in str(told.value.facts["path"])
    assert lake.values() == {"a": "A" if retries else "S"}
    assert lake.table.timeline().pending() == ()


def test_a_file_that_the_newest_state_needs_is_lost_whoever_is_at_work(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repeated write would not find it either."""
    lake = Lake(version, {**SEVERAL, "hoodie.write.num.retries.on.conflict.failures": "3"})
    first = file_of(lake, lake.save([row("a")]))
    others: list[object] = []

    def work() -> None:
        others.append(lake.upsert(row(f"n{len(others)}", part="q")))
        taking(first, work, monkeypatch)  # others are at work beside each try

    taking(first, work, monkeypatch)
    with pytest.raises(Missing):
        lake.upsert(row("a", "A", 3))
    assert len(others) == 1


def test_a_file_that_is_gone_where_nobody_else_was_at_work_is_missing(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(version, {**SEVERAL, "hoodie.write.num.retries.on.conflict.failures": "1"})
    first = file_of(lake, lake.save([row("a")]))
    taking(first, lambda: None, monkeypatch)
    with pytest.raises(Missing):
        lake.upsert(row("a", "A", 3))
