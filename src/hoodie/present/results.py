"""What writes and services have done: a title, and the facts of the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hoodie.present.forms import Form, fields_json
from hoodie.present.sheet import Column, Sheet

if TYPE_CHECKING:
    from hoodie.metadata_writer import IndexBuildResult
    from hoodie.services.archiving.archive import ArchiveResult
    from hoodie.services.cleaning.clean import CleanResult
    from hoodie.services.clustering.expiry import ExpiredClusterings, PendingClusterings
    from hoodie.services.clustering.result import ClusteringResult, PlannedClustering
    from hoodie.services.compaction.result import CompactionResult
    from hoodie.services.metadata_upkeep import MetadataResult
    from hoodie.services.resizing.resize import ResizeResult
    from hoodie.services.rollback.orphans import OrphansResult
    from hoodie.services.rollback.restore import RestoreResult
    from hoodie.services.rollback.rollback import RollbackResult
    from hoodie.services.upgrading.upgrade import UpgradeResult
    from hoodie.transaction import Committed


def _clean_json(done: CleanResult) -> dict[str, Any]:
    return {**fields_json(done), "partitions": len(done.partitions)}


def _orphans_sheet(done: OrphansResult) -> Sheet:
    paths = [(path,) for path in done.files]
    return Sheet(f"{len(done.files):,} orphans removed", (Column("path", wraps=True),), paths)


def _upgrade_sheet(done: UpgradeResult) -> Sheet:
    steps = [(step,) for step in done.steps]
    return Sheet(f"Version {done.before} to {done.after}", (Column("step", wraps=True),), steps)


def _pending_sheet(found: PendingClusterings) -> Sheet:
    columns = (Column("instant"), Column("what"), Column("state"), Column("groups"), Column("files"), Column("age"))
    rows = [
        (
            plan.instant,
            plan.kind,
            plan.state + (", alive" if plan.is_alive else ""),
            f"{plan.groups:,}",
            f"{plan.slices:,}",
            "?" if plan.age_seconds is None else f"{plan.age_seconds // 60:,} min",
        )
        for plan in found.plans
    ]
    return Sheet(f"{len(found.plans):,} clusterings pending", columns, rows)


def _expired_sheet(done: ExpiredClusterings) -> Sheet:
    gone = [(instant,) for instant in done.instants]
    return Sheet(f"{len(done.instants):,} expired clusterings taken off", (Column("instant"),), gone)


_WRITE: Form[Committed] = Form(title=lambda done: f"{done.operation} committed")
_CLEAN: Form[CleanResult] = Form(_clean_json, lambda done: f"clean {done.instant}")
_ARCHIVE: Form[ArchiveResult] = Form(title=lambda done: f"{done.instants:,} instants archived")
_COMPACTION: Form[CompactionResult] = Form(
    title=lambda done: f"{done.operation.replace('_', ' ').lower()} {done.instant}"
)
_CLUSTERING: Form[ClusteringResult] = Form(title=lambda done: f"clustering {done.instant}")
_PLANNED_CLUSTERING: Form[PlannedClustering] = Form(title=lambda plan: f"clustering {plan.instant} {plan.done}")
_PENDING_CLUSTERINGS: Form[PendingClusterings] = Form(sheet=_pending_sheet)
_EXPIRED_CLUSTERINGS: Form[ExpiredClusterings] = Form(sheet=_expired_sheet)
_RESIZE: Form[ResizeResult] = Form(title=lambda done: f"resize {done.instant}")
_ROLLBACK: Form[RollbackResult] = Form(title=lambda done: f"{done.action} {done.target} rolled back")
_RESTORE: Form[RestoreResult] = Form(title=lambda done: f"Restored to {done.to}")
_UPGRADE: Form[UpgradeResult] = Form(sheet=_upgrade_sheet)
_ORPHANS: Form[OrphansResult] = Form(sheet=_orphans_sheet)
_METADATA: Form[MetadataResult] = Form(title=lambda done: "metadata table kept up")
_INDEX: Form[IndexBuildResult] = Form(title=lambda done: f"index {done.name} is ready")

FORMS: Final = {
    "Committed": _WRITE,
    "CleanResult": _CLEAN,
    "ArchiveResult": _ARCHIVE,
    "CompactionResult": _COMPACTION,
    "ClusteringResult": _CLUSTERING,
    "PlannedClustering": _PLANNED_CLUSTERING,
    "PendingClusterings": _PENDING_CLUSTERINGS,
    "ExpiredClusterings": _EXPIRED_CLUSTERINGS,
    "ResizeResult": _RESIZE,
    "RollbackResult": _ROLLBACK,
    "RestoreResult": _RESTORE,
    "UpgradeResult": _UPGRADE,
    "OrphansResult": _ORPHANS,
    "MetadataResult": _METADATA,
    "IndexBuildResult": _INDEX,
}
