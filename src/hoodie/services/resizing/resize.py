"""Resizing the buckets of a consistent hashing index: large ones are split, small neighbours merged.

1. It is a clustering on the timeline: a plan that names the file groups read and, for each set of them, the child nodes
   of the ring; it completes as a replacecommit of operation CLUSTER. Hudi can carry out our plans and we Hudi's.
2. Rows do not change: each goes, merged with its log, to the new file group of its key, with its commit time and
   sequence number.
3. Order of effects: plan, inflight, files, the new ring (which does not count yet), the completed instant, the ring's
   marker. Dying before the completed instant leaves a plan. The next resize carries it out: its files have other names,
   its child nodes the same.
4. Nothing else may write while it runs: the caller holds the table lock from plan to completion. Whoever
   holds it and finds a plan of ours pending knows that it is dead: a writer drops it (`drop_dead_resizes`). Plans of
   Hudi are left alone, and their file groups are refused to writers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.fileview import FolderView
from hoodie.index import (
    ConsistentBucketIndex,
    HashRing,
    KeyParts,
    load_ring,
    mark_committed,
    store_ring,
)
from hoodie.metadata_writer import MetadataOptions, MetadataParticipant
from hoodie.notebook import Displayed
from hoodie.query import ReadOptions, load_read_facts
from hoodie.services.compaction.executor import PendingPlan, chosen_engine
from hoodie.services.compaction.options import parse_compact_options
from hoodie.services.compaction.slices import extra_metadata, slice_target
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
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.rollback.rollback import roll_back
from hoodie.services.service import Service
from hoodie.slices import SliceRead
from hoodie.spec import (
    CLUSTERING,
    REPLACE_COMMIT,
    CompactionPlan,
    Instant,
    InstantTime,
    State,
    encode_requested_replace,
)
from hoodie.spec.replace_plan import CLUSTER
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import (
    Timeline,
    create_requested,
    instant_path,
    markers_of,
    new_instant_time,
    to_inflight,
)
from hoodie.transaction import HeldThroughout, Outcome, Transaction
from hoodie.view import FileSlice, LogFile, View
from hoodie.write.options import parse_write_options

_LOCAL: Final = LocalEngine()
_ATTEMPTS: Final = 1_000


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
    index = _index(handle, config)
    timeline = roll_back_failed_writes(handle, _LOCAL, timeline_of(handle), config)
    pending = next(iter(pending_resizes(PendingPlans(handle.storage, timeline))), None)
    if pending is None:
        requested = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
        view = FolderView(handle.storage, timeline).load()
        plans = plan_partitions(handle, config, index, view)
        if not plans:
            return None
        payload = encode_requested_replace(resize_request(handle, plans), handle.profile.avro_generation)
        pending = create_requested(handle.storage, handle.profile, requested, _action(handle), payload)
    elif pending.state is State.INFLIGHT:
        pending = _undone(handle, pending)
    return _run(handle, config, engine, index, timeline_of(handle), pending)


def drop_dead_resizes(handle: TableHandle, engine: Engine, timeline: Timeline, config: Config) -> Timeline:
    """The timeline without pending resizes of ours. The caller holds the table lock, so they are dead.

    One that had begun is rolled back, which leaves its plan; then the plan goes.
    """
    dead = our_resizes(PendingPlans(handle.storage, timeline))
    for instant in dead:
        if instant.state is State.INFLIGHT:
            timeline = roll_back(handle, engine, timeline, instant, config)
        handle.storage.delete(instant_path(handle.profile, replace(instant, state=State.REQUESTED)))
    return timeline_of(handle) if dead else timeline


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


def _run(  # noqa: PLR0917
    handle: TableHandle,
    config: Config,
    engine: Engine,
    index: ConsistentBucketIndex,
    timeline: Timeline,
    pending: Instant,
) -> ResizeResult:
    clock = handle.env.monotonic()
    groups = resize_groups(PendingPlans(handle.storage, timeline), pending)
    partitions = tuple(dict.fromkeys(group.partition for group in groups))
    folders = FolderView(handle.storage, timeline, engine)
    view = folders.load(partitions)
    rings = _new_rings(handle, index.parts, view, groups, pending.requested)
    facts = load_read_facts(handle.storage, handle.config, view, ReadOptions())
    options = parse_compact_options(config, handle.config)
    live = {one.group_id: one for one in view.slices_at()}
    read = [
        [live[group.partition, name] for name in group.file_ids if (group.partition, name) in live] for group in groups
    ]
    logs = [log for some in read for one in some for log in one.logs]
    known_logs = folders.committed_logs(logs)
    chosen = chosen_engine(engine, sum(one.size_bytes for some in read for one in some), options.local_job_bytes)
    attempt = int(handle.env.random() * 2**20) * _ATTEMPTS
    inflight = to_inflight(handle.storage, handle.profile, pending)
    known = PendingPlan(handle, timeline, inflight, CompactionPlan(()), attempt)
    target = slice_target(known, view, facts, options, chosen.parallelism)
    tasks = [
        ResizeTask(target, tuple(_slice_read(one, known_logs) for one in some), _child_ring(group, index.parts))
        for group, some in zip(groups, read, strict=True)
    ]
    stats = [stat for some in chosen.run(resize_slices, tasks, "resize") for stat in some]
    for ring in rings:
        store_ring(handle.storage, ring)
    replaced = {
        partition: tuple(name for group in groups if group.partition == partition for name in group.file_ids)
        for partition in partitions
    }
    outcome = Outcome(CLUSTER, tuple(stats), extra_metadata(handle, timeline, facts), replaced)
    metadata = MetadataParticipant(engine, MetadataOptions.of(config))
    transaction = Transaction(handle, inflight.requested, HeldThroughout(handle), config, inflight)
    done = transaction.commit(outcome, timeline, partitions, (metadata,))
    for ring in rings:
        mark_committed(handle.storage, ring.partition, ring.instant)
    return ResizeResult(
        instant=done.requested,
        completed=done.completed,
        partitions=partitions,
        splits=sum(len(group.children) > 1 and len(group.file_ids) == 1 for group in groups),
        merges=sum(len(group.file_ids) for group in groups if len(group.file_ids) > 1),
        files=len(stats),
        size_bytes=sum(stat.file_size_bytes for stat in stats),
        rows=sum(stat.num_writes for stat in stats),
        duration_ms=int((handle.env.monotonic() - clock) * 1000),
    )


def _slice_read(one: FileSlice, logs: Mapping[str, LogFile]) -> SliceRead:
    return SliceRead(one.partition, one.base, tuple(logs[log.path] for log in one.logs))


def _index(handle: TableHandle, config: Config) -> ConsistentBucketIndex:
    """The bucket index the options speak of."""
    index = parse_write_options("upsert", config, handle.config, handle.profile).index
    if not isinstance(index, ConsistentBucketIndex):
        raise Invalid(
            f"The options of table {handle.config.name} do not speak of a consistent hashing index",
            remedy="Set hoodie.index.type=BUCKET and hoodie.index.bucket.engine=CONSISTENT_HASHING",
        )
    if not handle.config.populate_meta_fields:
        raise Unsupported(
            f"Rows of table {handle.config.name} do not carry their keys (hoodie.populate.meta.fields=false)",
            remedy="Resize its buckets with Apache Hudi",
        )
    return index


def _action(handle: TableHandle) -> str:
    return CLUSTERING if handle.profile.capabilities.clustering_action else REPLACE_COMMIT


def _undone(handle: TableHandle, instant: Instant) -> Instant:
    """The plan as one nobody has begun: what a dead run has written goes, its inflight file last but for markers."""
    for marker in markers_of(handle.storage, instant.requested).load() or ():
        handle.storage.delete(marker.data_path)
    handle.storage.delete(instant_path(handle.profile, replace(instant, state=State.INFLIGHT)))
    markers_of(handle.storage, instant.requested).drop()
    return replace(instant, state=State.REQUESTED)


def _child_ring(group: ResizeGroup, parts: KeyParts) -> HashRing:
    """The child nodes that get rows, as a ring of their own: rows of a group go to one of them."""
    nodes = sorted((child for child in group.children if child.tag == "REPLACE"), key=lambda node: node.value)
    return HashRing(group.partition, "", len(nodes), group.sequence, tuple(nodes), parts)


def _new_rings(
    handle: TableHandle, parts: KeyParts, view: View, groups: Sequence[ResizeGroup], instant: InstantTime
) -> list[HashRing]:
    completed = frozenset(one.requested for one in view.timeline.completed())
    rings = []
    for partition in dict.fromkeys(group.partition for group in groups):
        live = {one.file_id for one in view.slices_at(partitions=[partition])}
        ring = load_ring(handle.storage, partition, completed, live, parts)
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
