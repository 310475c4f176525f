"""What steers clustering, parsed once from config keys (Hudi's)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from hoodie.config import Config
from hoodie.errors import Invalid, Unsupported
from hoodie.records import KEY_FIELD
from hoodie.services.clustering.own_strategies import PLAN_STRATEGY, own_plan
from hoodie.services.clustering.partition_orders import (
    BY_PARTITION,
    PartitionOrder,
    own_order_of,
    parse_partition_orders,
)
from hoodie.services.clustering.plan_strategy import PlanStrategy
from hoodie.services.clustering.row_order import EXECUTION_STRATEGY, ByColumns, OwnOrder, own_order
from hoodie.services.clustering.strategies import AtRandom, ByCommits, ByRanges, BySize, FileByFile, SliceOrder
from hoodie.services.rewrite.options import RewriteOptions, parse_rewrite_options
from hoodie.spec import InstantTime, SortOrder, TableConfig, parse_sort_order
from hoodie.spec.sort_order import CURVE, METHOD, SAMPLE_SIZE, SORT_COLUMNS

PartitionFilter = Literal["NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"]
GroupOrder = Literal["PARTITION", "BYTES", "FILES", "OVERLAP"]

EXECUTOR: Final = "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"
ASYNC: Final = "hoodie.clustering.async.enabled"
OVERLAP_COLUMNS: Final = "hoodie.clustering.plan.strategy.overlap.columns"
_GROUP_ORDER: Final = "hoodie.clustering.plan.groups.sort.by"
_MIN_FILES: Final = "hoodie.clustering.plan.group.min.files"
_FILTER: Final = "hoodie.clustering.plan.partition.filter.mode"
_BY: Final = "hoodie.clustering.plan.strategy.file.slices.sort.by"
_REGEX: Final = "hoodie.clustering.plan.strategy.partition.regex.pattern"
_BEGIN: Final = "hoodie.clustering.plan.strategy.cluster.begin.partition"
_END: Final = "hoodie.clustering.plan.strategy.cluster.end.partition"
_EARLIEST: Final = "hoodie.clustering.plan.strategy.earliest.commit.to.cluster"

_SUFFIX: Final = "PlanStrategy"
_SINGLE_FILE: Final = "SingleFileSort"
_BUCKETS: Final = "ConsistentBucket"
_PLAN_CLASSES: Final[dict[str, PartitionFilter | None]] = {
    "SizeBased": None,
    _SINGLE_FILE: None,
    "StreamCopy": None,
    "RecentDays": "RECENT_DAYS",
    "SelectedPartitions": "SELECTED_PARTITIONS",
    "CommitBased": None,
    "KeyRange": None,
    "ColumnOverlap": None,
    "Random": None,
}
"""Strategies by their short names, and the partition filter that the historic ones stand for. Files of one schema are
not kept together as by Hudi's StreamCopy: those of several are decoded.
"""

_EXECUTION_CLASSES: Final = ("SortAndSize", _SINGLE_FILE, "StreamCopy", "BinaryCopy")
"""Row groups are copied where that is possible, whichever of these is asked for."""


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

    Behaviour: which slices a plan takes (base files below `small_file_bytes`, of the partitions of `choice`), how
    `strategy` groups them and how many groups there may be (`max_groups`, in the order `groups_by`, of at least
    `min_files` slices; `takes_single_slices`; `takes_logs`: slices with log files, too), how many files a group becomes
    (`target_bytes`; `is_single_file`: one) and how its rows are sorted (`order`, or `own_order` of the caller's; None:
    as they come; `partition_orders`: otherwise in some partitions). `said`: what the plan says of the strategy,
    `executor`: the class that is to carry it out. `max_commits`: how many writes make one due. `max_file_bytes` stands
    for the base file that a slice without one would get. `rewrite`: how a plan is carried out.
    """

    strategy: PlanStrategy
    order: SortOrder | None
    choice: PartitionChoice
    small_file_bytes: int
    target_bytes: int
    max_groups: int
    takes_single_slices: bool
    takes_logs: bool
    is_single_file: bool
    max_commits: int
    max_file_bytes: int
    rewrite: RewriteOptions
    own_order: OwnOrder | None = None
    partition_orders: tuple[PartitionOrder, ...] = ()
    groups_by: GroupOrder = "PARTITION"
    min_files: int = 1
    said: Mapping[str, str] = field(default_factory=dict)
    executor: str = EXECUTOR

    def sort_order_in(self, partition: str) -> SortOrder | None:
        """The columns that rows of a partition are sorted by; None: they are not, or by a class of the caller's own."""
        own = own_order_of(self.partition_orders, partition)
        return self.order if own is None else own.order

    def row_order_in(self, partition: str) -> ByColumns | OwnOrder | None:
        """How rows of a partition are sorted; None: as they come."""
        if self.own_order is not None:
            return self.own_order
        order = self.sort_order_in(partition)
        return None if order is None else ByColumns(order)

    @property
    def sort_columns(self) -> tuple[str, ...]:
        """All columns that rows of any partition are sorted by."""
        if self.own_order is not None:
            return self.own_order.columns
        return tuple(dict.fromkeys(name for order in self.sort_orders for name in order.columns))

    @property
    def sort_orders(self) -> tuple[SortOrder, ...]:
        """All orders by columns that are asked for, in any partition."""
        found = (self.order, *(one.order for one in self.partition_orders))
        return tuple(order for order in found if order is not None)


