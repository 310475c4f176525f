"""Take a table to another version, 6 ↔ 8 ↔ 9, as steps of which each may be done again.

1. Order: what died is rolled back, or dropped if it is a resize; merge-on-read tables are compacted until no latest
   slice has log files; the metadata table goes; (to version 6) log files get names of version 6; the timeline and the
   history are written in the new form beside the old one; **the properties name the new version**; the old timeline
   goes; the metadata table is made anew.
2. The properties are the point of no return, replaced in one step with a backup. Before it the table has its old
   version and all of its old timeline; after it the new ones. Whoever dies in between is continued by the next call,
   which begins anew: nothing of an earlier attempt is trusted but that it may be overwritten.
3. Readers of the old version fail after the switch, as with every Hudi upgrade; while it runs they can read on.
4. Log files that a downgrade named anew before it died get their names back, unless the downgrade is what goes on.
5. What stands in the way is found before anything changes.

The caller holds the table lock. What becomes of each file: `docs/design/0010-versions.md`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from hoodie.config import Config, resolve
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import Invalid, Unavailable, Unsupported
from hoodie.fileview import FolderView
from hoodie.metadata import FILES, RECORD_INDEX, load_index_definitions
from hoodie.metadata_writer import drop_partitions, rebuild_partitions
from hoodie.notebook import Displayed
from hoodie.records import read_footer
from hoodie.services.compaction.compact import COMPACTIONS, preview_compaction, schedule_compaction
from hoodie.services.compaction.log_compact import LOG_COMPACTIONS
from hoodie.services.preview import PreviewStep, ServicePreview
from hoodie.services.rewrite.abandoned import drop_abandoned_plans
from hoodie.services.rewrite.executor import run_plan
from hoodie.services.rollback.checks import ensure_no_restore
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.service import Argument, Service
from hoodie.services.upgrading.late_logs import remove_late_logs
from hoodie.services.upgrading.logs import plan_renames, run_renames, store_renames
from hoodie.services.upgrading.properties import plan_properties, property_blockers
from hoodie.services.upgrading.timeline import (
    Renames,
    keeps_times,
    plan_moves,
    sweep_schema_history,
    write_history,
    write_schema_history,
    write_timeline,
)
from hoodie.spec import (
    COMPACTION,
    NAMED_BY_SLICE,
    NAMED_BY_WRITE,
    FormatProfile,
    Instant,
    InstantTime,
    TableConfig,
    keys,
    profile_for,
    profile_of,
)
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.state.log_renames import load_renames
from hoodie.state.pending_plans import PendingPlans
from hoodie.state.table_state import load_state
from hoodie.timeline import instant_path, list_instants, store_table_config
from hoodie.view import FileSlice

log = logging.getLogger(__name__)

AUTO = "hoodie.write.auto.upgrade"
VERSION = "hoodie.write.table.version"

_CLEANED_FIRST = (
    "Compact, delete savepoints that keep such slices, clean with hoodie.clean.policy=KEEP_LATEST_FILE_VERSIONS and "
    "hoodie.clean.fileversions.retained=1, then try again"
)
_UNBOUNDED = {
    "hoodie.compaction.strategy": "org.apache.hudi.table.action.compact.strategy.UnBoundedCompactionStrategy",
}


@dataclass(frozen=True, slots=True)
class UpgradeResult(Displayed):
    """What it took to bring a table from one version to another. `steps` are sentences, in order."""

    before: int
    after: int
    steps: tuple[str, ...]
    duration_ms: int


def upgrade(handle: TableHandle, config: Config, engine: Engine, to: int) -> UpgradeResult | None:
    """What bringing the table to version `to` took; None when it has that version. Then what an attempt to or from
    there left is removed: of one that died before the switch nothing remains but its compactions (one that died is left
    to the next compaction, as any other), of one that died after it the new version.

    Raises:
        Invalid: the version cannot hold this table; names what stands in the way.
        Unsupported: another version than 6, 8 and 9. Unavailable: a restore is pending.
        Conflict: a compaction is being carried out elsewhere.
    """
    version, target = to, _target(to)
    before = handle.config.table_version
    if before == version:
        handle = _give_names_back(handle, engine)
        _sweep_other_timeline(handle)
        return None
    clock = handle.env.monotonic()
    ensure_no_restore(timeline_of(handle))
    _ensure_possible(handle, config, target)
    if target.log_naming == handle.profile.log_naming:
        handle = _give_names_back(handle, engine)
    options = resolve({})
    roll_back_failed_writes(handle, LocalEngine(), config=options)
    handle = drop_abandoned_plans(load_state(handle.storage, handle.env), engine, options).handle
    steps = ["failed writes were rolled back"]
    wanted = _kept_by(handle, target)
    if handle.config.table_type == "MERGE_ON_READ":
        steps.append(f"{_compact_all(handle, config, engine)} compactions took in all log files")
        if handle.profile.log_naming == NAMED_BY_SLICE != target.log_naming and (
            late := remove_late_logs(handle, engine)
        ):
            steps.append(f"{late} log files of writes that were rolled back before they came were removed")
    renamed = target.log_naming == NAMED_BY_SLICE and handle.profile.log_naming != target.log_naming
    renames = _renames(handle) if renamed else {}
    if handle.config.has_metadata_table:
        handle = drop_partitions(handle, (FILES,))
        steps.append("the metadata table was dropped")
    if renamed:
        handle = _rename_logs(handle, engine, renames)
        steps.append(f"{len(renames)} log files got names of version {target.table_version}")
    new = plan_properties(handle.config, target, config)
    if profile_of(new).layout_version != handle.profile.layout_version:
        steps.extend(_convert(handle, profile_of(new), renames))
    stored = store_table_config(handle.storage, handle.config, new, handle.env)
    steps.append(f"the properties say version {version}")
    handle = TableHandle(handle.storage, stored, profile_of(stored), handle.env)
    _sweep_other_timeline(handle)
    if wanted:
        handle = rebuild_partitions(handle, wanted, engine)
        made = handle.config.metadata_partitions
        steps.append(f"the metadata table was made anew: {', '.join(made) or 'by the next write'}")
    took_ms = int((handle.env.monotonic() - clock) * 1000)
    return UpgradeResult(before, version, tuple(steps), took_ms)


def upgrade_if_asked(handle: TableHandle, config: Config, engine: Engine) -> TableHandle:
    """The handle of a table that has the version the options ask writes for, where they allow writes to change it
    (`hoodie.write.auto.upgrade`). Never downwards.
    """
    if not config.flag(AUTO) or handle.config.table_version >= config.integer(VERSION):
        return handle
    upgrade(handle, config, engine, config.integer(VERSION))
    return load_handle(handle.storage, handle.env)


def _target(version: int) -> FormatProfile:
    try:
        return profile_for(version)
    except Unsupported as error:
        raise Unsupported(
            f"No table can be taken to version {version}", remedy="Ask for 6, 8 or 9", table_version=version
        ) from error


def preview_upgrade(handle: TableHandle, config: Config, engine: Engine | None = None, to: int = 9) -> ServicePreview:
    """What `upgrade` would do, and what stands in its way. Writes nothing."""
    del engine
    version, target = to, _target(to)
    if handle.config.table_version == version:
        return ServicePreview("upgrade", (), (f"the table has version {version}",))
    timeline = timeline_of(handle)
    ensure_no_restore(timeline)
    steps: list[PreviewStep] = []
    notes = [f"blocked: {reason}" for reason in _blockers(handle, config, target)]
    for one in reversed(PendingPlans(handle.storage, timeline).incomplete_writes()):
        steps.append(PreviewStep("delete", "", None, (), 0, f"{one.action} {one.requested} is rolled back first"))
    if handle.config.table_type == "MERGE_ON_READ":
        steps.extend(preview_compaction(handle, _compact_config(config), when_due=False).steps)
    if handle.config.has_metadata_table:
        steps.extend(_metadata_steps(handle, target))
    new = plan_properties(handle.config, target, config)
    if profile_of(new).layout_version != handle.profile.layout_version:
        steps.extend(_timeline_steps(handle, profile_of(new)))
        files = sum(len(step.paths) for step in steps if step.file_id and step.action == "move")
        why = _why_not_placed(handle, files)
        notes += [f"blocked: {why}. {_CLEANED_FIRST}"] if why else []
    notes.extend(_changes(handle.config, new))
    return ServicePreview("upgrade", tuple(steps), tuple(notes))


def _ensure_possible(handle: TableHandle, config: Config, target: FormatProfile) -> None:
    blockers = _blockers(handle, config, target)
    if blockers:
        raise Invalid(
            f"The table cannot have version {target.table_version}: {'; '.join(blockers)}",
            remedy="`hoodie upgrade --dry-run` shows everything that would change",
            version=target.table_version,
        )


def _blockers(handle: TableHandle, config: Config, target: FormatProfile) -> tuple[str, ...]:
    asks_keys = target.capabilities.complex_single_key_settled and handle.config.keygen_type == "COMPLEX"
    return property_blockers(handle.config, target, config, _stored_key(handle) if asks_keys else None)


def _stored_key(handle: TableHandle) -> str | None:
    """A record key the table holds; None when no base file says one."""
    slices = FolderView(handle.storage, timeline_of(handle)).load().slices_at()
    footers = (read_footer(handle.storage, one.base.path) for one in slices if one.base is not None)
    return next((footer.min_key for footer in footers if footer.min_key is not None), None)


def _compact_all(handle: TableHandle, config: Config, engine: Engine) -> int:
    """The number of compactions it took until no plan is pending and nothing is left to compact.

    Raises:
        Unavailable: the storage does not list what was just written. Going on would undo a completed compaction as one
            that died, or convert a timeline without it.
    """
    chosen = _compact_config(config)
    done: set[InstantTime] = set()
    while True:
        for kind in (LOG_COMPACTIONS, COMPACTIONS):
            while (pending := kind.find(PendingPlans(handle.storage, timeline_of(handle)), None)) is not None:
                if pending.requested in done:
                    raise _not_listed(handle, pending)
                run_plan(handle, chosen, engine, kind, pending, held=True)
                done.add(pending.requested)
        planned = schedule_compaction(handle, chosen, engine, when_due=False)
        if planned is None:
            return len(done)
        if timeline_of(handle).find(planned.requested, COMPACTION) is None:
            raise _not_listed(handle, planned)


def _not_listed(handle: TableHandle, instant: Instant) -> Unavailable:
    return Unavailable(
        f"{handle.storage.uri} does not list what the {instant.action} {instant.requested} has just written",
        remedy="Upgrade again when it does; nothing is lost. Tables need a storage whose listings never lag",
        instant=instant.requested,
    )


def _compact_config(config: Config) -> Config:
    return config.overridden(resolve(_UNBOUNDED))


def _rename_logs(handle: TableHandle, engine: Engine, renames: Renames) -> TableHandle:
    """The handle after log files got names by their slices. What remembers names is told by the properties before the
    first of them changes.
    """
    store_renames(handle.storage, renames)
    if renames:
        began = handle.config.with_changes({keys.LOG_RENAMES: handle.env.now().isoformat()})
        handle = replace(handle, config=store_table_config(handle.storage, handle.config, began, handle.env))
    run_renames(handle.storage, engine, renames)
    return handle


def _convert(handle: TableHandle, target: FormatProfile, renames: Renames) -> tuple[str, str]:
    """Timeline and history in the form of the target version, beside what is there. What was done."""
    _clear_target(handle, target)
    moves = plan_moves(handle, target)
    write_timeline(handle, target, moves, renames)
    write_schema_history(handle.storage, target, moves)
    moved = f"{len(moves)} files of the timeline were written in the new form"
    return moved, f"{write_history(handle, target)} archived writes were carried over"


def _renames(handle: TableHandle) -> Renames:
    """New names of log files by their slices, those of an attempt that died among them.

    Raises:
        Invalid: Hudi 1.x would not find them where they belong.
    """
    renames = {**plan_renames(_all_slices(handle)), **load_renames(handle.storage)}
    why = _why_not_placed(handle, len(renames))
    if why is not None:
        raise Invalid(why, remedy=_CLEANED_FIRST, files=len(renames))
    return renames


def _why_not_placed(handle: TableHandle, files: int) -> str | None:
    """Why so many log files of older slices would not be found where they belong, by Hudi 1.x: it goes by the times of
    change of instants, which object stores do not let anybody set.
    """
    if not files or keeps_times(handle.storage) or handle.storage.scheme == "memory":
        return None
    return (
        f"{files} log files belong to older file slices, and {handle.storage.scheme} cannot keep the times by which "
        "Hudi 1.x would tell"
    )


def _kept_by(handle: TableHandle, target: FormatProfile) -> tuple[str, ...]:
    """The partitions of the metadata table that the table has in that version, too. Where no record index is cut by
    partitions (version 6), one for the whole table would not know keys that are in several of them.
    """
    kept = tuple(name for name in handle.config.metadata_partitions if target.indexes.can_have(name))
    if target.indexes.has_partitioned_record_index:
        return kept
    known = load_index_definitions(handle.storage, handle.config).get(RECORD_INDEX)
    is_global = known is None or not known.is_partitioned
    return tuple(name for name in kept if name != RECORD_INDEX or is_global)


def _give_names_back(handle: TableHandle, engine: Engine) -> TableHandle:
    """The handle after the renaming of a downgrade was undone that died before the switch, and is not wanted any more.
    A metadata table that a write has made since lists the new names: it is made anew.
    """
    renames = load_renames(handle.storage) if handle.profile.log_naming == NAMED_BY_WRITE else {}
    if not renames:
        return handle
    made = handle.config.metadata_partitions if handle.config.has_metadata_table else ()
    if made:
        handle = drop_partitions(handle, (FILES,))
    run_renames(handle.storage, engine, {new: old for old, new in renames.items()})
    handle.storage.delete(keys.LOG_RENAMES_FILE)
    return rebuild_partitions(handle, made, engine) if made else handle


def _all_slices(handle: TableHandle) -> tuple[FileSlice, ...]:
    return FolderView(handle.storage, timeline_of(handle)).load().all_slices()


def _clear_target(handle: TableHandle, target: FormatProfile) -> None:
    """Remove what an earlier attempt, or an earlier stay in that version, left where the new timeline will be."""
    handle.storage.delete_dir(target.history_dir)
    if target.timeline_dir != keys.HOODIE_DIR:
        handle.storage.delete_dir(target.timeline_dir)
    else:
        for one in list_instants(handle.storage, target, handle.config.timezone):
            handle.storage.delete(instant_path(target, one))


def _sweep_other_timeline(handle: TableHandle) -> None:
    """Remove the timeline of the layout this table has no more. The archive of version 6 stays, in nobody's way."""
    handle.storage.delete(keys.LOG_RENAMES_FILE)
    sweep_schema_history(handle.storage, handle.profile)
    if handle.profile.timeline_dir == keys.HOODIE_DIR:
        handle.storage.delete_dir(f"{keys.HOODIE_DIR}/{handle.config.raw.get(keys.TIMELINE_PATH) or 'timeline'}")
        return
    old = profile_for(6)
    for one in list_instants(handle.storage, old, handle.config.timezone):
        handle.storage.delete(instant_path(old, one))


