"""A clean that runs beside writers that have begun: whatever its policy, it leaves what they may be reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from hoodie.services.cleaning.options import CleanOptions
from hoodie.services.cleaning.retention import earliest_retained, first_unseen
from hoodie.spec import CLEAN, CLUSTERING, COMMIT, COMPACTION, DELTA_COMMIT, REPLACE_COMMIT, V9, Instant, State
from hoodie.testing.hand_table import at
from hoodie.testing.interleaved import SEVERAL, Gate, run_in_order, writer
from hoodie.testing.lake import ROWS, Lake, logged_lake, row, table_of
from hoodie.timeline import Timeline
from hoodie.transaction import Committed, WriteConflict

NEWEST = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
LAST_COMMIT = {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": "1"}
POLICIES = pytest.mark.parametrize("policy", [NEWEST, LAST_COMMIT], ids=["versions", "commits"])
STATS = {"hoodie.metadata.index.partition.stats.enable": "false"}
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
NOON_SECOND = 12 * 3600


def cleans(lake: Lake) -> int:
    return sum(one.action == CLEAN for one in lake.table.timeline().completed())


def step(*actions: Callable[[], object]) -> Callable[[Gate], object]:
    """An actor of one step for each action."""

    def act(gate: Gate) -> None:
        for number, action in enumerate(actions):
            if number:
                gate.step()
            action()

    return act


# --- what is there afterwards


@POLICIES
def test_who_began_before_a_clean_still_finds_the_keys(version: int, policy: dict[str, str]) -> None:
    lake = Lake(version, {**SEVERAL, **STATS, **policy})
    lake.save([row("x", "0")])
    lake.upsert(row("x"))
    other = step(lambda: lake.upsert(row("x", "B", 2)))
    ends = run_in_order(tuple("ASAA"), {"A": writer(lake, [row("x", "A", 3)]), "S": other})
    assert isinstance(ends["A"], WriteConflict), ends["A"]
    assert lake.rows() == [("x", "B")]
    lake.upsert(row("x", "C", 4))
    assert lake.rows() == [("x", "C")]
    assert len(lake.table.files()) == 1
    assert lake.table.validate() == []


def test_a_slow_input_beside_a_write_and_its_clean_does_not_double_a_key(version: int) -> None:
    lake = Lake(version, {**SEVERAL, **STATS, **NEWEST, "hoodie.write.num.retries.on.conflict.failures": "0"})
    lake.save([row("x")])

    def slow() -> Iterator[pa.RecordBatch]:
        lake.upsert(row("x", "B", 2))
        yield from table_of([row("x", "A", 3)]).to_batches()

    with pytest.raises(WriteConflict):
        lake.write("upsert", pa.RecordBatchReader.from_batches(ROWS, slow()))
    assert lake.rows() == [("x", "B")]
    assert lake.table.validate() == []


def test_when_the_writer_is_done_the_next_clean_takes_what_stayed(version: int) -> None:
    lake = Lake(version, {**SEVERAL, **NEWEST})
    lake.save([row("x")])
    ends = run_in_order(
        tuple("ASAA"),
        {
            "A": writer(lake, [row("y", "A", 3, "q")]),
            "S": step(lambda: [lake.upsert(row("x", value, 2)) for value in "BCD"]),
        },
    )
    assert isinstance(ends["A"], Committed), ends["A"]
    assert len([path for path in lake.base_files() if path.startswith("p/")]) == 4
    lake.upsert(row("x", "E", 5))
    assert len([path for path in lake.base_files() if path.startswith("p/")]) == 1
    assert lake.values() == {"x": "E", "y": "A"}


def test_by_versions_nothing_goes_while_a_writer_may_read_replaced_groups(version: int) -> None:
    """Such a clean would tell archivers that they are gone."""
    lake = Lake(version, {**SEVERAL, **STATS, **NEWEST})
    lake.save([row("x"), row("z")])
    other = step(lambda: lake.write("insert_overwrite", [row("x", "B", 2)]))
    ends = run_in_order(tuple("ASAA"), {"A": writer(lake, [row("x", "A", 3)]), "S": other})
    assert isinstance(ends["A"], WriteConflict), ends["A"]
    assert lake.rows() == [("x", "B")]
    assert cleans(lake) == 0
    assert lake.table.services.clean() is not None
    assert len([path for path in lake.base_files() if path.startswith("p/")]) == 1
    assert lake.rows() == [("x", "B")]


def test_beside_a_compaction_and_a_clean_by_versions_a_key_stands_once(version: int) -> None:
    options = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
    lake = Lake(version, {**SEVERAL, **STATS, **NEWEST, **options})
    lake.save([row("x")])
    lake.upsert(row("x", "log", 2))
    other = step(lake.table.services.compact, lake.table.services.clean)
    ends = run_in_order(tuple("ASSAA"), {"A": writer(lake, [row("x", "A", 3)]), "S": other})
    assert isinstance(ends["A"], Committed | WriteConflict), ends["A"]
    assert not isinstance(ends["S"], Exception), ends["S"]
    assert lake.rows() == [("x", "A" if isinstance(ends["A"], Committed) else "log")]
    assert lake.table.validate() == []


def test_a_clean_beside_writers_that_overlapped_with_a_third_takes_nothing_from_it(version: int) -> None:
    """The newest commits were requested before A began, and completed after it."""
    lake = Lake(version, {**SEVERAL, **STATS, **LAST_COMMIT})
    lake.save([row("x"), row("y", part="q")])
    ends = run_in_order(
        tuple("BCABBCCSAA"),
        {
            "A": writer(lake, [row("x", "A", 3)]),
            "B": writer(lake, [row("x", "B", 2)]),
            "C": writer(lake, [row("y", "C", 2, "q")]),
            "S": step(lake.table.services.clean),
        },
    )
    assert isinstance(ends["B"], Committed), ends["B"]
    assert isinstance(ends["C"], Committed), ends["C"]
    assert isinstance(ends["A"], WriteConflict), ends["A"]
    assert lake.values() == {"x": "B", "y": "C"}


# --- the rule


def done(requested: int, completed: int, action: str = COMMIT) -> Instant:
    return Instant(at(requested), action, State.COMPLETED, at(completed))


def begun(requested: int, action: str = COMMIT) -> Instant:
    return Instant(at(requested), action, State.REQUESTED)


@pytest.mark.parametrize(
    ("instants", "unseen"),
    [
        ((done(1, 2), done(3, 4)), None),
        ((done(1, 2), begun(3), done(4, 5)), 3),
        ((done(1, 2), done(3, 8), done(4, 9), begun(5)), 3),
        ((done(1, 2), done(3, 4), begun(5), begun(6, REPLACE_COMMIT)), 5),
        ((done(1, 2), begun(3, COMPACTION), begun(4, DELTA_COMMIT)), 3),
        ((done(1, 2), begun(3, CLUSTERING)), 3),
        ((done(1, 2), begun(3, CLEAN)), None),
    ],
)
def test_the_first_pending_write_sees_what_completed_before_it_began(
    instants: tuple[Instant, ...], unseen: int | None
) -> None:
    assert first_unseen(Timeline(V9, instants)) == (None if unseen is None else at(unseen))


@pytest.mark.parametrize("options", [CleanOptions(commits=1), CleanOptions(policy="KEEP_LATEST_BY_HOURS", hours=0)])
def test_no_commit_is_kept_as_the_earliest_that_a_pending_write_does_not_see(options: CleanOptions) -> None:
    timeline = Timeline(V9, (done(1, 2), done(3, 8), done(4, 9), begun(5), done(NOON_SECOND, NOON_SECOND + 1)))
    found = earliest_retained(timeline, options, NOON, "UTC")
    assert found is not None
    assert found.requested == at(1)


def test_a_plan_that_is_left_lying_guards_its_own_groups_and_no_others() -> None:
    by_versions = {
        "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.clean.fileversions.retained": "1",
        "hoodie.clean.automatic": "false",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    lake = Lake(9, by_versions)
    lake.upsert(row("x", part="p"), row("y", part="q"))
    lake.upsert(row("x", "2", 2, part="p"))
    assert lake.table.services.schedule_compaction() is not None
    guarded = [path for path in lake.base_files() if path.startswith("p/")]
    for turn in range(3, 6):
        lake.write("insert_overwrite", [row("y", str(turn), turn, part="q")])
    assert lake.table.services.clean() is not None
    left = lake.base_files()
    assert len([path for path in left if path.startswith("q/")]) == 1
    assert set(guarded) <= set(left)
    lake.table.services.compact()
    assert lake.values() == {"x": "2", "y": "5"}


@pytest.mark.parametrize("version", [6, 8, 9])
@POLICIES
@pytest.mark.parametrize("what", ["insert_overwrite", "insert_overwrite_table", "delete_partition"])
def test_a_clean_leaves_what_a_pending_compaction_of_a_replaced_group_reads(
    version: int, policy: dict[str, str], what: str
) -> None:
    lake = logged_lake(version, **{"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"})
    lake.upsert(row("a"), row("b", part="q"))
    lake.upsert(row("a", "2", 2), row("b", "2", 2, part="q"))
    lake.table.services.schedule_compaction()
    lake.upsert(row("a", "3", 3))
    if what == "delete_partition":
        lake.table.delete_partition(["p"])
    else:
        lake.write(what, [row("c", "9", 9)])
    for number in (10, 11):
        lake.upsert(row("c", str(number), number))
    before = lake.values()
    lake.table.services.clean(**policy)
    assert lake.table.services.compact() is not None
    lake.table.services.clean(**policy)
    assert lake.values() == before
    lake.ensure_sound()
    assert not lake.table.timeline().pending()
