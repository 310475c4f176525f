"""The slices of a plan, ready to be read, and what all its tasks share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from hoodie.errors import Corrupt, Invalid
from hoodie.fileview import FolderView
from hoodie.query import ReadFacts, ReadOptions, load_read_facts
from hoodie.records import to_avro, without_meta
from hoodie.services.compaction.executor import PendingPlan
from hoodie.services.compaction.options import CompactOptions
from hoodie.services.compaction.task import CompactTarget
from hoodie.slices import READ_BATCH_ROWS, SliceRead, plan_merge
from hoodie.slices.bootstrap import source_of
from hoodie.slices.slice_read import logs_of
from hoodie.spec import CompactionOperation, keys
from hoodie.state.handle import TableHandle
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.view import BaseFile, LogFile, View
from hoodie.write.change_log import ChangeLogging, change_logging_of

_F = TypeVar("_F")


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """The files of a view by path, committed or not."""

    bases: Mapping[str, BaseFile]
    logs: Mapping[str, LogFile]

    def base_of(self, operation: CompactionOperation) -> BaseFile | None:
        """The base file of an operation. Raises as `logs_of`."""
        path = operation.base_path
        return None if path is None else self._found(self.bases, path)

    def logs_of(self, operation: CompactionOperation) -> tuple[LogFile, ...]:
        """The log files of an operation, oldest first.

        Raises:
            Corrupt: one is gone.
        """
        return tuple(self._found(self.logs, path) for path in operation.log_paths)

    @staticmethod
    def _found(known: Mapping[str, _F], path: str) -> _F:
        if path not in known:
            raise Corrupt(
                f"{path}, which a pending compaction is about, is gone",
                remedy="Restore it from a copy, or unschedule the compaction",
                path=path,
            )
        return known[path]


def listed_files(view: View) -> ListedFiles:
    """The files that were listed for a view."""
    return ListedFiles(
        {base.path: base for found in view.files for base in found.bases},
        {one.path: one for found in view.files for one in found.logs},
    )


def load_slices(pending: PendingPlan) -> tuple[View, ReadFacts, list[SliceRead]]:
    """The view of the plan's partitions, what reading them needs, and the slice of each operation.

    Raises:
        Corrupt: a file of the plan is gone, or a log file is shorter than was committed.
    """
    handle = pending.handle
    partitions = sorted({one.partition for one in pending.plan.operations})
    folders = FolderView(handle.storage, pending.timeline)
    view = folders.load(partitions)
    facts = load_read_facts(handle.storage, handle.config, view, ReadOptions())
    files = listed_files(view)
    slices = []
    for one in pending.plan.operations:
        base = files.base_of(one)
        source = source_of(facts.sources, one.partition, base)
        slices.append(SliceRead(one.partition, base, files.logs_of(one), source=source))
    known = folders.committed_logs(logs_of(slices).values())
    slices = [replace(one, logs=tuple(known[log.path] for log in one.logs)) for one in slices]
    return view, facts, slices


def slice_target(
    pending: PendingPlan, view: View, facts: ReadFacts, options: CompactOptions, parallelism: int
) -> CompactTarget:
    """What all tasks of a plan share.

    Raises:
        Unsupported: the table merges by a rule nobody registered.
    """
    handle, config = pending.handle, pending.handle.config
    if facts.schema is None:
        raise Invalid(f"Nobody knows the schema of table {config.name}", remedy="Write to it once")
    dropped = config.partition_fields if config.drop_partition_columns else ()
    own = without_meta(facts.schema)
    stored = own if not dropped else _without(own, dropped)
    merge = plan_merge(stored, stored.names, config, view.timeline, options.for_tasks(parallelism))
    return CompactTarget(
        storage=handle.storage,
        env=handle.env,
        instant=pending.instant.requested,
        schema=stored,
        populate_meta_fields=config.populate_meta_fields,
        table_name=config.name,
        options=options.base_file,
        merge=merge,
        ids=facts.ids,
        batch_rows=READ_BATCH_ROWS,
        attempt=pending.attempt,
        changes=_change_logging(handle),
    )


def _change_logging(handle: TableHandle) -> ChangeLogging | None:
    """How compactions of the table log changes; None when they do not."""
    logs = handle.profile.capabilities.compactions_log_changes and handle.config.populate_meta_fields
    return change_logging_of(handle) if logs else None


def extra_metadata(handle: TableHandle, timeline: Timeline, facts: ReadFacts) -> dict[str, str]:
    """What a commit that changes no row says beside its files: the schema as it was."""
    extra = {}
    if facts.schema is not None:
        extra[keys.SCHEMA_EXTRA] = to_avro(without_meta(facts.schema), handle.config.name)
    for one in reversed(timeline.completed_writes()):
        said = load_commit_metadata(handle.storage, handle.profile, one)
        if said.schema is not None:
            # Hudi looks for the columns' ids in the newest commit alone.
            latest = said.extra_metadata.get(keys.LATEST_SCHEMA_EXTRA)
            return extra | {keys.LATEST_SCHEMA_EXTRA: latest} if latest else extra
    return extra


def _without(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in names])
