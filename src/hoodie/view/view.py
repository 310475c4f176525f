"""The view: which files make the table at an instant.

1. A view is a value: files found by one listing, put together by the timeline it was loaded with. It never lists again.
2. It holds committed slices only, and knows which groups were replaced when.
3. Time is *requested* time, also where completion times exist: a table "as of T" is made of what was requested until T.

Not known here: rows, schemas, what a query wants (see `hoodie.query`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from hoodie.engine import Engine, LocalEngine, TaskId
from hoodie.spec import (
    REPLACE_COMMIT,
    CommitMetadata,
    FormatProfile,
    Instant,
    InstantTime,
)
from hoodie.storage import Storage
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.view.archived_completions import with_archived_completions, with_archived_writes
from hoodie.view.file_slice import FileGroup, FileSlice, GroupId
from hoodie.view.listing import LISTING_THREADS, PartitionFiles
from hoodie.view.many_objects import collecting_later
from hoodie.view.replaced import Replaced, replaced_groups
from hoodie.view.slicing import SLICING_RULES


@dataclass(frozen=True, slots=True)
class View:
    """Files of a table (or of some of its partitions) as one timeline sees them.

    `files` is everything that was listed, committed or not; `groups` what counts, ordered by partition and file id.
    """

    timeline: Timeline
    files: tuple[PartitionFiles, ...]
    groups: tuple[FileGroup, ...]
    replaced: Replaced

    @property
    def partitions(self) -> tuple[str, ...]:
        """Paths of the partitions that were listed, sorted; also those without a visible file."""
        return tuple(found.partition for found in self.files)

    def slices_at(
        self, as_of: InstantTime | None = None, partitions: Collection[str] | None = None
    ) -> tuple[FileSlice, ...]:
        """The slice of every live file group that a snapshot reads (as of a requested time; None: now), ordered by
        partition and file id.

        While a compaction is pending its reserved slice and the one before it are one: the old base file with the
        log files of both.
        """
        return tuple(
            found for group in self._live(as_of, partitions) if (found := _merged_slice(group, as_of)) is not None
        )

    def base_slices_at(
        self, as_of: InstantTime | None = None, partitions: Collection[str] | None = None
    ) -> tuple[FileSlice, ...]:
        """The newest slice with a base file of every live group, without its log files: what a read-optimized query
        reads.
        """
        return tuple(
            found._replace(logs=())
            for group in self._live(as_of, partitions)
            if (found := next((part for part in _until(group, as_of) if part.base is not None), None)) is not None
        )

    def all_slices(self) -> tuple[FileSlice, ...]:
        """Every committed slice, also of replaced groups, ordered by partition, file id and age, newest first."""
        return tuple(part for group in self.groups for part in group.slices)

    def is_replaced(self, group_id: GroupId, as_of: InstantTime | None = None) -> bool:
        """Whether the group was replaced (until a requested time; None: ever)."""
        at = self.replaced.get(group_id)
        return at is not None and (as_of is None or at <= as_of)

    def _live(self, as_of: InstantTime | None, partitions: Collection[str] | None) -> Iterator[FileGroup]:
        wanted = None if partitions is None else frozenset(partitions)
        for group in self.groups:
            if wanted is not None and group.partition not in wanted:
                continue
            if not self.replaced or not self.is_replaced(group.group_id, as_of):
                yield group


def view_of(
    timeline: Timeline,
    files: tuple[PartitionFiles, ...],
    replaced: Replaced,
    compactions: Mapping[GroupId, InstantTime],
) -> View:
    """The view of listed files. Pure; `load_view` gathers the arguments."""
    rule = SLICING_RULES[timeline.profile.log_naming]
    with collecting_later():
        groups = tuple(group for found in files for group in rule(found, timeline, compactions))
    return View(timeline, files, groups, replaced)


def load_view(
    storage: Storage,
    timeline: Timeline,
    files: tuple[PartitionFiles, ...],
    compactions: Mapping[GroupId, InstantTime],
    *,
    are_settled: bool = False,
    engine: Engine | None = None,
) -> View:
    """The view of listed files. `compactions`: the pending compaction of each file group that has one; `are_settled`
    when only files of settled writes were listed.

    Reads the metadata of every completed replacecommit in the active timeline, and where it decides about log files the
    archived history.

    Raises:
        Corrupt: metadata cannot be read.
    """
    engine = engine or LocalEngine(LISTING_THREADS)
    timeline = with_archived_completions(storage, timeline, files)
    blocks = with_archived_writes(storage, timeline, files, are_settled=are_settled)
    # Settled files count whatever the history says, but in log files of version 6 blocks of others may lie.
    timeline = timeline if are_settled else blocks
    view = view_of(timeline, files, load_replaced(storage, timeline, engine), compactions)
    return replace(view, timeline=blocks)


def load_replaced(storage: Storage, timeline: Timeline, engine: Engine | None = None) -> dict[GroupId, InstantTime]:
    """File groups replaced by the completed replacecommits of the active timeline."""
    instants = [instant for instant in timeline.completed_writes() if instant.action == REPLACE_COMMIT]
    tasks = [_MetadataTask(storage, timeline.profile, instant) for instant in instants]
    return replaced_groups((engine or LocalEngine(LISTING_THREADS)).run(_load_metadata, tasks, "read commits"))


@dataclass(frozen=True, slots=True)
class _MetadataTask:
    storage: Storage
    profile: FormatProfile
    instant: Instant


def _load_metadata(_: TaskId, task: _MetadataTask) -> tuple[InstantTime, CommitMetadata]:
    return task.instant.requested, load_commit_metadata(task.storage, task.profile, task.instant)


def _until(group: FileGroup, as_of: InstantTime | None) -> tuple[FileSlice, ...]:
    """Slices of a group as of a time, newest first, without log files requested later."""
    if as_of is None:
        return group.slices
    return tuple(
        part._replace(logs=tuple(log for log in part.logs if log.name.instant <= as_of))
        for part in group.slices
        if part.base_instant <= as_of
    )


def _merged_slice(group: FileGroup, as_of: InstantTime | None) -> FileSlice | None:
    parts = _until(group, as_of)
    if len(parts) > 1 and parts[0].base_instant == group.pending_compaction:
        newest, before, *_ = parts
        parts = (before._replace(logs=before.logs + newest.logs),)
    return parts[0] if parts and not parts[0].is_empty else None
