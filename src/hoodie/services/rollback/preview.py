"""What undoing a write would do, as people see it before it is done."""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.errors import Missing
from hoodie.services.preview import PreviewStep, ServicePreview
from hoodie.services.rollback.checks import ensure_can_roll_back, ensure_no_restore
from hoodie.services.rollback.plan import BY_MARKERS, load_rollback_plan
from hoodie.services.rollback.steps import ensure_own_files
from hoodie.spec import (
    Instant,
    InstantTime,
    RollbackPlan,
    parse_data_file_name,
)
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage


def preview_rollback(handle: TableHandle, config: Config, engine: Engine, instant: InstantTime) -> ServicePreview:
    """What `roll_back_instant` would do. Raises as that."""
    timeline = timeline_of(handle)
    ensure_no_restore(timeline)
    target = ensure_can_roll_back(handle, PendingPlans(handle.storage, timeline), instant)
    plan = load_rollback_plan(handle, timeline, target, engine, by_markers=config.flag(BY_MARKERS))
    return ServicePreview("rollback", tuple(rollback_steps(handle.storage, plan)), _notes(plan, target))


def rollback_steps(storage: Storage, plan: RollbackPlan) -> Iterable[PreviewStep]:
    """The steps of a plan, as people see them. Asks the size of every file."""
    target = plan.instant_to_rollback
    why = f"written by {target.action} {target.commit_time}"
    for request in plan.requests:
        if request.files_to_delete:
            single = RollbackPlan(target, (request,))
            sizes = {path: size for path in ensure_own_files(single) if (size := _size(storage, path)) is not None}
            if sizes:
                file_id = request.file_id or _file_id(next(iter(sizes)))
                yield PreviewStep("delete", request.partition_path, file_id, tuple(sizes), sum(sizes.values()), why)
        if request.log_blocks_to_delete:
            why_kept = f"log blocks of {target.action} {target.commit_time} are taken back by a command block"
            yield PreviewStep("create", request.partition_path, request.file_id, (), 0, why_kept)


def _notes(plan: RollbackPlan, target: Instant) -> tuple[str, ...]:
    return (f"the {target.action} {target.requested} will be gone from the timeline",) if plan.requests else ()


def _size(storage: Storage, path: str) -> int | None:
    try:
        return storage.head(path).size_bytes
    except Missing:
        return None


def _file_id(path: str) -> str | None:
    name = parse_data_file_name(path.rpartition("/")[2])
    return None if name is None else name.file_id
