"""The slices of a plan, ready to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from hoodie.errors import Corrupt
from hoodie.fileview import FolderView
from hoodie.query import ReadOptions, load_read_facts
from hoodie.services.rewrite.plan_kind import PlanRun
from hoodie.services.rewrite.plan_slices import PlanSlices
from hoodie.slices import SliceRead
from hoodie.slices.bootstrap import source_of
from hoodie.slices.slice_read import logs_of
from hoodie.spec import CompactionOperation
from hoodie.view import BaseFile, LogFile, View

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


def load_slices(run: PlanRun) -> PlanSlices:
    """The slice of each operation of a plan, in their order. Lists the partitions of the plan.

    Raises:
        Corrupt: a file of the plan is gone, or a log file is shorter than was committed.
    """
    handle, operations = run.handle, run.plans.compaction(run.instant).operations
    partitions = sorted({one.partition for one in operations})
    folders = FolderView(handle.storage, run.plans.timeline, plans=run.plans)
    view = folders.load(partitions)
    facts = load_read_facts(handle.storage, handle.config, view, ReadOptions())
    files = listed_files(view)
    slices = []
    for one in operations:
        base = files.base_of(one)
        source = source_of(facts.sources, one.partition, base)
        slices.append(SliceRead(one.partition, base, files.logs_of(one), source=source))
    known = folders.committed_logs(logs_of(slices).values())
    return PlanSlices(
        view, facts, tuple(replace(part, logs=tuple(known[log.path] for log in part.logs)) for part in slices)
    )
