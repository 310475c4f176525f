"""Writers that bear each other's log files: every order of their steps, what they refuse, and who wins."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hoodie.errors import Conflict, Invalid, Unsupported
from hoodie.state.pending_plans import PendingPlans
from hoodie.testing.interleaved import WRITER_STEPS, Gate, orders, run_in_order, writer
from hoodie.testing.lake import Lake, row
from hoodie.transaction import Committed, WriteConflict

pytestmark = pytest.mark.deep

MODE = "hoodie.write.concurrency.mode"
NON_BLOCKING = {MODE: "NON_BLOCKING_CONCURRENCY_CONTROL"}
PREFER = {
    "hoodie.write.lock.conflict.resolution.strategy": (
        "org.apache.hudi.client.transaction.PreferWriterConflictResolutionStrategy"
    )
}
BUCKETS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.enable": "false",
    **NON_BLOCKING,
}
TWO = orders({"A": WRITER_STEPS, "B": WRITER_STEPS})
KEYS = [f"k{number}" for number in range(8)]


def lake_of(version: int = 9, **more: str) -> Lake:
    return Lake(version, {**BUCKETS, **more})


def both(lake: Lake, order: tuple[str, ...], a: list[Mapping[str, object]], b: list[Mapping[str, object]]) -> None:
    """Both writers commit."""
    ends = run_in_order(order, {"A": writer(lake, a, **NON_BLOCKING), "B": writer(lake, b, **NON_BLOCKING)})
    assert all(isinstance(end, Committed) for end in ends.values()), ends


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("order", TWO, ids="".join)
def test_both_commit_and_the_ordering_value_says_who_wins(order: tuple[str, ...], version: int) -> None:
    lake = lake_of(version)
    lake.upsert(*(row(key) for key in KEYS))
    both(lake, order, [row(key, "A", 3) for key in KEYS], [row(key, "B", 2) for key in KEYS])
    assert lake.values() == dict.fromkeys(KEYS, "A")
    lake.table.services.compact()
    assert lake.values() == dict.fromkeys(KEYS, "A")
    assert lake.table.validate() == []


@pytest.mark.parametrize("order", TWO, ids="".join)
def test_two_that_begin_the_same_buckets_write_the_same_file_groups(order: tuple[str, ...]) -> None:
    lake = lake_of()
    lake.upsert(row("first", part="other"))
    both(lake, order, [row(key, "A", 2) for key in KEYS[:6]], [row(key, "B", 3) for key in KEYS[2:]])
    wanted = {"first": "a", **dict.fromkeys(KEYS[:2], "A"), **dict.fromkeys(KEYS[2:], "B")}
    assert lake.values() == wanted
    assert len([one for one in lake.table.files() if one.partition == "p"]) == 2
    assert all(one.file_id.endswith("-0000-0000-0000-000000000000-0") for one in lake.table.files())
    assert all(one.base is None for one in lake.table.files())
    lake.table.services.compact()
    assert lake.values() == wanted
    lake.upsert(*(row(key, "again", 4) for key in KEYS))
    assert lake.values() == {"first": "a", **dict.fromkeys(KEYS, "again")}
    assert lake.table.validate() == []


@pytest.mark.parametrize("order", orders({"A": WRITER_STEPS, "B": WRITER_STEPS, "S": 2})[::40], ids="".join)
def test_a_compaction_between_them_changes_no_row(order: tuple[str, ...]) -> None:
    lake = lake_of()
    lake.upsert(*(row(key) for key in KEYS))
    lake.upsert(*(row(key, "log", 2) for key in KEYS))

    def compact(gate: Gate) -> object:
        planned = lake.table.services.schedule_compaction()
        gate.step()
        return None if planned is None else lake.table.services.compact(planned.requested)

    writers = {name: writer(lake, [row(key, name, ts) for key in KEYS], **NON_BLOCKING) for name, ts in ABOVE}
    ends = run_in_order(order, {**writers, "S": compact})
    assert isinstance(ends["A"], Committed)
    assert isinstance(ends["B"], Committed)
    assert not isinstance(ends["S"], Exception), ends["S"]
    assert lake.values() == dict.fromkeys(KEYS, "B")
    lake.table.services.compact()
    assert lake.values() == dict.fromkeys(KEYS, "B")


ABOVE = (("A", 5), ("B", 7))


def test_a_delete_by_key_gives_way_and_so_does_a_bulk_insert() -> None:
    """Keys of a delete go by time, which log files of several writers do not tell; a bulk insert makes base files."""
    lake = lake_of()
    lake.upsert(*(row(key) for key in KEYS))
    ends = run_in_order(
        tuple("AABBBA"),
        {
            "A": writer(lake, [row(KEYS[0])], "delete", **NON_BLOCKING),
            "B": writer(lake, [row(KEYS[0], "B", 2)], **NON_BLOCKING),
        },
    )
    assert isinstance(ends["A"], WriteConflict)
    assert lake.values() == {**dict.fromkeys(KEYS, "a"), KEYS[0]: "B"}
    new = lake_of()
    new.upsert(row("first", part="other"))
    ends = run_in_order(
        tuple("AABBBA"),
        {
            "A": writer(new, [row(key) for key in KEYS], "bulk_insert", **NON_BLOCKING),
            "B": writer(new, [row(key, "B", 2) for key in KEYS], **NON_BLOCKING),
        },
    )
    assert isinstance(ends["A"], WriteConflict)
    assert new.values() == {"first": "a", **dict.fromkeys(KEYS, "B")}


@pytest.mark.parametrize(
    ("version", "options", "operation", "says"),
    [
        (6, {}, "upsert", "versions 8 and later"),
        (9, {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}, "upsert", "merge-on-read"),
        (9, {"hoodie.index.type": "BLOOM"}, "upsert", "bucket index"),
        (9, {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, "upsert", "engine SIMPLE"),
        (9, {"hoodie.table.ordering.fields": None}, "upsert", "ordering fields"),
        (9, {}, "insert_overwrite", "replaces file groups"),
        (9, {}, "insert_overwrite_table", "replaces file groups"),
    ],
)
def test_what_the_mode_is_not_for_is_refused(version: int, options: dict[str, str], operation: str, says: str) -> None:
    lake = Lake(version, {**BUCKETS, **options, MODE: "SINGLE_WRITER"})
    lake.upsert(row("a"))
    files = lake.files()
    with pytest.raises(Invalid, match=says):
        lake.write(operation, [row("a", "b", 2)], NON_BLOCKING)  # type: ignore[arg-type]
    assert lake.files() == files


def test_an_unknown_strategy_is_refused() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    named = {"hoodie.write.lock.conflict.resolution.strategy": "com.example.Mine"}
    with pytest.raises(Unsupported, match=r"com\.example\.Mine"):
        lake.write("upsert", [row("a")], named)


@pytest.mark.parametrize("prefers", [True, False])
def test_a_clustering_that_prefers_writers_gives_way_to_one_that_is_running(
    prefers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clustering was planned by somebody who does not look for running writes, as Hudi's does not."""
    strategy = PREFER if prefers else {}
    lake = Lake(options={"hoodie.metadata.enable": "false", "hoodie.parquet.small.file.limit": "0"})
    lake.upsert(row("a"))
    lake.upsert(row("b"))

    def cluster(gate: Gate) -> object:
        with monkeypatch.context() as unseen:
            unseen.setattr(PendingPlans, "incomplete_writes", lambda plans: ())
            plan = lake.table.services.cluster(op="schedule")
        gate.step()
        return lake.table.services.cluster(plan.instant, "execute", **strategy)

    ends = run_in_order(tuple("AASSA"), {"A": writer(lake, [row("a", "A", 2)], **strategy), "S": cluster})
    if prefers:
        assert isinstance(ends["S"], Conflict)
        assert "is changing" in str(ends["S"])
        assert isinstance(ends["A"], Committed)
        assert lake.values() == {"a": "A", "b": "a"}
    else:
        assert not isinstance(ends["S"], Exception)
        assert isinstance(ends["A"], WriteConflict)
        assert lake.values() == {"a": "a", "b": "a"}
