"""What steers clustering, parsed once from config keys (Hudi's)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from hoodie.config import Config
from hoodie.errors import Invalid, Unsupported
from hoodie.services.rewrite.options import RewriteOptions, parse_rewrite_options
from hoodie.spec import SortOrder, TableConfig, parse_sort_order
from hoodie.spec.sort_order import CURVE, SORT_COLUMNS

PartitionFilter = Literal["NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"]
SliceOrder = Literal["SIZE", "INSTANT_TIME"]

PLAN_STRATEGY: Final = "hoodie.clustering.plan.strategy.class"
EXECUTION_STRATEGY: Final = "hoodie.clustering.execution.strategy.class"
_FILTER: Final = "hoodie.clustering.plan.partition.filter.mode"
_BY: Final = "hoodie.clustering.plan.strategy.file.slices.sort.by"
_REGEX: Final = "hoodie.clustering.plan.strategy.partition.regex.pattern"
_BEGIN: Final = "hoodie.clustering.plan.strategy.cluster.begin.partition"
_END: Final = "hoodie.clustering.plan.strategy.cluster.end.partition"

_SUFFIX: Final = "PlanStrategy"
_SINGLE_FILE: Final = "SingleFileSort"
_PLAN_CLASSES: Final[dict[str, PartitionFilter | None]] = {
    "SizeBased": None,
    _SINGLE_FILE: None,
    "RecentDays": "RECENT_DAYS",
    "SelectedPartitions": "SELECTED_PARTITIONS",
}
"""Strategies by their short names, and the partition filter that the historic ones stand for."""

_EXECUTION_CLASSES: Final = ("SortAndSize", _SINGLE_FILE)


@dataclass(frozen=True, slots=True)
class PartitionChoice:
    """Which partitions a plan covers: `selected` ones, or all; of these whose whole path matches `pattern`; of these
    what `mode` keeps. RECENT_DAYS: `lookback` ones behind the `skip` greatest, as text. SELECTED_PARTITIONS: from
    `begin` to `end`, both included. DAY_ROLLING: those whose place modulo 24 is the hour.
    """

    mode: PartitionFilter = "NONE"
    selected: tuple[str, ...] = ()
    pattern: str | None = None
    begin: str | None = None
    end: str | None = None
    lookback: int = 2
    skip: int = 0


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Options of clustering.

    Behaviour: which slices a plan takes (base files below `small_file_bytes`, of the partitions of `choice`, in the
    order `by`), how they are grouped (`max_group_bytes`, `max_groups`; `is_single_file`: each by itself;
    `takes_single_slices`; `takes_logs`: slices with log files, too), how many files a group becomes
    (`target_bytes`) and how its rows are sorted (`order`; None: as they come). `max_commits`: how many writes make
    one due. `max_file_bytes` stands for the base file that a slice without one would get. `rewrite`: how a plan is
    carried out.
    """

    order: SortOrder | None
    choice: PartitionChoice
    by: tuple[SliceOrder, ...]
    small_file_bytes: int
    target_bytes: int
    max_group_bytes: int
    max_groups: int
    takes_single_slices: bool
    takes_logs: bool
    is_single_file: bool
    max_commits: int
    max_file_bytes: int
    rewrite: RewriteOptions