def _metadata_steps(handle: TableHandle, target: FormatProfile) -> Iterable[PreviewStep]:
    kept = _kept_by(handle, target)
    yield PreviewStep("rewrite", "", None, (), 0, f"the metadata table is made anew: {', '.join(kept)}")
    lost = [name for name in handle.config.metadata_partitions if name not in kept]
    if lost:
        why = f"the metadata table loses what version {target.table_version} does not have: {', '.join(lost)}"
        yield PreviewStep("delete", "", None, (), 0, why)


def _timeline_steps(handle: TableHandle, target: FormatProfile) -> Iterable[PreviewStep]:
    if target.log_naming == NAMED_BY_SLICE:
        for one in _all_slices(handle):
            renames = plan_renames((one,))
            sizes = sum(log.size_bytes for log in one.logs if log.path in renames)
            if renames:
                why = f"log files are named as in version {target.table_version}"
                yield PreviewStep("move", one.partition, one.file_id, tuple(renames), sizes, why)
    files = handle.storage.list_dir(handle.profile.timeline_dir).files
    known = [file for file in files if handle.profile.instant_names.parse(file.path.rpartition("/")[2]) is not None]
    paths = tuple(file.path for file in known)
    size = sum(file.size_bytes for file in known)
    yield PreviewStep("move", "", None, paths, size, f"the timeline goes to {target.timeline_dir}")


def _changes(old: TableConfig, new: TableConfig) -> Iterable[str]:
    for key in sorted({*old.raw, *new.raw}):
        before, after = old.raw.get(key), new.raw.get(key)
        if before != after and key != keys.CHECKSUM:
            yield f"{key}: {'(none)' if before is None else before} → {'(none)' if after is None else after}"


SERVICE: Final = Service(
    name="upgrade",
    nothing="the table has that version",
    run=upgrade,
    preview=preview_upgrade,
    arguments=(Argument("to", "the table version (default 9)", int, 9, (6, 8, 9)),),
)
