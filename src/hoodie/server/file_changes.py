"""What completed instants changed about the files of a table, read from their metadata: nothing is listed.

1. A write adds the files of its write stats, a clean and a rollback take away what they say they deleted.
2. Where metadata does not tell all, the partition is *unclear* and has to be loaded again: log files that a write names
   beside those it has stats of, files that a clean or a rollback could not delete (Hudi says so of those that were gone
   already), and in tables whose writers append to log files whatever a rollback touched.
3. They are applied in the order the instants were completed (`pending_edits`), as far as clocks tell. A clean that
   seems to be completed before a write whose files it deleted has deleted them. A rollback has not: a compaction that
   is carried out again gives files the names they had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from hoodie.engine import Engine, LocalEngine, TaskId
from hoodie.spec import (
    CLEAN,
    COMPLETED_WRITE_ACTIONS,
    ROLLBACK,
    CommitMetadata,
    FormatProfile,
    Instant,
    InstantTime,
    parse_clean_metadata,
    parse_log_file_name,
    parse_rollback_metadata,
)
from hoodie.storage import Storage
from hoodie.timeline import instant_path, load_commit_metadata, load_instant
from hoodie.view import GroupId, replaced_groups

THREADS = 16


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """What one instant changed in one partition: bytes of the files it added by name, names of those it took away.
    `is_final`: what it took away does not come again, however late the write is completed that added it.
    """

    added: Mapping[str, int] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    is_unclear: bool = False
    is_gone: bool = False
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """What one instant changed. `replaced`: groups a replacecommit replaces; `undone`: writes a rollback took back."""

    requested: InstantTime
    partitions: Mapping[str, PartitionChange]
    replaced: tuple[GroupId, ...] = ()
    undone: frozenset[InstantTime] = frozenset()


def as_unclear(changes: Changes) -> Changes:
    """The same of an instant that did something else before: its partitions have to be loaded again."""
    return replace(
        changes, partitions={name: replace(one, is_unclear=True) for name, one in changes.partitions.items()}
    )


def load_changes(
    storage: Storage, profile: FormatProfile, instants: Iterable[Instant], engine: Engine | None = None
) -> tuple[Changes, ...]:
    """What completed instants changed, in the order given: one read for each.

    Raises:
        Missing: one of them is gone meanwhile.
        Corrupt: one of them is damaged.
    """
    tasks = [_ChangesTask(storage, profile, one) for one in instants]
    return tuple((engine or LocalEngine(THREADS)).run(_load_changes, tasks, "read instants"))


@dataclass(frozen=True, slots=True)
class _ChangesTask:
    storage: Storage
    profile: FormatProfile
    instant: Instant


def _load_changes(_: TaskId, task: _ChangesTask) -> Changes:
    instant, path = task.instant, instant_path(task.profile, task.instant)
    if instant.action in COMPLETED_WRITE_ACTIONS:
        return write_changes(instant.requested, load_commit_metadata(task.storage, task.profile, instant))
    if instant.action == CLEAN:
        cleaned = parse_clean_metadata(load_instant(task.storage, task.profile, instant), path)
        return Changes(
            instant.requested,
            {
                name: PartitionChange(
                    removed=frozenset(done.deleted),
                    is_unclear=not set(done.failed) <= set(done.deleted),
                    is_gone=done.is_partition_deleted,
                    is_final=True,
                )
                for name, done in cleaned.partitions.items()
            },
        )
    if instant.action != ROLLBACK:
        return Changes(instant.requested, {})
    rolled_back = parse_rollback_metadata(load_instant(task.storage, task.profile, instant), path)
    appends = not task.profile.log_naming.has_one_write_per_file
    return Changes(
        instant.requested,
        {
            name: PartitionChange(
                # Full paths, as whoever rolled back spells them.
                removed=_names(done.success_delete_files),
                is_unclear=appends or bool(_names(done.failed_delete_files) - _names(done.success_delete_files)),
            )
            for name, done in rolled_back.partitions.items()
        },
        undone=frozenset(rolled_back.commits),
    )


def _names(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(path.rpartition("/")[2] for path in paths)


def write_changes(requested: InstantTime, metadata: CommitMetadata) -> Changes:
    """What a completed write changed. Pure."""
    partitions = {}
    for partition, stats in metadata.partition_to_write_stats.items():
        if not stats:
            continue
        sizes = {path.rpartition("/")[2]: size for stat in stats for path, size in stat.file_sizes.items()}
        others = {name.rpartition("/")[2] for stat in stats for name in stat.log_files or ()} - sizes.keys()
        logs = (parse_log_file_name(name) for name in others)
        is_unclear = any(log is not None and log.instant == requested for log in logs)
        partitions[partition] = PartitionChange(sizes, is_unclear=is_unclear)
    return Changes(requested, partitions, replaced=tuple(replaced_groups([(requested, metadata)])))
