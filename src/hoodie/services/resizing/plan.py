"""Plans of bucket resizes: what is split and merged, and how that stands on the timeline.

1. A plan is a clustering request. Each of its groups names the slices that are read and, as extra metadata, the
   partition, the state of its hash ring and the child nodes (docs/format/bucket-index.md).
2. Plans of Hudi and of this package have the same form; ours carry one more entry, by which a writer knows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hoodie.config import Config
from hoodie.errors import Corrupt
from hoodie.index import HashNode, HashRing, encode_children, load_ring, parse_children
from hoodie.index.resize import Resize, ResizeLimits, plan_resizes
from hoodie.spec import (
    CLUSTERING,
    EMPTY_REPLACE,
    REPLACE_COMMIT,
    Instant,
    RequestedReplace,
    State,
    parse_requested_replace,
)
from hoodie.spec.replace_plan import CLUSTER
from hoodie.state.handle import TableHandle
from hoodie.timeline import instant_path, load_requested
from hoodie.view import FileSlice, View
from hoodie.write.options import BucketOptions

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


def plan_partitions(handle: TableHandle, config: Config, asked: BucketOptions, view: View) -> tuple[PartitionPlan, ...]:
    """The partitions whose rings need changes. Reads rings, and nothing of the files but their sizes."""
    limits = _limits(config, asked)
    completed = frozenset(one.requested for one in view.timeline.completed())
    found = []
    for partition in view.partitions:
        live = {one.file_id: one for one in view.slices_at(partitions=[partition])}
        ring = load_ring(handle.storage, partition, completed, live, asked.parts)
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
    groups = [
        {
            "slices": [_slice_info(handle, one) for one in slices],
            "metrics": {
                "TOTAL_LOG_FILES": float(sum(len(one.logs) for one in slices)),
                "TOTAL_LOG_FILES_SIZE": float(sum(log.size_bytes for one in slices for log in one.logs)),
            },
            "numOutputFileGroups": sum(child.tag == "REPLACE" for child in resize.children),
            "extraMetadata": {
                _PARTITION: plan.ring.partition,
                _CHILDREN: encode_children(resize.children),
                _SEQUENCE: str(plan.ring.sequence),
            },
            "version": 1,
        }
        for plan in plans
        for resize, slices in zip(plan.resizes, plan.slices, strict=True)
    ]
    clustering = {
        "inputGroups": groups,
        "strategy": {"strategyClassName": _EXECUTOR, "strategyParams": {}, "version": 1},
        "extraMetadata": {},
        "version": 1,
        "preserveHoodieMetadata": True,
        "missingSchedulePartitions": [],
    }
    return RequestedReplace(CLUSTER, clustering, {OURS: "true"}, 1)


def _slice_info(handle: TableHandle, one: FileSlice) -> dict[str, Any]:
    return {
        "dataFilePath": None if one.base is None else handle.storage.absolute(one.base.path),
        "deltaFilePaths": [handle.storage.absolute(log.path) for log in one.logs],
        "fileId": one.file_id,
        "partitionPath": one.partition,
        "bootstrapFilePath": "",
        "version": 1,
    }


def load_groups(handle: TableHandle, instant: Instant) -> list[ResizeGroup]:
    """The groups of a pending plan.

    Raises:
        Corrupt: it is damaged.
    """
    path = instant_path(handle.profile, replace(instant, state=State.REQUESTED, completed=None))
    plan = parse_requested_replace(load_requested(handle.storage, handle.profile, instant), path).clustering_plan or {}
    try:
        return [
            ResizeGroup(
                partition=group["extraMetadata"][_PARTITION],
                sequence=int(group["extraMetadata"][_SEQUENCE]),
                file_ids=tuple(one["fileId"] for one in group["slices"]),
                children=parse_children(group["extraMetadata"][_CHILDREN], path),
            )
            for group in plan["inputGroups"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise Corrupt(f"{path} is a damaged plan", remedy="Restore the file from a copy", path=path) from error


def _load_request(handle: TableHandle, instant: Instant) -> RequestedReplace:
    """The request of a pending instant; an empty one for an action that is no clustering."""
    if instant.action not in (CLUSTERING, REPLACE_COMMIT):
        return EMPTY_REPLACE
    data = load_requested(handle.storage, handle.profile, instant)
    return parse_requested_replace(data, instant_path(handle.profile, instant))


def is_our_resize(handle: TableHandle, instant: Instant) -> bool:
    """Whether a pending instant is a resize that this package planned."""
    return OURS in (_load_request(handle, instant).extra_metadata or {})


def is_resize(handle: TableHandle, instant: Instant) -> bool:
    """Whether a pending instant is a clustering whose groups have child nodes."""
    plan = _load_request(handle, instant).clustering_plan or {}
    return any(_CHILDREN in (group.get("extraMetadata") or {}) for group in plan.get("inputGroups") or ())


def _limits(config: Config, asked: BucketOptions) -> ResizeLimits:
    most, fewest = "hoodie.bucket.index.max.num.buckets", "hoodie.bucket.index.min.num.buckets"
    file_bytes = config.integer("hoodie.parquet.max.file.size")
    return ResizeLimits(
        split_bytes=int(file_bytes * config.number("hoodie.bucket.index.split.threshold")),
        merge_bytes=int(file_bytes * config.number("hoodie.bucket.index.merge.threshold")),
        fewest=config.integer(fewest) if config.is_set(fewest) else asked.count,
        most=config.integer(most) if config.is_set(most) else asked.count,
    )
