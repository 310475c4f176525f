"""Resizing the buckets of a consistent hashing index: large ones are split, small neighbours merged.

1. It is a clustering on the timeline: a plan that names the file groups read and, for each set of them, the child nodes
   of the ring; it completes as a replacecommit of operation CLUSTER. Hudi can carry out our plans and we Hudi's.
2. Rows do not change: each goes, merged with its log, to the new file group of its key, with its commit time and
   sequence number.
3. The new ring is stored behind the files and does not count before the instant is completed; its mark comes last. Who
   dies leaves a plan: the next resize carries it out, with other files and the same child nodes.
4. Nothing else may write while it runs: the caller holds the table lock from plan to completion. Whoever holds it and
   finds a plan of ours pending takes it off (`rewrite.abandoned`). Plans of Hudi are left alone, and their file groups
   are refused to writers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.fileview import FolderView
from hoodie.index import (
    ConsistentBucketIndex,
    HashRing,
    KeyParts,
    bucket_differences,
    load_ring,
    mark_committed,
    store_ring,
)
from hoodie.notebook import Displayed
from hoodie.services.preview import PreviewStep, ServicePreview
from hoodie.services.resizing.plan import (
    ResizeGroup,
    our_resizes,
    pending_resizes,
    plan_partitions,
    resize_groups,
    resize_request,
)
from hoodie.services.resizing.task import ResizeTask, resize_slices
from hoodie.services.rewrite.executor import CarriedOut, run_plan, store_plan
from hoodie.services.rewrite.plan_kind import PlanKind, PlanRun, Rewritten
from hoodie.services.rewrite.plan_slices import load_group_slices
from hoodie.services.rewrite.target import prepare_tasks, schema_metadata
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.service import Service
from hoodie.spec import CLUSTERING, Instant, InstantTime, encode_requested_replace
from hoodie.spec.replace_plan import CLUSTER
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline, new_instant_time
from hoodie.transaction import NobodyElse
from hoodie.view import View
from hoodie.write import parse_write_options

_LOCAL: Final = LocalEngine()


@dataclass(frozen=True, slots=True)
class ResizeResult(Displayed):
    """What a resize has done. `splits` and `merges` count file groups that were read, `files` those written."""

    instant: InstantTime
    completed: InstantTime | None
    partitions: tuple[str, ...]
    splits: int
    merges: int
    files: int
    size_bytes: int
    rows: int
    duration_ms: int


def resize_buckets(handle: TableHandle, config: Config, engine: Engine) -> ResizeResult | None:
    """What splitting and merging buckets has done; None when every bucket is of a good size. A plan that is pending is
    carried out instead of a new one. The caller holds the table lock.

    Raises:
        Invalid: the options do not speak of a consistent hashing index.
        Unsupported: rows do not carry their keys. Corrupt: a file or the plan is damaged.
    """
    _index(handle, config)
    timeline = roll_back_failed_writes(handle, _LOCAL, timeline_of(handle), config)
    pending = RESIZES.find(PendingPlans(handle.storage, timeline), None) or schedule_resize(handle, config, timeline)
    done = None if pending is None else run_plan(handle, config, engine, RESIZES, pending, held=True)
    return None if done is None else _result(done)


def schedule_resize(handle: TableHandle, config: Config, timeline: Timeline) -> Instant | None:
    """Plans a resize, and returns its requested instant; None when every bucket is of a good size. The caller holds the
    table lock. Lists the table's files, and reads the rings of partitions.

    Raises:
        Invalid, Unsupported: as `resize_buckets`.
    """
    view = FolderView(handle.storage, timeline).load()
    plans = plan_partitions(handle, config, _index(handle, config), view)
    if not plans:
        return None
    requested = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
    payload = encode_requested_replace(resize_request(handle, plans), handle.profile.avro_generation)
    return store_plan(handle, RESIZES, requested, payload, timeline)


def preview_resize(handle: TableHandle, config: Config, engine: Engine | None = None) -> ServicePreview:
    """What `resize_buckets` would do now: one step for each set of file groups that is split or merged."""
    del engine
    view = FolderView(handle.storage, timeline_of(handle)).load()
    steps = []
    for plan in plan_partitions(handle, config, _index(handle, config), view):
        for resize, slices in zip(plan.resizes, plan.slices, strict=True):
            paths = tuple(path for one in slices for path in one.paths)
            size = sum(one.size_bytes for one in slices)
            reason = f"{resize.action} {len(slices)} of {plan.ring.count} buckets"
            steps.append(PreviewStep("rewrite", plan.ring.partition, slices[0].file_id, paths, size, reason))
    return ServicePreview("resize", tuple(steps), () if steps else ("every bucket is of a good size",))


def _resized(run: PlanRun) -> Rewritten:
    index = _index(run.handle, run.config)
    groups = resize_groups(run.plans, run.instant)
    found = load_group_slices(run)
    rings = _new_rings(run, index.parts, found.view, groups)
    engine, target = prepare_tasks(run, found)
    slices = {(part.partition, part.file_id): part for part in found.slices}
    tasks = [
        ResizeTask(
            target,
            tuple(slices[old] for old in group.group_ids if old in slices),
            _child_ring(group, index.parts),
        )
        for group in groups
    ]
    stats = tuple(stat for some in engine.run(resize_slices, tasks, "resize") for stat in some)
    for ring in rings:
        store_ring(run.handle.storage, ring)
    replaced = {
        ring.partition: tuple(name for group in groups if group.partition == ring.partition for name in group.file_ids)
        for ring in rings
    }
    return Rewritten(stats, schema_metadata(run, found.facts), replaced, partial(_settle, run.handle, rings))


def _settle(handle: TableHandle, rings: Sequence[HashRing]) -> None:
    """Marks rings as those that count. Without its mark a ring counts as long as its instant is on the timeline."""
    for ring in rings:
        mark_committed(handle.storage, ring.partition, ring.instant)


RESIZES: Final = PlanKind(
    name="resize of buckets",
    action=CLUSTERING,
    operation=CLUSTER,
    pending=pending_resizes,
    rewrite=_resized,
    rule=NobodyElse(),
    abandoned=our_resizes,
)


def _result(carried_out: CarriedOut) -> ResizeResult:
    groups = resize_groups(carried_out.run.plans, carried_out.run.instant)
    done, stats = carried_out.instant, carried_out.outcome.stats
    return ResizeResult(
        instant=done.requested,
        completed=done.completed,
        partitions=tuple(dict.fromkeys(group.partition for group in groups)),
        splits=sum(len(group.children) > 1 and len(group.file_ids) == 1 for group in groups),
        merges=sum(len(group.file_ids) for group in groups if len(group.file_ids) > 1),
        files=len(stats),
        size_bytes=sum(stat.file_size_bytes for stat in stats),
        rows=sum(stat.num_writes for stat in stats),
        duration_ms=carried_out.duration_ms,
    )


def _index(handle: TableHandle, config: Config) -> ConsistentBucketIndex:
    """The bucket index of the table, which the options do not contradict."""
    index = parse_write_options("upsert", config, handle.config, handle.profile).index
    if not isinstance(index, ConsistentBucketIndex) or bucket_differences(config, handle.config):
        raise Invalid(
            f"The options of table {handle.config.name} do not speak of a consistent hashing index",
            remedy="Set hoodie.index.type=BUCKET and hoodie.index.bucket.engine=CONSISTENT_HASHING, and the table's "
            "own hash fields",
        )
    if not handle.config.populate_meta_fields:
        raise Unsupported(
            f"Rows of table {handle.config.name} do not carry their keys (hoodie.populate.meta.fields=false)",
            remedy="Resize its buckets with Apache Hudi",
        )
    return index


def _child_ring(group: ResizeGroup, parts: KeyParts) -> HashRing:
    """The child nodes that get rows, as a ring of their own: rows of a group go to one of them."""
    nodes = sorted((child for child in group.children if child.tag == "REPLACE"), key=lambda node: node.value)
    return HashRing(group.partition, "", len(nodes), group.sequence, tuple(nodes), parts)


def _new_rings(run: PlanRun, parts: KeyParts, view: View, groups: Sequence[ResizeGroup]) -> list[HashRing]:
    instant = run.instant.requested
    completed = frozenset(one.requested for one in view.timeline.completed())
    rings = []
    for partition in dict.fromkeys(group.partition for group in groups):
        live = {one.file_id for one in view.slices_at(partitions=[partition])}
        ring = load_ring(run.handle.storage, partition, completed, live, parts)
        own = [group for group in groups if group.partition == partition]
        if ring is None or any(group.sequence != ring.sequence for group in own):
            raise Corrupt(
                f"The plan {instant} is for another state of the hash ranges of partition {partition!r}",
                remedy="Roll the clustering back and plan it again",
                path=partition,
            )
        rings.append(ring.with_children([child for group in own for child in group.children], instant))
    return rings


SERVICE: Final = Service(
    name="resize",
    nothing="every bucket is of a good size",
    run=resize_buckets,
    preview=preview_resize,
    options={"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"},
)
