"""What a write has done to files, before and after it is visible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hoodie.notebook import Displayed
from hoodie.spec import CommitMetadata, Instant, WriteStat
from hoodie.transaction.looked_at import LookedAt


@dataclass(frozen=True, slots=True)
class Committed(Displayed):
    """What a finished write did. Counts are rows, `size_bytes` is the size of all files written."""

    instant: str
    completed: str | None
    operation: str
    files: int
    size_bytes: int
    rows_written: int
    inserts: int
    updates: int
    deletes: int
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a write has done to files, ready to be made visible: what its completed instant will say. `compacted`: it
    says nothing new, only in other files. `knows_inserts`: new rows in log files are counted as such. `ran_once`: no
    task ran twice, so there are no files but those of `stats`. `looked_at`: what it found where it looked keys up, or
    for what it replaces; None for a write that does neither.
    """

    operation: str
    stats: tuple[WriteStat, ...]
    extra_metadata: Mapping[str, str]
    replaced: Mapping[str, tuple[str, ...]] | None = None
    compacted: bool = False
    knows_inserts: bool = False
    ran_once: bool = False
    looked_at: LookedAt | None = None

    @property
    def metadata(self) -> CommitMetadata:
        return CommitMetadata(
            partition_to_write_stats=_by_partition(self.stats),
            compacted=self.compacted,
            extra_metadata=dict(self.extra_metadata),
            operation_type=self.operation,
            partition_to_replace_file_ids=self.replaced,
        )

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files written."""
        return tuple(stat.path for stat in self.stats if stat.path is not None)

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partitions that get files, then those that only lose some."""
        return tuple(dict.fromkeys([*(stat.partition_path for stat in self.stats), *(self.replaced or ())]))

    def committed(self, done: Instant, operation: str) -> Committed:
        return Committed(
            instant=done.requested,
            completed=done.completed,
            operation=operation,
            files=len(self.stats),
            size_bytes=sum(stat.file_size_bytes for stat in self.stats),
            rows_written=sum(stat.num_writes for stat in self.stats),
            inserts=sum(stat.num_inserts for stat in self.stats),
            updates=sum(stat.num_update_writes for stat in self.stats),
            deletes=sum(stat.num_deletes for stat in self.stats),
            partitions=self.partitions,
        )


def _by_partition(stats: Sequence[WriteStat]) -> dict[str, tuple[WriteStat, ...]]:
    grouped: dict[str, list[WriteStat]] = defaultdict(list)
    for stat in stats:
        grouped[stat.partition_path].append(stat)
    return {name: tuple(group) for name, group in grouped.items()}
