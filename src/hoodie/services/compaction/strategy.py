"""Which file groups a compaction takes, and in what order: Hudi's strategies as functions over values.

1. A strategy chooses partitions first, so that others need not be listed, then operations. Several strategies work one
   after the other on what the one before has left.
2. Bounded ones stop *after* the operation that exceeds the limit, as in Hudi: a plan is never empty because its first
   group is large.
3. Day-based ones read a date from the partition path: `yyyy/MM/dd` or `yyyy-MM-dd`, behind `name=` parts too.
4. What is left out is not lost: its log files wait for the next plan.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from hoodie.errors import Invalid
from hoodie.services.compaction.options import StrategyLimits
from hoodie.spec import CompactionOperation
from hoodie.view import FileSlice

TOTAL_LOG_FILES: Final = "TOTAL_LOG_FILES"
TOTAL_LOG_BYTES: Final = "TOTAL_LOG_FILES_SIZE"
TOTAL_READ_MB: Final = "TOTAL_IO_READ_MB"
TOTAL_WRITE_MB: Final = "TOTAL_IO_WRITE_MB"
TOTAL_IO_MB: Final = "TOTAL_IO_MB"

_MIB: Final = 1 << 20
_DATE: Final = re.compile(r"(\d{1,6})[/-](\d{1,2})[/-](\d{1,2})")
_FIELD: Final = re.compile(r"(^|/)[^/=]*=")


@dataclass(frozen=True, slots=True)
class StrategyFacts:
    """What strategies know of the world: the day, and how many bytes a second earlier compactions read and wrote."""

    today: date
    bytes_per_second: float


Operations = Sequence[CompactionOperation]


def metrics_of(part: FileSlice, default_base_bytes: int) -> dict[str, float]:
    """What Hudi's strategies measure of a slice. A group without base file will get one of `default_base_bytes`."""
    log_bytes = sum(log.size_bytes for log in part.logs)
    base_bytes = 0 if part.base is None else part.base.size_bytes
    read = (base_bytes + log_bytes) // _MIB
    write = (base_bytes or default_base_bytes) // _MIB
    return {
        TOTAL_LOG_FILES: float(len(part.logs)),
        TOTAL_READ_MB: float(read),
        TOTAL_LOG_BYTES: float(log_bytes),
        TOTAL_WRITE_MB: float(write),
        TOTAL_IO_MB: float(read + write),
    }


def chosen_partitions(
    strategies: Sequence[str], partitions: Sequence[str], limits: StrategyLimits, facts: StrategyFacts
) -> tuple[str, ...]:
    """The partitions to look at.

    Raises:
        Invalid: a partition has no date that a day-based strategy could read.
    """
    chosen = tuple(partitions)
    for name in strategies:
        match name:
            case "DayBased":
                chosen = tuple(sorted(chosen, key=day_of, reverse=True)[: limits.target_partitions])
            case "BoundedPartitionAware":
                chosen = tuple(one for one in chosen if _is_recent(one, limits, facts))
            case "UnBoundedPartitionAware":
                chosen = tuple(one for one in chosen if not _is_recent(one, limits, facts))
            case "PartitionRegexBased":
                pattern = _compiled(limits.partition_regex)
                chosen = tuple(one for one in chosen if pattern.search(one))
    return chosen


def chosen_operations(
    strategies: Sequence[str], operations: Operations, limits: StrategyLimits, facts: StrategyFacts
) -> tuple[CompactionOperation, ...]:
    """The operations of a plan, in its order."""
    chosen = operations
    for name in strategies:
        choose = _CHOICES.get(name)
        chosen = chosen if choose is None else choose(chosen, limits, facts)
    return tuple(chosen)


def day_of(partition: str) -> date:
    """The day in a partition path.

    Raises:
        Invalid: there is none.
    """
    match = _DATE.match(_FIELD.sub(r"\1", partition))
    try:
        if match is not None:
            return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        pass
    raise Invalid(
        f"Partition {partition!r} does not start with a date, which the compaction strategy goes by",
        remedy="Use another hoodie.compaction.strategy for this table",
        partition=partition,
    )


def _largest_logs(operations: Operations, limits: StrategyLimits, facts: StrategyFacts) -> Operations:
    wanted = [one for one in operations if one.metrics.get(TOTAL_LOG_BYTES, 0) >= limits.min_log_bytes]
    ordered = sorted(wanted, key=lambda one: one.metrics.get(TOTAL_LOG_BYTES, 0), reverse=True)
    return _within_io(ordered, limits, facts)


def _most_logs(operations: Operations, limits: StrategyLimits, facts: StrategyFacts) -> Operations:
    wanted = [one for one in operations if len(one.log_files) >= limits.min_log_files]
    return _within_io(sorted(wanted, key=lambda one: len(one.log_files), reverse=True), limits, facts)


def _within_io(operations: Operations, limits: StrategyLimits, _: StrategyFacts) -> Operations:
    return _until(operations, limits.target_io_mb, lambda one: int(one.metrics.get(TOTAL_IO_MB, 0)))


def _newest_days(operations: Operations, _: StrategyLimits, __: StrategyFacts) -> Operations:
    return sorted(operations, key=lambda one: day_of(one.partition), reverse=True)


def _within_time(operations: Operations, limits: StrategyLimits, facts: StrategyFacts) -> Operations:
    ordered = sorted(operations, key=lambda one: one.metrics.get(TOTAL_LOG_BYTES, 0), reverse=True)
    budget = limits.target_seconds * facts.bytes_per_second / _MIB
    return _until(ordered, budget, lambda one: one.metrics.get(TOTAL_IO_MB, 0) + 1)


def _until(operations: Operations, budget: float, cost: Callable[[CompactionOperation], float]) -> Operations:
    chosen: list[CompactionOperation] = []
    for one in operations:
        budget -= cost(one)
        chosen.append(one)
        if budget <= 0:
            break
    return chosen


_CHOICES: Final[Mapping[str, Callable[[Operations, StrategyLimits, StrategyFacts], Operations]]] = {
    "LogFileSizeBased": _largest_logs,
    "LogFileNumBased": _most_logs,
    "BoundedIO": _within_io,
    "DayBased": lambda operations, limits, facts: _within_io(_newest_days(operations, limits, facts), limits, facts),
    "BoundedPartitionAware": _newest_days,
    "TimeLimited": _within_time,
}


def _is_recent(partition: str, limits: StrategyLimits, facts: StrategyFacts) -> bool:
    return day_of(partition) >= facts.today - timedelta(days=limits.target_partitions)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise Invalid(
            f"{pattern!r} is no regular expression: {error}", key="hoodie.compaction.partition.path.regex"
        ) from error
