"""Strategies and triggers as tables of what they see and what they choose."""

from __future__ import annotations

from datetime import date

import pytest

from hoodie.config import resolve
from hoodie.errors import Invalid
from hoodie.services.compaction.options import STRATEGIES, StrategyLimits, parse_compact_options, parse_strategies
from hoodie.services.compaction.strategy import StrategyFacts, chosen_operations, chosen_partitions, day_of, metrics_of
from hoodie.services.compaction.trigger import compaction_due
from hoodie.spec import (
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    V6,
    V9,
    BaseFileName,
    CompactionOperation,
    Instant,
    LogFileName,
    State,
    TableConfig,
)
from hoodie.spec.new_table import NewTable, new_table_properties
from hoodie.testing.hand_table import at
from hoodie.timeline import Timeline
from hoodie.view import BaseFile, FileSlice, LogFile

FACTS = StrategyFacts(date(2024, 5, 10), 1 << 20)
PACKAGE = "org.apache.hudi.table.action.compact.strategy."


def operation(
    name: str, *, logs: int = 1, log_bytes: int = 0, io_mb: int = 0, partition: str = "p"
) -> CompactionOperation:
    metrics = {"TOTAL_LOG_FILES_SIZE": float(log_bytes), "TOTAL_IO_MB": float(io_mb)}
    return CompactionOperation(partition, name, "1", tuple(f"l{n}" for n in range(logs)), None, metrics)


SOME = (
    operation("small", logs=3, log_bytes=10, io_mb=50),
    operation("large", logs=1, log_bytes=90, io_mb=70),
    operation("middle", logs=2, log_bytes=40, io_mb=10),
)


def chosen(strategies: str, operations=SOME, **limits: object) -> list[str]:
    names = parse_strategies(strategies)
    return [one.file_id for one in chosen_operations(names, operations, StrategyLimits(**limits), FACTS)]


@pytest.mark.parametrize(
    ("strategy", "limits", "expected"),
    [
        ("LogFileSizeBased", {}, ["large", "middle", "small"]),
        ("LogFileSizeBased", {"min_log_bytes": 40}, ["large", "middle"]),
        ("LogFileSizeBased", {"target_io_mb": 75}, ["large", "middle"]),
        ("LogFileSizeBased", {"target_io_mb": 1}, ["large"]),
        ("LogFileNumBased", {}, ["small", "middle", "large"]),
        ("LogFileNumBased", {"min_log_files": 2}, ["small", "middle"]),
        ("BoundedIO", {"target_io_mb": 60}, ["small", "large"]),
        ("UnBounded", {"target_io_mb": 1}, ["small", "large", "middle"]),
        ("TimeLimited", {"target_seconds": 75}, ["large", "middle"]),
        ("LogFileNumBased,BoundedIO", {"min_log_files": 2, "target_io_mb": 20}, ["small"]),
    ],
)
def test_operations_are_ordered_and_limited(strategy, limits, expected):
    assert chosen(strategy, **limits) == expected


def test_names_are_hudis_classes_or_short():
    assert parse_strategies(f"{PACKAGE}LogFileSizeBasedCompactionStrategy") == ("LogFileSizeBased",)
    assert parse_strategies("DayBasedCompactionStrategy, BoundedIO") == ("DayBased", "BoundedIO")
    assert all(parse_strategies(f"{PACKAGE}{name}CompactionStrategy") == (name,) for name in STRATEGIES)
    with pytest.raises(Invalid, match="Unknown compaction strategy Quick"):
        parse_strategies("Quick")


DAYS = ("2024/05/01", "2024/05/09", "2023/12/31", "2024/06/01")


@pytest.mark.parametrize(
    ("strategy", "limits", "expected"),
    [
        ("DayBased", {"target_partitions": 2}, ["2024/06/01", "2024/05/09"]),
        ("BoundedPartitionAware", {"target_partitions": 5}, ["2024/05/09", "2024/06/01"]),
        ("UnBoundedPartitionAware", {"target_partitions": 5}, ["2024/05/01", "2023/12/31"]),
        ("PartitionRegexBased", {"partition_regex": "2024/0[56]/01"}, ["2024/05/01", "2024/06/01"]),
        ("LogFileSizeBased", {}, list(DAYS)),
        ("UnBoundedPartitionAware,DayBased", {"target_partitions": 1}, ["2024/05/01"]),
    ],
)
def test_partitions_are_chosen(strategy, limits, expected):
    names = parse_strategies(strategy)
    assert list(chosen_partitions(names, DAYS, StrategyLimits(**limits), FACTS)) == expected