def parse_cluster_options(config: Config, table: TableConfig) -> ClusterOptions:
    """Options of clustering the table.

    Raises:
        Invalid: a value that cannot be, or one that its strategy needs is missing.
        Unsupported: a strategy class that is not known here.
    """
    name = _short(config.text(PLAN_STRATEGY), _SUFFIX)
    if name not in _PLAN_CLASSES:
        raise _unknown(PLAN_STRATEGY, config.text(PLAN_STRATEGY), _PLAN_CLASSES)
    executor = _short(config.text(EXECUTION_STRATEGY), "ExecutionStrategy")
    if executor not in _EXECUTION_CLASSES:
        raise _unknown(EXECUTION_STRATEGY, config.text(EXECUTION_STRATEGY), _EXECUTION_CLASSES)
    said = {key: config.text(key) for key in (SORT_COLUMNS, CURVE) if config.is_set(key)}
    return ClusterOptions(
        order=parse_sort_order(said),
        choice=_partition_choice(config, _PLAN_CLASSES[name]),
        by=_slice_order(config.text(_BY)),
        small_file_bytes=config.integer("hoodie.clustering.plan.strategy.small.file.limit"),
        target_bytes=config.integer("hoodie.clustering.plan.strategy.target.file.max.bytes"),
        max_group_bytes=config.integer("hoodie.clustering.plan.strategy.max.bytes.per.group"),
        max_groups=config.integer("hoodie.clustering.plan.strategy.max.num.groups"),
        takes_single_slices=config.flag("hoodie.clustering.plan.strategy.single.group.clustering.enabled"),
        takes_logs=True,
        is_single_file=_SINGLE_FILE in {name, executor},
        max_commits=config.integer("hoodie.clustering.inline.max.commits"),
        max_file_bytes=config.integer("hoodie.parquet.max.file.size"),
        rewrite=parse_rewrite_options(config, table),
    )


def parse_base_file_options(config: Config, table: TableConfig) -> ClusterOptions:
    """Options of a base-file compaction of the table: all small files without logs, oldest first, each operation one
    new file.
    """
    target = config.integer("hoodie.base.file.compaction.target.file.max.bytes")
    return ClusterOptions(
        order=None,
        choice=PartitionChoice(),
        by=("INSTANT_TIME",),
        small_file_bytes=config.integer("hoodie.base.file.compaction.small.file.limit"),
        target_bytes=target,
        max_group_bytes=target,
        max_groups=sys.maxsize,
        takes_single_slices=False,
        takes_logs=False,
        is_single_file=False,
        max_commits=config.integer("hoodie.base.file.compaction.inline.max.commits"),
        max_file_bytes=config.integer("hoodie.parquet.max.file.size"),
        rewrite=parse_rewrite_options(config, table),
    )


def _partition_choice(config: Config, historic: PartitionFilter | None) -> PartitionChoice:
    mode = historic or config.text(_FILTER)
    pattern = config.optional(_REGEX)
    begin, end = config.optional(_BEGIN), config.optional(_END)
    if mode == "SELECTED_PARTITIONS" and begin is None and end is None:
        raise Invalid(
            f"{_FILTER}=SELECTED_PARTITIONS needs partitions",
            remedy=f"Set {_BEGIN}, {_END} or both",
            key=_FILTER,
        )
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise Invalid(f"{_REGEX} is no pattern: {error}", remedy="Mend the pattern", key=_REGEX) from None
    return PartitionChoice(
        mode=mode,  # type: ignore[arg-type]
        selected=config.list("hoodie.clustering.plan.strategy.partition.selected"),
        pattern=pattern,
        begin=begin,
        end=end,
        lookback=config.integer("hoodie.clustering.plan.strategy.daybased.lookback.partitions"),
        skip=config.integer("hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions"),
    )


def _slice_order(text: str) -> tuple[SliceOrder, ...]:
    found: list[SliceOrder] = []
    for name in (part.strip().upper() for part in text.split(",") if part.strip()):
        if name == "SIZE":
            found.append("SIZE")
        elif name == "INSTANT_TIME":
            found.append("INSTANT_TIME")
        else:
            raise Invalid(f"{_BY} is {text!r}", remedy="It is a list of SIZE and INSTANT_TIME", key=_BY)
    return tuple(found)


def _short(name: str, suffix: str) -> str:
    """The name of a class of Hudi's without its package, engine and kind."""
    short = name.strip().rpartition(".")[2].removesuffix(suffix).removesuffix("Clustering")
    for engine in ("Spark", "Java", "Flink"):
        short = short.removeprefix(engine)
    return "RecentDays" if short == "DayBased" else short


def _unknown(key: str, name: str, known: Iterable[str]) -> Unsupported:
    return Unsupported(
        f"{key} is {name}, which is not known here",
        remedy=f"Leave it out, or use one of {', '.join(known)}",
        key=key,
    )
