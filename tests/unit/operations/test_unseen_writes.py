"""Two writers that do not see each other leave what one of their orders leaves, or one of them gives way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import pytest

from hoodie.errors import HudiError
from hoodie.testing.interleaved import SEVERAL, WRITER_STEPS, Gate, orders, run_in_order, write_around, writer
from hoodie.testing.lake import ROWS, Lake, Row, row, table_of
from hoodie.transaction import Committed, WriteConflict

pytestmark = pytest.mark.deep

KINDS = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
APART = ("AABBBA", "BBAAAB")
TWO = orders({"A": WRITER_STEPS, "B": WRITER_STEPS})
POLICY = "hoodie.datasource.insert.dup.policy"


@dataclass(frozen=True, eq=False)
class Job:
    """What one of the writers does."""

    operation: str
    rows: Sequence[Row]
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def named(self) -> str:
        return "-".join([self.operation, *self.options.values()])


def job(operation: str, *rows: Row, **options: str) -> Job:
    return Job(operation, rows, {name.replace("__", "."): value for name, value in options.items()})


DROP = {POLICY.replace(".", "__"): "drop"}
FAIL = {POLICY.replace(".", "__"): "fail"}
ALSO_DROP = {"hoodie.datasource.write.insert.drop.duplicates".replace(".", "__"): "true"}
DELETE, UPSERT, INSERT, BULK = "delete", "upsert", "insert", "bulk_insert"
OVER, OVER_ALL, GONE = "insert_overwrite", "insert_overwrite_table", "delete_partition"

GIVE_WAY = [
    (job(OVER, row("k", "1", part="new")), job(OVER, row("k", "2", part="new"))),
    (job(OVER, row("k", "1")), job(UPSERT, row("k", "2"))),
    (job(OVER, row("k", "1")), job(INSERT, row("k", "2"), **DROP)),
    (job(OVER, row("k", "1", part="new")), job(OVER_ALL, row("k", "2", part="new"))),
    (job(OVER_ALL, row("k", "1")), job(UPSERT, row("k", "2", part="new"))),
    (job(GONE, row("x")), job(INSERT, row("x", "2"), row("k", "2"), **DROP)),
    (job(INSERT, row("k", "1"), **DROP), job(INSERT, row("k", "2"), **DROP)),
    (job(INSERT, row("k", "1"), **FAIL), job(INSERT, row("k", "2"), **FAIL)),
    (job(INSERT, row("k", "1"), **DROP), job(UPSERT, row("k", "2"))),
    (job(INSERT, row("x", "1"), row("k", "1"), **DROP), job(DELETE, row("x"), row("k"))),
    (job(INSERT, row("x", "1"), row("k", "1"), **ALSO_DROP), job(DELETE, row("x"), row("k"))),
]
"""Neither order explains what both would leave."""

GO_TOGETHER = [
    (job(OVER, row("k", "1")), job(INSERT, row("k", "2"))),
    (job(OVER, row("k", "1")), job(BULK, row("k", "2"))),
    (job(OVER_ALL, row("k", "1")), job(INSERT, row("k", "2", part="new"))),
    (job(OVER, row("k", "1", part="new")), job(UPSERT, row("x", "2"), row("k", "2"))),
    (job(OVER, row("k", "1")), job(OVER, row("k", "2", part="q"))),
    (job(GONE, row("x")), job(UPSERT, row("k", "2"))),
    (job(GONE, row("x")), job(INSERT, row("k", "2"))),
    (job(UPSERT, row("k", "1")), job(INSERT, row("k", "2"))),
    (job(UPSERT, row("k", "1")), job(BULK, row("k", "2"))),
    (job(INSERT, row("k", "1"), **DROP), job(INSERT, row("n", "2"), **DROP)),
    (job(INSERT, row("k", "1"), **DROP), job(DELETE, row("x"))),
    (job(INSERT, row("x", "1"), row("k", "1"), **DROP), job(DELETE, row("k"))),
    (job(INSERT, row("x", "1"), row("k", "1"), **DROP), job(UPSERT, row("x", "2", 2))),
]
"""One order explains what both leave."""


def lake_of(version: int, kind: str) -> Lake:
    """`x` is in partition `p`, `y` in `q`, and `r` was emptied. New rows begin file groups of their own."""
    options = {
        "hoodie.datasource.write.table.type": KINDS[kind],
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.merge.small.file.group.candidates.limit": "0",
        "hoodie.metadata.enable": "false",
    }
    lake = Lake(version, options)
    lake.upsert(row("x"), row("y", part="q"), row("z", part="r"))
    lake.table.delete_partition("r")
    return lake


def rows(lake: Lake) -> list[tuple[object, ...]]:
    return lake.rows(("id", "part", "v"))


@cache
def one_after_the_other(version: int, kind: str, *jobs: Job) -> list[tuple[object, ...]]:
    """The rows that these leave; one that may refuse its rows is let go."""
    lake = lake_of(version, kind)
    for one in jobs:
        try:
            lake.write(one.operation, one.rows, one.options)
        except HudiError:
            assert POLICY in one.options
    return rows(lake)


def ends_of(lake: Lake, order: Sequence[str], jobs: Mapping[str, Job]) -> dict[str, object]:
    actors = {name: writer(lake, one.rows, one.operation, **one.options) for name, one in jobs.items()}  # type: ignore[arg-type]
    return run_in_order(order, actors)


def ensure_explained(version: int, kind: str, order: Sequence[str], jobs: Mapping[str, Job]) -> int:
    """How many committed, after a check that some order of these leaves what is there."""
    lake = lake_of(version, kind)
    ends = ends_of(lake, order, jobs)
    done = [name for name, end in ends.items() if isinstance(end, Committed)]
    for name in ends.keys() - set(done):
        overlapping = isinstance(ends[name], WriteConflict)
        assert overlapping or (POLICY in jobs[name].options and isinstance(ends[name], HudiError)), ends[name]
    explained = [one_after_the_other(version, kind, *(jobs[name] for name in names)) for names in (done, done[::-1])]
    assert rows(lake) in explained
    assert lake.table.validate() == []
    return len(done)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", APART)
@pytest.mark.parametrize(("one", "two"), GIVE_WAY, ids=lambda one: one.named)
def test_what_no_order_explains_is_a_conflict(version: int, kind: str, order: str, one: Job, two: Job) -> None:
    assert ensure_explained(version, kind, order, {"A": one, "B": two}) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", APART)
@pytest.mark.parametrize(("one", "two"), GO_TOGETHER, ids=lambda one: one.named)
def test_what_an_order_explains_is_none(version: int, kind: str, order: str, one: Job, two: Job) -> None:
    assert ensure_explained(version, kind, order, {"A": one, "B": two}) == 2


@pytest.mark.parametrize("order", TWO, ids="".join)
@pytest.mark.parametrize(("one", "two"), [GIVE_WAY[1], GIVE_WAY[6], GO_TOGETHER[0]], ids=lambda one: one.named)
def test_in_every_order_of_their_steps_something_explains_the_rows(order: tuple[str, ...], one: Job, two: Job) -> None:
    assert ensure_explained(9, "cow", order, {"A": one, "B": two})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", APART)
def test_of_two_that_overwrite_an_emptied_table_one_does(version: int, kind: str, order: str) -> None:
    lake = lake_of(version, kind)
    lake.table.delete_partition(["p", "q"])
    ends = ends_of(lake, order, {name: job(OVER_ALL, row("k", name)) for name in "AB"})
    assert [name for name, end in ends.items() if isinstance(end, Committed)] == [order[2]]
    assert lake.values() == {"k": order[2]}


def test_the_error_names_the_overwrite_and_its_partition() -> None:
    lake = lake_of(9, "cow")
    ends = ends_of(lake, APART[0], {"A": job(UPSERT, row("k", "1")), "B": job(OVER, row("k", "2"))})
    error, other = ends["A"], ends["B"]
    assert isinstance(error, WriteConflict)
    assert isinstance(other, Committed)
    assert (error.facts["other"], error.facts["partitions"]) == (other.instant, ("p",))
    assert "overwrote partitions that this write wrote to" in str(error)


@pytest.mark.parametrize("retries", [0, 1])
def test_who_gives_way_to_an_overwrite_is_tried_again(retries: int) -> None:
    lake = lake_of(9, "cow")
    options = {**SEVERAL, "hoodie.write.num.retries.on.conflict.failures": str(retries)}
    rows, overwritten = table_of([row("k", "A", 2)], ROWS), partial(lake.write, OVER, [row("k", "B")], SEVERAL)
    if retries:
        write_around(lake, UPSERT, rows, overwritten, options)
    else:
        with pytest.raises(WriteConflict):
            write_around(lake, UPSERT, rows, overwritten, options)
    assert lake.values() == {"k": "A" if retries else "B", "y": "a"}


@pytest.mark.parametrize("operation", [UPSERT, "delete", OVER, GONE])
def test_a_file_group_that_was_changed_and_not_found_is_a_conflict(version: int, operation: str) -> None:
    """Its older file was gone when this write looked, and the newer one is of a write it does not know."""
    lake = lake_of(version, "cow")
    fills = {**SEVERAL, "hoodie.parquet.small.file.limit": "100000000"}
    changes = [row("x", "B", 2)] if operation in (UPSERT, "delete") else [row("n", "B")]
    old = [path for path in lake.base_files() if path.startswith("p/")]

    def change(_: Gate) -> object:
        done = lake.write(UPSERT if operation in (UPSERT, "delete") else INSERT, changes, fills)
        for path in old:
            lake.storage.delete(path)
        return done

    ends = run_in_order("ASAA", {"A": writer(lake, [row("x", "A", 3)], operation), "S": change})  # type: ignore[arg-type]
    assert isinstance(ends["S"], Committed)
    assert isinstance(ends["A"], WriteConflict), ends["A"]
    assert "did not find" in str(ends["A"])
    assert {key for key, value in lake.values().items() if value == "B"} == {one["id"] for one in changes}


def test_a_file_group_of_a_compaction_that_was_planned_before_is_looked_for_too(version: int) -> None:
    """The compaction is no move of others to the writer, but what it read is gone when this writer looks."""
    lake = lake_of(version, "mor")
    lake.upsert(row("x", "log", 2))
    assert lake.table.services.schedule_compaction(**{"hoodie.compact.inline.max.delta.commits": "1"}) is not None
    old = [path for path in lake.files() if path.startswith("p/") and not path.startswith("p/.hoodie")]

    def compact(_: Gate) -> object:
        done = lake.table.services.compact()
        for path in old:
            lake.storage.delete(path)
        return done

    ends = run_in_order("ASAA", {"A": writer(lake, [row("x", "A", 3)]), "S": compact})  # type: ignore[arg-type]
    assert isinstance(ends["A"], WriteConflict), ends["A"]
    assert "did not find" in str(ends["A"])
    assert lake.values() == {"x": "log", "y": "a"}


def test_a_file_group_that_began_meanwhile_and_was_changed_is_none() -> None:
    lake = lake_of(9, "cow")

    def twice(_: Gate) -> object:
        lake.write(UPSERT, [row("n", "B", 2)], SEVERAL)
        return lake.write(UPSERT, [row("n", "B", 3)], SEVERAL)

    ends = run_in_order("AASA", {"A": writer(lake, [row("k", "A")]), "S": twice})
    assert isinstance(ends["A"], Committed), ends["A"]
    assert lake.values() == {"x": "a", "y": "a", "n": "B", "k": "A"}


def test_a_key_of_a_plain_insert_that_was_updated_since_is_not_added_again() -> None:
    """The update found one row, so no order has two."""
    lake = lake_of(9, "cow")

    def insert_and_update(_: Gate) -> object:
        lake.write(INSERT, [row("k", "B", 2)], SEVERAL)
        return lake.write(UPSERT, [row("k", "C", 3)], SEVERAL)

    ends = run_in_order("AASA", {"A": writer(lake, [row("k", "A")]), "S": insert_and_update})
    assert isinstance(ends["A"], WriteConflict)
    assert lake.values() == {"x": "a", "y": "a", "k": "C"}