def test_day_based_operations_come_newest_first():
    operations = [operation(day, partition=day, io_mb=10) for day in DAYS]
    assert chosen("DayBased", operations) == ["2024/06/01", "2024/05/09", "2024/05/01", "2023/12/31"]
    assert chosen("DayBased", operations, target_io_mb=15) == ["2024/06/01", "2024/05/09"]


def test_days_are_found_in_every_style():
    for path in ("2024/05/10", "2024-05-10", "year=2024/month=05/day=10", "day=2024-05-10", "2024/05/10/eu"):
        assert day_of(path) == date(2024, 5, 10)
    for path in ("", "eu", "2024/13/40"):
        with pytest.raises(Invalid, match="does not start with a date"):
            day_of(path)


def test_limits_that_a_strategy_needs_are_asked_for():
    table = TableConfig(new_table_properties(V9, NewTable(name="t", table_type="MERGE_ON_READ")))
    for strategy, key in (("PartitionRegexBased", "partition.path.regex"), ("TimeLimited", "target.seconds")):
        with pytest.raises(Invalid, match=key):
            parse_compact_options(resolve({"hoodie.compaction.strategy": strategy}), table)
    options = parse_compact_options(resolve({}), table)
    assert (options.strategies, options.trigger) == (("LogFileSizeBased",), "NUM_COMMITS")


def test_metrics_are_hudis():
    mib = 1 << 20
    base = BaseFile("p/b", BaseFileName("f", "0-1-2", at(1)), 10 * mib + 5)
    logs = tuple(LogFile(f"p/{n}", LogFileName("f", at(1), n), 3 * mib) for n in (1, 2))
    assert metrics_of(FileSlice("p", "f", at(1), base, logs), 120 * mib) == {
        "TOTAL_LOG_FILES": 2.0,
        "TOTAL_IO_READ_MB": 16.0,
        "TOTAL_LOG_FILES_SIZE": 6.0 * mib,
        "TOTAL_IO_WRITE_MB": 10.0,
        "TOTAL_IO_MB": 26.0,
    }
    assert metrics_of(FileSlice("p", "f", at(1), None, logs), 120 * mib)["TOTAL_IO_WRITE_MB"] == 120.0


def delta(second: int, completed: int | None = None) -> Instant:
    return Instant(at(second), DELTA_COMMIT, State.COMPLETED, at(completed or second, 500))


def compaction(second: int, state: State = State.COMPLETED) -> Instant:
    done = state is State.COMPLETED
    return Instant(at(second), COMMIT if done else COMPACTION, state, at(second, 900) if done else None)


def due(instants, trigger="NUM_COMMITS", commits=2, seconds=100, now=50, profile=V9):
    table = TableConfig(new_table_properties(profile, NewTable(name="t", table_type="MERGE_ON_READ")))
    given = {
        "hoodie.compact.inline.trigger.strategy": trigger,
        "hoodie.compact.inline.max.delta.commits": commits,
        "hoodie.compact.inline.max.delta.seconds": seconds,
    }
    timeline = Timeline(profile, tuple(sorted(instants)))
    return compaction_due(timeline, parse_compact_options(resolve(given), table), at(now), "UTC").is_due


@pytest.mark.parametrize(
    ("instants", "trigger", "now", "expected"),
    [
        ([], "NUM_COMMITS", 500, False),
        ([], "TIME_ELAPSED", 500, False),
        ([delta(1)], "NUM_COMMITS", 500, False),
        ([delta(1), delta(2)], "NUM_COMMITS", 50, True),
        ([delta(1), compaction(2), delta(3)], "NUM_COMMITS", 50, False),
        ([delta(1), compaction(2), delta(3), delta(4)], "NUM_COMMITS", 50, True),
        ([delta(1), delta(2), compaction(3, State.REQUESTED), delta(4)], "NUM_COMMITS", 50, True),
        ([delta(1), delta(2), compaction(3, State.REQUESTED), delta(4)], "NUM_COMMITS_AFTER_LAST_REQUEST", 50, False),
        ([delta(1)], "TIME_ELAPSED", 101, True),
        ([delta(1), compaction(60), delta(61)], "TIME_ELAPSED", 101, False),
        ([delta(1)], "NUM_AND_TIME", 101, False),
        ([delta(1), delta(2)], "NUM_AND_TIME", 101, True),
        ([delta(1)], "NUM_OR_TIME", 101, True),
        ([delta(1)], "NUM_OR_TIME", 50, False),
    ],
)
def test_triggers(instants, trigger, now, expected):
    assert due(instants, trigger, now=now) is expected


def test_delta_commits_count_by_completion_where_times_of_completion_are_known():
    instants = [compaction(5), delta(4, completed=8), delta(9)]
    assert due(instants, profile=V9)
    assert not due(instants, profile=V6)
