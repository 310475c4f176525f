"""What a commit did: the content of commit, deltacommit and replacecommit instants.

1. A completed instant lists every written file by partition; an inflight one holds the workload profile (what is about
   to be written) and may be empty.
2. `partition_to_replace_file_ids` is set for replacing commits only: these file groups are hidden from then on.
3. Unknown keys of `extra_metadata` belong to the writer and are kept.

It does not know how it is stored; see `commit_codec`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hoodie.spec.keys import SCHEMA_EXTRA
from hoodie.spec.write_stat import WriteStat


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """Write stats by partition path, and what else was said about the commit.

    `operation_type` is Hudi's name (`UPSERT`, `BULK_INSERT`, `COMPACT`, ...); None in an empty inflight.
    """

    partition_to_write_stats: Mapping[str, tuple[WriteStat, ...]] = field(default_factory=dict)
    compacted: bool = False
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    operation_type: str | None = None
    partition_to_replace_file_ids: Mapping[str, tuple[str, ...]] | None = None

    @property
    def schema(self) -> str | None:
        """The writer's Avro schema as JSON text, without meta fields (DDL and partition deletes may include them)."""
        return self.extra_metadata.get(SCHEMA_EXTRA) or None

    def write_stats(self) -> Iterator[tuple[str, WriteStat]]:
        """Every write stat with its partition path."""
        for partition, stats in self.partition_to_write_stats.items():
            for stat in stats:
                yield partition, stat

    def replaced_file_groups(self) -> frozenset[tuple[str, str]]:
        """(partition path, file id) of all groups this commit replaces."""
        replaced = self.partition_to_replace_file_ids or {}
        return frozenset((partition, file_id) for partition, ids in replaced.items() for file_id in ids)


@dataclass(frozen=True, slots=True)
class PartitionWork:
    """What a writer is about to do in one partition.

    `updates` has, for each file group that will be rewritten, the base instant it has now and the number of updates.
    """

    inserts: int = 0
    updates: Mapping[str, tuple[str, int]] = field(default_factory=dict)


def workload_profile(operation_type: str, work: Mapping[str, PartitionWork]) -> CommitMetadata:
    """The inflight content of a write: per partition a stat for the inserts (even of 0), then one per updated group."""
    return CommitMetadata(
        partition_to_write_stats={
            partition: (
                WriteStat(num_inserts=plan.inserts),
                *(
                    WriteStat(file_id=file_id, prev_commit=base_instant, num_update_writes=count)
                    for file_id, (base_instant, count) in plan.updates.items()
                ),
            )
            for partition, plan in work.items()
        },
        operation_type=operation_type,
    )
