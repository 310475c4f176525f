"""What steers compaction and log compaction, parsed once from config keys (Hudi's, and one of ours)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, cast

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.remote import AskedServer, asked_server
from hoodie.services.rewrite.options import RewriteOptions, parse_rewrite_options
from hoodie.spec import TableConfig

Trigger = Literal["NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME"]

STRATEGIES: Final = (
    "LogFileSizeBased",
    "LogFileNumBased",
    "BoundedIO",
    "DayBased",
    "BoundedPartitionAware",
    "UnBounded",
    "UnBoundedPartitionAware",
    "PartitionRegexBased",
    "TimeLimited",
)
"""Names of strategies, which Hudi calls `org.apache.hudi.table.action.compact.strategy.<name>CompactionStrategy`. The
last one is ours."""

_SUFFIX: Final = "CompactionStrategy"


@dataclass(frozen=True, slots=True)
class StrategyLimits:
    """What strategies go by: MB of reading and writing (`target_io_mb`), newest partitions or days
    (`target_partitions`), least log files and bytes of a group, a pattern found in partition paths, and seconds.
    """

    target_io_mb: int = 512_000
    target_partitions: int = 10
    min_log_files: int = 0
    min_log_bytes: int = 0
    partition_regex: str = ""
    target_seconds: int = 0


@dataclass(frozen=True, slots=True)
class CompactOptions:
    """Options of compactions.

    Behaviour: when one is due (`trigger`, `max_delta_commits`, `max_delta_seconds`), which file groups it takes
    (`strategies`, one after the other, within `limits`), from how many blocks on a log is compacted (`min_blocks`).
    `max_file_bytes` stands for the base file that a group without one will get. `rewrite`: how a plan is carried out.

    Performance: `server`, the timeline server that is asked for the files.
    """

    trigger: Trigger
    max_delta_commits: int
    max_delta_seconds: int
    strategies: tuple[str, ...]
    limits: StrategyLimits
    min_blocks: int
    max_file_bytes: int
    rewrite: RewriteOptions
    server: AskedServer | None = None


def parse_compact_options(config: Config, table: TableConfig) -> CompactOptions:
    """Options of compactions of the table.

    Raises:
        Invalid: an unknown strategy, or one that lacks its limit.
    """
    strategies = parse_strategies(config.text("hoodie.compaction.strategy"))
    limits = StrategyLimits(
        target_io_mb=config.integer("hoodie.compaction.target.io"),
        target_partitions=config.integer("hoodie.compaction.daybased.target.partitions"),
        min_log_files=config.integer("hoodie.compaction.logfile.num.threshold"),
        min_log_bytes=config.integer("hoodie.compaction.logfile.size.threshold"),
        partition_regex=config.text("hoodie.compaction.partition.path.regex"),
        target_seconds=config.integer("hoodie.compaction.target.seconds"),
    )
    _ensure_limited(strategies, limits)
    return CompactOptions(
        trigger=cast(Trigger, config.text("hoodie.compact.inline.trigger.strategy")),
        max_delta_commits=config.integer("hoodie.compact.inline.max.delta.commits"),
        max_delta_seconds=config.integer("hoodie.compact.inline.max.delta.seconds"),
        strategies=strategies,
        limits=limits,
        min_blocks=config.integer("hoodie.log.compaction.blocks.threshold"),
        max_file_bytes=config.integer("hoodie.parquet.max.file.size"),
        rewrite=parse_rewrite_options(config, table),
        server=asked_server(config),
    )


def parse_strategies(text: str) -> tuple[str, ...]:
    """The strategies named by their classes or short names, separated by commas.

    Raises:
        Invalid: one is not known.
    """
    found = tuple(_short(name.strip()) for name in text.split(",") if name.strip())
    unknown = [name for name in found if name not in STRATEGIES]
    if unknown or not found:
        raise Invalid(
            f"Unknown compaction strategy {', '.join(unknown) or '(none)'}",
            remedy=f"Use one or several of {', '.join(STRATEGIES)}",
            key="hoodie.compaction.strategy",
        )
    return found


def _short(name: str) -> str:
    return name.rpartition(".")[2].removesuffix(_SUFFIX)


def _ensure_limited(strategies: tuple[str, ...], limits: StrategyLimits) -> None:
    needed = (
        ("PartitionRegexBased", limits.partition_regex, "hoodie.compaction.partition.path.regex"),
        ("TimeLimited", limits.target_seconds, "hoodie.compaction.target.seconds"),
    )
    for strategy, value, key in needed:
        if strategy in strategies and not value:
            raise Invalid(f"Compaction strategy {strategy} has no limit", remedy=f"Set {key}", key=key)