def parse_cluster_options(config: Config, table: TableConfig) -> ClusterOptions:
    """Options of clustering the table.

    Raises:
        Invalid: a value that cannot be, or one that its strategy needs is missing; a class of the caller's own that
            cannot be made.
        Unsupported: a strategy class that is not known here.
    """
    said = {key: config.text(key) for key in (SORT_COLUMNS, CURVE, METHOD, SAMPLE_SIZE) if config.is_set(key)}
    order = parse_sort_order(said)
    by_partition = parse_partition_orders(config.optional(BY_PARTITION) or "", said)
    name, executor = config.text(PLAN_STRATEGY), config.text(EXECUTION_STRATEGY)
    own = own_order(executor, config, table) if ":" in executor else None
    plan, runs = _short(name, _SUFFIX), _short(executor, "ExecutionStrategy")
    if own is None and runs not in _EXECUTION_CLASSES:
        raise _unknown(EXECUTION_STRATEGY, executor, _EXECUTION_CLASSES)
    if own is not None and by_partition:
        raise Invalid(
            f"{EXECUTION_STRATEGY}={executor} gives the order of rows, {BY_PARTITION} another one",
            remedy="Leave one of them out",
            key=BY_PARTITION,
        )
    strategy = own_plan(name, config, table) if ":" in name else _strategy(plan, config, table, order)
    return ClusterOptions(
        strategy=strategy,
        order=None if own is not None else order,
        own_order=own,
        partition_orders=by_partition,
        choice=_partition_choice(config, _PLAN_CLASSES.get(plan)),
        small_file_bytes=config.integer("hoodie.clustering.plan.strategy.small.file.limit"),
        target_bytes=config.integer("hoodie.clustering.plan.strategy.target.file.max.bytes"),
        max_groups=config.integer("hoodie.clustering.plan.strategy.max.num.groups"),
        takes_single_slices=config.flag("hoodie.clustering.plan.strategy.single.group.clustering.enabled"),
        takes_logs=True,
        is_single_file=_SINGLE_FILE in {plan, runs},
        max_commits=config.integer(
            "hoodie.clustering.async.max.commits" if config.flag(ASYNC) else "hoodie.clustering.inline.max.commits"
        ),
        max_file_bytes=config.integer("hoodie.parquet.max.file.size"),
        rewrite=parse_rewrite_options(config, table),
        groups_by=config.text(_GROUP_ORDER),  # type: ignore[arg-type]
        min_files=config.integer(_MIN_FILES),
        executor=EXECUTOR if ":" in executor or "." not in executor else executor.strip(),
        said={
            **{key: config.text(key) for key in (PLAN_STRATEGY, OVERLAP_COLUMNS) if config.is_set(key)},
            **({} if own is None else {EXECUTION_STRATEGY: executor}),
        },
    )


def parse_base_file_options(config: Config, table: TableConfig) -> ClusterOptions:
    """Options of a base-file compaction of the table: all small files without logs, oldest first, each operation one
    new file.
    """
    target = config.integer("hoodie.base.file.compaction.target.file.max.bytes")
    return ClusterOptions(
        strategy=BySize(("INSTANT_TIME",), target),
        order=None,
        choice=PartitionChoice(),
        small_file_bytes=config.integer("hoodie.base.file.compaction.small.file.limit"),
        target_bytes=target,
        max_groups=sys.maxsize,
        takes_single_slices=False,
        takes_logs=False,
        is_single_file=False,
        max_commits=config.integer("hoodie.base.file.compaction.inline.max.commits"),
        max_file_bytes=config.integer("hoodie.parquet.max.file.size"),
        rewrite=parse_rewrite_options(config, table),
    )


def _strategy(name: str, config: Config, table: TableConfig, order: SortOrder | None) -> PlanStrategy:
    target = config.integer("hoodie.clustering.plan.strategy.target.file.max.bytes")
    limit = config.integer("hoodie.clustering.plan.strategy.max.bytes.per.group")
    if name == _BUCKETS:
        raise Unsupported(
            f"{PLAN_STRATEGY} is {config.text(PLAN_STRATEGY)}",
            remedy="Buckets of a consistent hash index are resized by a service of its own: hoodie resize",
            key=PLAN_STRATEGY,
        )
    if name not in _PLAN_CLASSES:
        raise _unknown(PLAN_STRATEGY, config.text(PLAN_STRATEGY), _PLAN_CLASSES)
    match name:
        case "SingleFileSort":
            return FileByFile()
        case "CommitBased":
            return ByCommits(InstantTime(config.text(_EARLIEST)), limit)
        case "KeyRange":
            keys = (KEY_FIELD,) if table.populate_meta_fields else table.record_key_fields
            if not keys:
                raise Invalid(
                    f"{PLAN_STRATEGY}=KeyRange needs record keys, and the table stores none",
                    remedy=f"Use ColumnOverlap with {OVERLAP_COLUMNS}",
                    key=PLAN_STRATEGY,
                )
            return ByRanges(keys, target, limit)
        case "ColumnOverlap":
            columns = config.list(OVERLAP_COLUMNS) or (() if order is None else order.columns)
            if not columns:
                raise Invalid(
                    f"{PLAN_STRATEGY}=ColumnOverlap needs the columns whose ranges are compared",
                    remedy=f"Set {OVERLAP_COLUMNS}, or {SORT_COLUMNS}",
                    key=OVERLAP_COLUMNS,
                )
            return ByRanges(columns, target, limit)
        case "Random":
            return AtRandom(limit)
        case _:
            return BySize(_slice_order(config.text(_BY)), limit)


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
        remedy=f"Leave it out, use one of {', '.join(known)}, or name a class of your own as package.module:Class",
        key=key,
    )
