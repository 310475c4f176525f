"""What a clustering has done or planned, as callers see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hoodie.notebook import Displayed
from hoodie.services.clustering.partition_orders import noted_columns
from hoodie.services.clustering.task import ClusteredGroup
from hoodie.services.rewrite.executor import CarriedOut
from hoodie.spec import ClusteringPlan, Instant, InstantTime
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans

COPIED: Final = "hoodie.clustering.copied.groups"
"""Extra metadata of our commits where rows were not sorted: how many groups were stitched by copying row groups."""

DECODED: Final = "hoodie.clustering.decoded"
"""The same: why the others were not."""


@dataclass(frozen=True, slots=True)
class ClusteringResult(Displayed):
    """What a clustering has done. `groups` count sets of slices, `slices` the file groups that were replaced, `files`
    those that took their place; `sorted_by` the columns, and the curve if there is one. `copied` groups were made by
    copying row groups; `decoded` says why others were not, where rows had not to be sorted.
    """

    instant: InstantTime
    completed: InstantTime | None
    partitions: tuple[str, ...]
    groups: int
    slices: int
    files: int
    size_bytes: int
    rows: int
    sorted_by: tuple[str, ...]
    copied: int
    decoded: tuple[str, ...]
    duration_ms: int


@dataclass(frozen=True, slots=True)
class PlannedClustering(Displayed):
    """A plan that was stored or taken away: its instant, groups and the file groups in them."""

    instant: InstantTime
    done: str
    groups: int
    slices: int


def copy_metadata(groups: Sequence[ClusteredGroup]) -> dict[str, str]:
    """What a commit says of groups whose rows had not to be sorted."""
    reasons = dict.fromkeys(group.why_decoded.replace("; ", ", ") for group in groups if group.why_decoded is not None)
    found = {COPIED: str(sum(group.why_decoded is None for group in groups))}
    return found | ({DECODED: "; ".join(reasons)} if reasons else {})


def planned_of(handle: TableHandle, instant: Instant, done: str) -> PlannedClustering:
    """The plan of a pending instant in numbers; `done` says what became of it."""
    plan = PendingPlans(handle.storage, timeline_of(handle)).clustering(instant).clustering_plan
    groups = () if plan is None else plan.groups
    return PlannedClustering(instant.requested, done, len(groups), sum(len(group.slices) for group in groups))


def result_of(carried_out: CarriedOut) -> ClusteringResult:
    """The result of a plan that was carried out."""
    run, done, outcome = carried_out.run, carried_out.instant, carried_out.outcome
    plan = run.plans.clustering(run.instant).clustering_plan or ClusteringPlan(())
    return ClusteringResult(
        instant=done.requested,
        completed=done.completed,
        partitions=tuple(dict.fromkeys(partition for partition, _ in plan.group_ids)),
        groups=len(plan.groups),
        slices=len(plan.group_ids),
        files=len(outcome.stats),
        size_bytes=sum(stat.file_size_bytes for stat in outcome.stats),
        rows=sum(stat.num_writes for stat in outcome.stats),
        sorted_by=noted_columns(outcome.extra_metadata),
        copied=int(outcome.extra_metadata.get(COPIED, 0)),
        decoded=tuple(text for text in outcome.extra_metadata.get(DECODED, "").split("; ") if text),
        duration_ms=carried_out.duration_ms,
    )
