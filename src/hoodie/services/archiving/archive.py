"""Move the oldest instants from the timeline to the history, so that listing the timeline stays short.

1. The history gets the instants first; when it has them, their files leave the timeline. In between an instant is in
   both, which readers see as one; nothing is ever in neither.
2. Files leave in an order that never tells a lie: pending states first (all at once), so that no instant looks
   pending again; then completed cleans and rollbacks; then completed writes, one after the other from the oldest on,
   because everything before the first write on the timeline counts as committed and a hole would not.
3. An archiver that died after 1 left instants that are in the history already. They show by a missing requested file,
   or are chosen again: they are not written twice, only deleted.
4. Every file is read at most once, in parallel, and a bounded number of bytes at a time. Files without content are not
   read.
5. Then the history itself is kept small: files of a level merged into one (version 8 and later), small archives merged
   where that is asked for (version 6).

The caller holds the table lock. What goes is decided in `plan`. Bytes: `docs/format/history.md`.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine, TaskId
from hoodie.notebook import Displayed
from hoodie.services.archiving.options import ArchiveOptions, parse_archive_options
from hoodie.services.archiving.plan import ArchiveFacts, PlannedArchive, may_archive, plan_archive
from hoodie.services.cleaning.facts import load_last_clean
from hoodie.services.preview import PreviewStep, ServicePreview
from hoodie.services.rollback.checks import ensure_no_restore
from hoodie.services.service import AfterCommit, Service
from hoodie.spec import (
    CLEAN,
    COMMIT,
    COMPLETED_WRITE_ACTIONS,
    ROLLBACK,
    Instant,
    InstantTime,
    State,
    format_instant_millis,
    keys,
    marker_dir,
)
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.state.table_state import TableState
from hoodie.storage import FileInfo, NestedStorage, Storage
from hoodie.storage.fence import ensure_held
from hoodie.timeline import (
    ArchivedFiles,
    History,
    HistoryOptions,
    Logical,
    StateContent,
    Timeline,
    furthest,
    history_of,
    list_state_files,
)
from hoodie.transaction.deletion import delete_files

log = logging.getLogger(__name__)

THREADS = 16
PORTION_BYTES = 16 << 20
PORTION_FILES = 512
"""Bytes and number of state files that are in memory at a time."""

_ARCHIVED_ACTIONS = COMPLETED_WRITE_ACTIONS | {CLEAN, ROLLBACK}
_FILES_PER_TASK = 32

_StateFile = tuple[Instant, FileInfo]
_States = Mapping[Logical, Sequence[_StateFile]]


@dataclass(frozen=True, slots=True)
class ArchiveResult(Displayed):
    """What was archived: instants, the state files that left the timeline and their bytes, the file of the history they
    went to (None: they were there already), and how many files of the history were made by merging.
    """

    instants: int
    files: int
    size_bytes: int
    history_file: str | None
    merged: int
    duration_ms: int


def archive(
    handle: TableHandle, config: Config, engine: Engine, *, data_timeline: Timeline | None = None
) -> ArchiveResult | None:
    """What was archived; None when nothing had to be. `data_timeline`: where `handle` is a metadata table, the timeline
    of the table it describes.

    Raises:
        Corrupt: an instant that is to be archived, or the history, is damaged. Nothing left the timeline then.
        Unavailable: a restore is pending.
    """
    del engine  # instants are small files on one driver; nothing here is worth a job
    clock = handle.env.monotonic()
    options = parse_archive_options(config)
    states = _load_states(handle)
    timeline = _timeline_of(handle, states)
    ensure_no_restore(timeline)
    planned = _plan(handle, options, timeline, data_timeline)
    going = {instant.logical: instant for instant in (*planned.instants, *_left_behind(timeline, states))}
    history = _history(handle, options)
    known = history.already_has(going) if going else frozenset()
    # What looks left behind and is not in the history only lacks its requested file.
    going = {instant.logical: instant for instant in planned.instants} | {at: going[at] for at in known}
    if not going:
        return None
    fresh = sorted(going[at] for at in going.keys() - known)
    path = history.append(fresh, _contents(handle, history, states, fresh)) if fresh else None
    _remove(handle, states, sorted(going.values()))
    files = [file for at in going for _, file in states[at]]
    log.info("archived %d instants", len(going))
    return ArchiveResult(
        instants=len(going),
        files=len(files),
        size_bytes=sum(file.size_bytes for file in files),
        history_file=path,
        merged=history.merge(),
        duration_ms=int((handle.env.monotonic() - clock) * 1000),
    )


def archive_writes(handle: TableHandle, requested: Collection[InstantTime]) -> None:
    """Moves these completed writes to the history, whatever else stays on the timeline."""
    states = _load_states(handle)
    timeline = _timeline_of(handle, states)
    going = {write.logical: write for write in timeline.completed_writes() if write.requested in requested}
    history = history_of(handle.storage, handle.profile)
    known = history.already_has(going) if going else frozenset()
    fresh = sorted(going[at] for at in going.keys() - known)
    if fresh:
        history.append(fresh, _contents(handle, history, states, fresh))
    _remove(handle, states, sorted(going.values()))


def preview_archive(
    handle: TableHandle, config: Config, engine: Engine | None = None, *, data_timeline: Timeline | None = None
) -> ServicePreview:
    """What `archive` would move now: a step for each instant. Writes nothing. Raises as it does."""
    del engine
    options = parse_archive_options(config)
    states = _load_states(handle)
    timeline = _timeline_of(handle, states)
    planned = _plan(handle, options, timeline, data_timeline)
    steps = tuple(
        PreviewStep(
            "archive",
            "",
            None,
            tuple(file.path for _, file in states[instant.logical]),
            sum(file.size_bytes for _, file in states[instant.logical]),
            f"{instant.action} {instant.requested} is one of the oldest",
        )
        for instant in planned.instants
    )
    return ServicePreview("archive", steps, planned.notes)


def _load_states(handle: TableHandle) -> _States:
    """The files of every logical instant, requested ones first. One listing."""
    found: dict[Logical, list[_StateFile]] = defaultdict(list)
    for instant, file in list_state_files(handle.storage, handle.profile, handle.config.timezone):
        found[instant.logical].append((instant, file))
    return {at: sorted(files, key=lambda state_file: state_file[0].state) for at, files in found.items()}


def _timeline_of(handle: TableHandle, states: _States) -> Timeline:
    return Timeline(handle.profile, furthest(instant for found in states.values() for instant, _ in found))


def _plan(
    handle: TableHandle, options: ArchiveOptions, timeline: Timeline, data_timeline: Timeline | None
) -> PlannedArchive:
    """What goes. Nothing is read for it while there are few instants, which is so after most commits."""
    if not may_archive(timeline, options):
        return PlannedArchive(notes=(f"archiving begins above {options.max_commits} completed commits",))
    return plan_archive(timeline, options, _facts(handle, timeline, data_timeline))


def _facts(handle: TableHandle, timeline: Timeline, data_timeline: Timeline | None) -> ArchiveFacts:
    compacted: InstantTime | None = None
    if handle.config.is_metadata_table_ready:
        metadata_timeline = timeline_of(load_handle(NestedStorage(handle.storage, keys.METADATA_TABLE_DIR), handle.env))
        compacted = max(
            (instant.requested for instant in metadata_timeline.completed() if instant.action == COMMIT), default=""
        )
    return ArchiveFacts(
        now=handle.env.now(),
        timezone=handle.config.timezone,
        is_merge_on_read=handle.config.is_merge_on_read,
        last_clean=load_last_clean(handle, timeline),
        compacted=compacted,
        data_timeline=data_timeline,
    )


def _left_behind(timeline: Timeline, states: _States) -> Iterator[Instant]:
    """Completed instants whose requested file is gone: an archiver that died may have left them."""
    for instant in timeline.completed():
        if instant.action in _ARCHIVED_ACTIONS and states[instant.logical][0][0].state is not State.REQUESTED:
            yield instant


def _history(handle: TableHandle, options: ArchiveOptions) -> History:
    writing = HistoryOptions(options.batch, options.merge, options.history)
    return history_of(handle.storage, handle.profile, writing)


def _contents(
    handle: TableHandle, history: History, states: _States, fresh: Iterable[Instant]
) -> Iterator[list[ArchivedFiles]]:
    """The instants with the files that the history wants, in portions."""
    needed = (
        _Needed(instant, tuple(file for file in states[instant.logical] if history.wants(file[0]))) for instant in fresh
    )
    zone = handle.config.timezone
    for portion in _portions(needed):
        contents = _load(handle.storage, [file for entry in portion for _, file in entry.files])
        yield [
            ArchivedFiles(
                entry.instant,
                tuple(
                    StateContent(state, format_instant_millis(file.modified_ms, zone), file.path, contents[file.path])
                    for state, file in entry.files
                ),
            )
            for entry in portion
        ]


@dataclass(frozen=True, slots=True)
class _Needed:
    """An instant and those of its files that the history wants."""

    instant: Instant
    files: tuple[_StateFile, ...]


def _portions(items: Iterable[_Needed]) -> Iterator[list[_Needed]]:
    """Instants whose files are together of moderate size and number."""
    portion: list[_Needed] = []
    size = count = 0
    for item in items:
        for _, file in item.files:
            size += file.size_bytes
            count += 1
        portion.append(item)
        if size >= PORTION_BYTES or count >= PORTION_FILES:
            yield portion
            portion, size, count = [], 0, 0
    if portion:
        yield portion


@dataclass(frozen=True, slots=True)
class _Files:
    storage: Storage
    paths: tuple[str, ...]


def _load(storage: Storage, files: Iterable[FileInfo]) -> dict[str, bytes]:
    """Content of files by path."""
    contents = {file.path: b"" for file in files}
    full = [file.path for file in files if file.size_bytes]
    portion = max(1, min(_FILES_PER_TASK, -(-len(full) // THREADS)))
    tasks = [_Files(storage, tuple(full[at : at + portion])) for at in range(0, len(full), portion)]
    loaded = LocalEngine(THREADS).run(_read_files, tasks, "read instants")
    contents.update(zip(full, (data for part in loaded for data in part), strict=True))
    return contents


def _read_files(_: TaskId, task: _Files) -> list[bytes]:
    return [task.storage.read(path) for path in task.paths]


def _remove(handle: TableHandle, states: _States, going: Iterable[Instant]) -> None:
    """Take the files of instants off the timeline, and markers that are left of them."""
    files = [(instant, state, file.path) for instant in going for state, file in states[instant.logical]]
    engine = LocalEngine(THREADS)
    pending = [path for _, state, path in files if not state.is_completed]
    ensure_held(handle.storage)
    delete_files(handle.storage, engine, pending, "archive")
    others = [path for instant, state, path in files if state.is_completed and instant.action in (CLEAN, ROLLBACK)]
    delete_files(handle.storage, engine, others, "archive")
    for instant, state, path in files:
        if state.is_completed and instant.action not in (CLEAN, ROLLBACK):
            handle.storage.delete(path)
    gone = {marker_dir(instant.requested) for instant, _, _ in files}
    for folder in handle.storage.list_dir(keys.TEMP_DIR).dirs:
        if folder in gone:
            handle.storage.delete_dir(folder)


def _is_automatic(handle: TableHandle, config: Config) -> bool:
    return config.flag("hoodie.archive.automatic")


def _may_archive(state: TableState, config: Config) -> bool:
    """Whether there are instants enough, or an archiver that died has left some."""
    left = any(instant.action in _ARCHIVED_ACTIONS for instant in state.without_request)
    return left or may_archive(state.timeline, parse_archive_options(config))


SERVICE: Final = Service(
    name="archive",
    nothing="nothing to archive",
    run=archive,
    preview=preview_archive,
    after_commit=(
        AfterCommit("archiving", _is_automatic, _may_archive, failure_key="hoodie.fail.on.timeline.archiving"),
    ),
)
