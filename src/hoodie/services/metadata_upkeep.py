"""Upkeep of the metadata table: it is compacted when that is due, then cleaned, then archived.

1. Cleaning and archiving follow a compaction: before it nothing new can go. The two newest versions of every file group
   stay, so a reader that listed before the compaction finds its files.
2. They are the services of any table, on the handle of the metadata table. Its archiving keeps what the data
   timeline has (`archiving.plan`), and one commit more.
3. In version 6 the instants are those of the last delta commit with a suffix: 001 the compaction, 002 the clean.

The caller holds the table lock, and nothing of the table is half done.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.fileview import FolderView
from hoodie.metadata_writer import MetadataOptions, compact_metadata, open_metadata_handle
from hoodie.metadata_writer.compact import has_enough, plan_instant
from hoodie.metadata_writer.metadata_handle import nested_storage
from hoodie.metadata_writer.partition_state import maintained_partitions
from hoodie.notebook import Displayed
from hoodie.services.archiving.archive import archive
from hoodie.services.cleaning.clean import clean
from hoodie.services.preview import PreviewStep, ServicePreview
from hoodie.services.service import AfterCommit, Service
from hoodie.spec import COMPACTION, InstantTime
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.state.table_state import TableState
from hoodie.timeline import load_timeline

_KEPT_MIN = "hoodie.keep.min.commits"
_KEPT_MAX = "hoodie.keep.max.commits"


@dataclass(frozen=True, slots=True)
class MetadataResult(Displayed):
    """What was done: the instant of the compaction, files that the clean removed, instants that were archived."""

    compaction: InstantTime
    files_cleaned: int
    instants_archived: int


def keep_metadata(handle: TableHandle, config: Config, engine: Engine) -> MetadataResult | None:
    """What was done for the metadata table; None when nothing was due or there is none.

    Raises:
        Corrupt: it is damaged.
    """
    options = MetadataOptions.of(config)
    compaction = compact_metadata(handle, engine, options)
    if compaction is None:
        return None
    own = open_metadata_handle(handle)
    services = _own_options(config, options)
    at = own.profile.metadata_instants.clean(compaction.requested)
    cleaned = clean(own, services, engine, instant=at, forced=True)
    archived = archive(own, services, engine, data_timeline=timeline_of(handle))
    return MetadataResult(
        compaction.requested,
        0 if cleaned is None else cleaned.files,
        0 if archived is None else archived.instants,
    )


def preview_metadata(handle: TableHandle, config: Config, engine: Engine) -> ServicePreview:
    """What `keep_metadata` would compact now: a step for each file group that has log files. Writes nothing.

    What its clean and its archiving take away follows from the compaction, and is not known before it. Lists the
    timelines and, when a compaction is due, the metadata table.
    """
    if not handle.config.is_metadata_table_ready:
        return ServicePreview("metadata", notes=("the table has no metadata table",))
    own = open_metadata_handle(handle)
    timeline = timeline_of(own)
    plans = PendingPlans(own.storage, timeline)
    begun = plans.instants(COMPACTION)
    limit = MetadataOptions.of(config).compact_after
    if not begun and not has_enough(own, timeline, limit):
        return ServicePreview("metadata", notes=(f"a compaction is due {limit} delta commits after the last one",))
    if not begun and plan_instant(own, timeline_of(handle), timeline) is None:
        return ServicePreview("metadata", notes=("a commit of the table is pending: it is not compacted beside it",))
    reason = f"the compaction {begun[0].requested} was begun" if begun else f"{limit} delta commits or more are waiting"
    view = FolderView(own.storage, timeline, engine, plans).load(maintained_partitions(handle))
    steps = tuple(
        PreviewStep("merge", part.partition, part.file_id, part.paths, part.size_bytes, reason)
        for part in view.slices_at()
        if part.logs
    )
    return ServicePreview("metadata", steps, ("its cleaning and archiving follow the compaction",))


def _own_options(config: Config, options: MetadataOptions) -> Config:
    """Options of cleaning and archiving the metadata table."""
    return Config(
        {
            "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
            "hoodie.clean.fileversions.retained": str(options.keep_versions),
            _KEPT_MIN: str(config.integer(_KEPT_MIN) + 1),
            _KEPT_MAX: str(config.integer(_KEPT_MAX) + 1),
        }
    )


def _has_metadata(handle: TableHandle, config: Config) -> bool:
    return handle.config.is_metadata_table_ready


def _may_keep(state: TableState, config: Config) -> bool:
    """Whether a compaction is due or was begun: where the state does not say it, one listing of the metadata table's
    timeline, which has the layout of the table's own.
    """
    handle = state.handle
    storage = nested_storage(handle)
    timeline = state.metadata or load_timeline(storage, handle.profile, handle.config.timezone)
    own = replace(handle, storage=storage)
    begun = any(one.action == COMPACTION for one in timeline.pending())
    return begun or has_enough(own, timeline, MetadataOptions.of(config).compact_after)


SERVICE: Final = Service(
    name="metadata",
    nothing="the metadata table needs nothing",
    run=keep_metadata,
    preview=preview_metadata,
    after_commit=(
        AfterCommit(
            "upkeep of the metadata table",
            _has_metadata,
            _may_keep,
            failure_key="hoodie.metadata.write.fail.on.table.service.failures",
        ),
    ),
)
