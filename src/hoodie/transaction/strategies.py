"""The rules of writers and of plans that options ask for: the mode of a writer, and Hudi's strategy by its class name.

1. Every rule looks at what Hudi's strategy of that name looks at, and at more: what the strategy bears may still be a
   conflict here, never the other way round.
2. `PreferWriterConflictResolutionStrategy`: a clustering that is planned meanwhile is no conflict to a write. The
   clustering gives way: to what has completed, as always, and to writes whose inflight file says that they change one
   of its file groups.
3. NON_BLOCKING_CONCURRENCY_CONTROL: log files of several writers in one file group are no conflict
   (`overlaps.GroupsApart.bears_logs`). Bulk inserts make base files, and look at everything, as Hudi's do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hoodie.config import Config
from hoodie.index import has_buckets
from hoodie.spec import TableConfig
from hoodie.transaction.concurrency import is_non_blocking
from hoodie.transaction.conflicts import ConflictRule, GroupsUnchanged
from hoodie.transaction.overlaps import GroupsApart

STRATEGY: Final = "hoodie.write.lock.conflict.resolution.strategy"

_PACKAGE: Final = "org.apache.hudi.client.transaction."
_BUCKET: Final = f"{_PACKAGE}BucketIndexConcurrentFileWritesConflictResolutionStrategy"
_PREFER_WRITER: Final = f"{_PACKAGE}PreferWriterConflictResolutionStrategy"


def compares_buckets(config: Config, table: TableConfig) -> bool:
    """Whether writes to one bucket of `table` are taken for writes to one file group."""
    return has_buckets(config, table) or config.text(STRATEGY) == _BUCKET


def writers_rule(
    config: Config, table: TableConfig, operation: str, *, keys_once: bool, is_global: bool
) -> GroupsApart:
    """The rule of a write to `table` that lets others in. `keys_once` and `is_global` are those of `GroupsApart`."""
    named = config.text(STRATEGY)
    return GroupsApart(
        by_bucket=compares_buckets(config, table),
        keys_once=keys_once,
        is_global=is_global,
        bears_logs=is_non_blocking(config) and operation != "bulk_insert",
        before_plans=named == _PREFER_WRITER,
        one_schema=config.flag("hoodie.write.concurrency.schema.conflict.resolution.enable"),
    )


def plans_rule(rule: ConflictRule, config: Config) -> ConflictRule:
    """The rule of a plan that is carried out, whose kind says `rule`."""
    if isinstance(rule, GroupsUnchanged) and config.text(STRATEGY) == _PREFER_WRITER:
        return replace(rule, yields=True)
    return rule
