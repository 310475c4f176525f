"""What steers the carrying out of plans, whatever their kind, parsed once from config keys."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine
from hoodie.records import BaseFileOptions
from hoodie.slices import MergeOptions, parse_merge_options
from hoodie.spec import TableConfig
from hoodie.write import base_file_options

_LOCAL: Final = LocalEngine()
_MIN_MEMORY: Final = 64 << 20
_MAX_MEMORY: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """Behaviour: how base files are written. Performance: `merge` has what merging needs, the memory of all tasks among
    it; `local_job_bytes` is how much is rewritten in the driver; `copy_from_bytes`: stored bytes of row groups, on
    average, from which on they are copied and not decoded, where that is possible.
    """

    base_file: BaseFileOptions
    merge: MergeOptions
    local_job_bytes: int
    copy_from_bytes: int

    def for_tasks(self, parallelism: int) -> MergeOptions:
        """What merging needs in one of so many tasks at the same time."""
        return replace(self.merge, memory_bytes=max(_MIN_MEMORY, self.merge.memory_bytes // parallelism))

    def engine_for(self, size_bytes: int, engine: Engine) -> Engine:
        """Where so many bytes are rewritten: small ones in this process, whose threads start at once."""
        return _LOCAL if size_bytes <= self.local_job_bytes else engine


def parse_rewrite_options(config: Config, table: TableConfig) -> RewriteOptions:
    """Options of rewrites of the table."""
    return RewriteOptions(
        base_file=base_file_options(config, table),
        merge=replace(parse_merge_options(config), memory_bytes=_memory_bytes(config)),
        local_job_bytes=config.integer("hoodie.engine.local.max.bytes"),
        copy_from_bytes=config.integer("hoodie.row.group.copy.min.bytes"),
    )


def _memory_bytes(config: Config) -> int:
    """Bytes that the log rows of all tasks of this machine may take: as configured, else a share of its memory."""
    if config.is_set("hoodie.memory.compaction.max.size"):
        return config.integer("hoodie.memory.compaction.max.size")
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(_MAX_MEMORY, int(physical * config.number("hoodie.memory.compaction.fraction")))
