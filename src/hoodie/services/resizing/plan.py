"""Plans of bucket resizes: what is split and merged, and how that stands on the timeline.

1. A plan is a clustering request. Each of its groups names the slices that are read and, as extra metadata, the
   partition, the state of its hash ring and the child nodes (docs/format/bucket-index.md).
2. Plans of Hudi and of this package have the same form; ours carry one more entry, by which a writer knows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from hoodie.config import Config
from hoodie.errors import Corrupt
from hoodie.index import ConsistentBucketIndex, HashNode, HashRing, encode_children, load_ring, parse_children
from hoodie.index.resize import Resize, ResizeLimits, plan_resizes
from hoodie.spec import (
    CLUSTERING,
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    ClusteringStrategy,
    Instant,
    RequestedReplace,
    State,
)
from hoodie.spec.replace_plan import CLUSTER
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import instant_path
from hoodie.view import FileSlice, GroupId, View

OURS: Final = "hoodie.resize"
"""Extra metadata of our plans: they are never left pending on purpose."""

_PARTITION: Final = "clustering.group.partition"
_CHILDREN: Final = "clustering.group.child.node"
_SEQUENCE: Final = "clustering.group.sequence.no"
_EXECUTOR: Final = "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """The changes of one partition's ring, and the slices of each node they read, in the order of `numbers`."""

    ring: HashRing
    resizes: tuple[Resize, ...]
    slices: tuple[tuple[FileSlice, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class ResizeGroup:
    """Slices whose rows go to the child nodes."""

    partition: str
    sequence: int
    file_ids: tuple[str, ...]
    children: tuple[HashNode, ...]

    @property
    def group_ids(self) -> tuple[GroupId, ...]:
        """(partition path, file id) of the file groups whose rows go to the child nodes."""
        return tuple((self.partition, file_id) for file_id in self.file_ids)


def plan_partitions(
    handle: TableHandle, config: Config, index: ConsistentBucketIndex, view: View
) -> tuple[PartitionPlan, ...]:
    """The partitions whose rings need changes. Reads rings, and nothing of the files but their sizes."""
    limits = _limits(config, index)
    completed = frozenset(one.requested for one in view.timeline.completed())
    found = []
    for partition in view.partitions:
        live = {one.file_id: one for one in view.slices_at(partitions=[partition])}
        ring = load_ring(handle.storage, partition, completed, live, index.parts)
        if ring is None:
            continue
        slices = [live.get(ring.file_id(n)) for n in range(ring.count)]
        sizes = [None if one is None else one.size_bytes for one in slices]
        resizes = plan_resizes(ring, sizes, limits, handle.env.uuid)
        if resizes:
            read = tuple(tuple(one for n in resize.numbers if (one := slices[n]) is not None) for resize in resizes)
            found.append(PartitionPlan(ring, resizes, read))
    return tuple(found)


def resize_request(handle: TableHandle, plans: Sequence[PartitionPlan]) -> RequestedReplace:
    """The plan as it stands on the timeline."""
    groups = tuple(
        ClusteringGroup(
            slices=tuple(_planned_slice(handle, part) for part in slices),
            outputs=sum(child.tag == "REPLACE" for child in resize.children),
            metrics={
                "TOTAL_LOG_FILES": float(sum(len(part.logs) for part in slices)),
                "TOTAL_LOG_FILES_SIZE": float(sum(log.size_bytes for part in slices for log in part.logs)),
            },
            extra_metadata={
                _PARTITION: plan.ring.partition,
                _CHILDREN: encode_children(resize.children),
                _SEQUENCE: str(plan.ring.sequence),
            },
        )
        for plan in plans
        for resize, slices in zip(plan.resizes, plan.slices, strict=True)
    )
    return RequestedReplace(CLUSTER, ClusteringPlan(groups, ClusteringStrategy(_EXECUTOR)), {OURS: "true"}, 1)


def _planned_slice(handle: TableHandle, part: FileSlice) -> ClusteringSlice:
    return ClusteringSlice(
        part.partition,
        part.file_id,
        None if part.base is None else handle.storage.absolute(part.base.path),
        tuple(handle.storage.absolute(log.path) for log in part.logs),
    )


def resize_groups(plans: PendingPlans, instant: Instant) -> list[ResizeGroup]:
    """The groups of a pending plan.

    Raises:
        Corrupt: it is damaged.
    """
    path = instant_path(plans.timeline.profile, replace(instant, state=State.REQUESTED, completed=None))
    plan = plans.clustering(instant).clustering_plan
    return [_parse_group(group, path) for group in (() if plan is None else plan.groups)]


def _parse_group(group: ClusteringGroup, path: str) -> ResizeGroup:
    said = group.extra_metadata or {}
    try:
        return ResizeGroup(
            partition=said[_PARTITION],
            sequence=int(said[_SEQUENCE]),
            file_ids=tuple(part.file_id for part in group.slices),
            children=parse_children(said[_CHILDREN], path),
        )
    except (KeyError, ValueError) as error:
        raise Corrupt(f"{path} is a damaged plan", remedy="Restore the file from a copy", path=path) from error


def our_resizes(plans: PendingPlans) -> list[Instant]:
    """Pending resizes that this package planned, which it never leaves pending on purpose."""
    return [one for one in plans.instants(CLUSTERING) if OURS in (plans.clustering(one).extra_metadata or {})]


def pending_resizes(plans: PendingPlans) -> list[Instant]:
    """Pending clusterings whose groups have child nodes, whoever planned them."""
    return [one for one in plans.instants(CLUSTERING) if _has_children(plans.clustering(one).clustering_plan)]


def _has_children(plan: ClusteringPlan | None) -> bool:
    return plan is not None and any(_CHILDREN in (group.extra_metadata or {}) for group in plan.groups)


def _limits(config: Config, index: ConsistentBucketIndex) -> ResizeLimits:
    most, fewest = "hoodie.bucket.index.max.num.buckets", "hoodie.bucket.index.min.num.buckets"
    file_bytes = config.integer("hoodie.parquet.max.file.size")
    return ResizeLimits(
        split_bytes=int(file_bytes * config.number("hoodie.bucket.index.split.threshold")),
        merge_bytes=int(file_bytes * config.number("hoodie.bucket.index.merge.threshold")),
        fewest=config.integer(fewest) if config.is_set(fewest) else index.count,
        most=config.integer(most) if config.is_set(most) else index.count,
    )
