"""What a plan reads: its file slices, ready to be read."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.errors import Corrupt
from hoodie.fileview import FolderView
from hoodie.query import ReadFacts, ReadOptions, load_read_facts
from hoodie.services.rewrite.plan_kind import PlanRun
from hoodie.slices import SliceRead
from hoodie.slices.bootstrap import source_of
from hoodie.view import View


@dataclass(frozen=True, slots=True)
class PlanSlices:
    """The view of the plan's partitions, what reading them needs, and the slices that are read."""

    view: View
    facts: ReadFacts
    slices: tuple[SliceRead, ...]

    @property
    def size_bytes(self) -> int:
        """Size of all files that are read."""
        return sum(part.size_bytes for part in self.slices)


def load_group_slices(run: PlanRun) -> PlanSlices:
    """The newest slices of all groups that a plan sets aside: nobody else writes to these groups. One that was replaced
    meanwhile has none here. Lists the partitions of the plan.

    Raises:
        Corrupt: a log file is shorter than was committed; a group has no files, and was not replaced.
    """
    handle, groups = run.handle, frozenset(run.plans.groups(run.instant))
    folders = FolderView(handle.storage, run.plans.timeline, run.engine, run.plans)
    view = folders.load(sorted({partition for partition, _ in groups}))
    facts = load_read_facts(handle.storage, handle.config, view, ReadOptions())
    found = [part for part in view.slices_at() if part.group_id in groups]
    lost = sorted(one for one in groups - {part.group_id for part in found} if not view.is_replaced(one))
    if lost:
        partition, file_id = lost[0]
        raise Corrupt(
            f"File group {file_id} of partition {partition!r}, which a plan is about, has no files",
            remedy="See what hoodie validate says, and take the plan off the timeline (unschedule)",
            path=partition,
            file_id=file_id,
        )
    logs = folders.committed_logs([log for part in found for log in part.logs])
    slices = (
        SliceRead(
            part.partition,
            part.base,
            tuple(logs[log.path] for log in part.logs),
            source=source_of(facts.sources, part.partition, part.base),
        )
        for part in found
    )
    return PlanSlices(view, facts, tuple(slices))
