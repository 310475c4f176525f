"""What a compaction or log compaction has done, as callers see it."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.notebook import Displayed
from hoodie.services.rewrite.executor import CarriedOut
from hoodie.spec import InstantTime


@dataclass(frozen=True, slots=True)
class CompactionResult(Displayed):
    """What a compaction (or log compaction) has done. Counts are rows, but for files and log files."""

    instant: InstantTime
    completed: InstantTime | None
    operation: str
    files: int
    size_bytes: int
    log_files: int
    log_bytes: int
    rows: int
    updates: int
    inserts: int
    deletes: int
    duration_ms: int
    partitions: tuple[str, ...]


def result_of(carried_out: CarriedOut) -> CompactionResult:
    """The result of a plan that was carried out."""
    done, outcome = carried_out.instant, carried_out.outcome
    stats = outcome.stats
    return CompactionResult(
        instant=done.requested,
        completed=done.completed,
        operation=outcome.operation,
        files=len(stats),
        size_bytes=sum(stat.file_size_bytes for stat in stats),
        log_files=sum(stat.total_log_files_compacted for stat in stats),
        log_bytes=sum(stat.total_log_size_compacted for stat in stats),
        rows=sum(stat.num_writes for stat in stats),
        updates=sum(stat.num_update_writes for stat in stats),
        inserts=sum(stat.num_inserts for stat in stats),
        deletes=sum(stat.num_deletes for stat in stats),
        duration_ms=carried_out.duration_ms,
        partitions=outcome.partitions,
    )


def _shown(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
