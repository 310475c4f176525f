"""What is wrong with a table: findings, each with the file it is about. Nothing is repaired.

1. Every file a reader would read now must be there, have the size and row count its commit names, and be a base file.
   A log file may be longer (version 6 appends), not shorter.
2. Every file a commit names must be there unless a clean may have taken it: newer slices of its group exist, or the
   group was replaced, and cleaning retains nothing that old. What a clean that is under way retains is not known.
3. A file of an instant that is pending is a leftover, of one that is nowhere an orphan; a file of a committed instant
   that the commit does not name is worse, because readers take it.
4. Timeline files must parse, and the states of an instant must make sense together.
5. A metadata table must list the files that lie there.
6. A deep look (`deep_check`) reads every committed file to its end.

Cost: one listing, one read per active commit, one footer per visible base file; deep: all bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hoodie.engine import Engine, LocalEngine, TaskId
from hoodie.errors import Corrupt, HudiError, Missing, Unsupported
from hoodie.fileview import FolderView
from hoodie.query.cleaned import load_unpromised
from hoodie.query.deep_check import check_files
from hoodie.query.time_travel import load_last_retained
from hoodie.slices.base_rows import row_count
from hoodie.spec import (
    CLEAN,
    COMPLETED_WRITE_ACTIONS,
    CommitMetadata,
    Instant,
    InstantTime,
    State,
    WriteStat,
    keys,
    parse_table_config,
)
from hoodie.spec.properties import MAX_BYTES
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage
from hoodie.timeline import Timeline, has_history, list_instants, load_commit_metadata, load_instant, load_timeline
from hoodie.view import BaseFile, GroupId, View

CHECKING_THREADS = 16

_Commits = Mapping[InstantTime, CommitMetadata]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `kind` is a fixed word, `path` the file it is about, `message` says what and why it
    matters.
    """

    kind: str
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class _Picture:
    """All that is known before files are opened."""

    view: View
    commits: _Commits
    earliest_retained: InstantTime | None
    was_cleaned: bool
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def timeline(self) -> Timeline:
        return self.view.timeline


def validate_table(handle: TableHandle, engine: Engine | None = None, *, deep: bool = False) -> list[Finding]:
    """All findings, ordered by kind and path; empty when the table is in order. `deep` decodes every file."""
    engine = engine or LocalEngine(CHECKING_THREADS)
    storage, profile = handle.storage, handle.profile
    instants = list_instants(storage, profile, handle.config.timezone)
    findings = [*_properties(storage), *_states(instants, profile.stores_completion_time)]
    timeline = load_timeline(storage, profile, handle.config.timezone)
    commits, damaged = _load_commits(storage, timeline)
    findings += damaged
    if damaged:  # what the files should be is not known
        return _ordered(findings)
    try:
        picture = _load_picture(handle, timeline, commits, engine)
    except Corrupt as error:
        return _ordered([*findings, _unreadable(error, "timeline")])
    findings += [
        *_pending(storage, timeline),
        *_strays(picture),
        *_named_files(storage, picture),
        *_visible_files(storage, picture, engine),
        *_metadata(handle, picture),
    ]
    if deep:
        known = {finding.path for finding in findings}
        damages = check_files(storage, picture.view, _committed_log_bytes(commits), engine)
        findings += [Finding("damaged", path, what) for path, what in damages if path not in known]
    return _ordered(findings)


def missing_files(handle: TableHandle, engine: Engine | None = None) -> tuple[Finding, ...]:
    """Files that completed commits wrote, that nothing can have cleaned, and that no listing shows. Lists the table.

    Raises:
        Corrupt: a commit or the timeline is damaged, so that nobody knows which files there should be.
    """
    storage = handle.storage
    timeline = load_timeline(storage, handle.profile, handle.config.timezone)
    commits, damaged = _load_commits(storage, timeline)
    if damaged:
        raise Corrupt(f"{damaged[0].path} {damaged[0].message}", remedy="Restore the file from a copy first")
    picture = _load_picture(handle, timeline, commits, engine or LocalEngine(CHECKING_THREADS))
    return tuple(finding for finding in _named_files(storage, picture) if finding.kind == "missing")


def _load_picture(handle: TableHandle, timeline: Timeline, commits: _Commits, engine: Engine) -> _Picture:
    storage = handle.storage
    view = FolderView(storage, timeline, engine).load()
    retained = load_last_retained(storage, timeline)
    is_cleaning = any(instant.action == CLEAN for instant in timeline.pending())
    was_cleaned = any(instant.action == CLEAN for instant in timeline.instants) or has_history(storage, handle.profile)
    sizes = {file.path: file.size_bytes for found in view.files for file in found.everything}
    return _Picture(view, commits, None if is_cleaning else retained, was_cleaned, sizes)


def _ordered(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (finding.kind, finding.path))


def _properties(storage: Storage) -> Iterator[Finding]:
    try:
        parse_table_config(storage.read_range(keys.PROPERTIES_FILE, 0, MAX_BYTES + 1), keys.PROPERTIES_FILE)
    except Missing:
        yield Finding("properties", keys.PROPERTIES_FILE, "is missing: readers live from its backup")
    except HudiError as error:
        yield Finding("properties", keys.PROPERTIES_FILE, error.cause)
    try:
        storage.head(keys.PROPERTIES_BACKUP_FILE)
    except Missing:
        return
    yield Finding(
        "properties", keys.PROPERTIES_BACKUP_FILE, "is left of an update of the properties that did not finish"
    )


def _states(instants: tuple[Instant, ...], has_completion_times: bool) -> Iterator[Finding]:
    """States in the timeline's folder that do not fit together."""
    states: dict[tuple[InstantTime, str], list[Instant]] = {}
    for instant in instants:
        states.setdefault(instant.logical, []).append(instant)
    for (requested, action), found in sorted(states.items()):
        reached = Counter(instant.state for instant in found)
        name = f"{requested}.{action}"
        if reached[State.COMPLETED] > 1:
            yield Finding("timeline", name, "is completed more than once")
        early = [
            instant.completed
            for instant in found
            if has_completion_times and instant.completed and not instant.legacy_name
        ]
        if early and min(early) < requested:
            yield Finding("timeline", name, f"was completed at {min(early)}, before it was requested")
        if reached[State.INFLIGHT] and not reached[State.REQUESTED] and action != "savepoint":
            yield Finding("timeline", name, "is inflight without having been requested")
    times = Counter(requested for requested, action in states if action in COMPLETED_WRITE_ACTIONS)
    for requested in sorted(time for time, count in times.items() if count > 1):
        yield Finding("timeline", requested, "is the time of more than one write: their files cannot be told apart")


def _pending(storage: Storage, timeline: Timeline) -> Iterator[Finding]:
    for instant in PendingPlans(storage, timeline).incomplete_writes():
        name = f"{instant.requested}.{instant.action}"
        state = instant.state.name.lower()
        yield Finding("pending", name, f"is {state}: a writer is at work, or died; the next write rolls it back")


def _load_commits(storage: Storage, timeline: Timeline) -> tuple[_Commits, list[Finding]]:
    commits: dict[InstantTime, CommitMetadata] = {}
    findings = []
    for instant in timeline.completed():
        try:
            if instant.action in COMPLETED_WRITE_ACTIONS:
                commits[instant.requested] = load_commit_metadata(storage, timeline.profile, instant)
            else:
                load_instant(storage, timeline.profile, instant)
        except (Corrupt, Missing) as error:
            findings.append(_unreadable(error, f"{instant.requested}.{instant.action}"))
    return commits, findings


def _strays(picture: _Picture) -> Iterator[Finding]:
    """Data files that no completed commit named."""
    named = {stat.path for metadata in picture.commits.values() for _, stat in metadata.write_stats()}
    pending = {instant.requested for instant in picture.timeline.pending()}
    naming = picture.timeline.profile.log_naming
    for found in picture.view.files:
        slices = {(base.name.file_id, base.name.instant) for base in found.bases}
        for file in found.everything:
            instant = file.name.instant
            if not isinstance(file, BaseFile) and (file.name.file_id, instant) in slices:
                continue  # named by its slice, as in version 6: the name does not say who wrote it
            if naming.writer_of(file.name) is not None:
                if instant in pending:
                    yield Finding("uncommitted", file.path, f"was written by {instant}, which is not complete")
                elif not picture.timeline.is_committed(instant):
                    yield Finding("orphan", file.path, f"was written by {instant}, which was never committed")
                elif instant in picture.commits and file.path not in named:
                    yield Finding(
                        "unlisted", file.path, f"is not among the files of its commit {instant}, but readers take it"
                    )


def _named_files(storage: Storage, picture: _Picture) -> Iterator[Finding]:
    """Files that commits name and that are not there or have another size."""
    newest = _newest_base(picture.commits)
    missing: list[tuple[InstantTime, str, WriteStat]] = []
    for requested, metadata in picture.commits.items():
        for partition, stat in metadata.write_stats():
            if stat.path is None:
                continue
            size = picture.sizes.get(stat.path)
            if size is None:
                if _must_exist(picture, (partition, stat.file_id or ""), requested, newest):
                    missing.append((requested, partition, stat))
            elif _is_other_size(stat, size):
                message = f"has {size} bytes, its commit {requested} wrote {stat.file_size_bytes}"
                yield Finding("size", stat.path, message)
    unpromised = load_unpromised(storage, picture.view) if missing else frozenset()
    for requested, partition, stat in missing:
        if (partition, (stat.path or "").rpartition("/")[2]) not in unpromised:
            yield _not_listed(storage, picture, partition, stat, requested)


def _committed_log_bytes(commits: _Commits) -> dict[str, int]:
    """Bytes of the largest committed write to each log and change-data file."""
    sizes: dict[str, int] = {}
    for metadata in commits.values():
        for _, stat in metadata.write_stats():
            said = {
                **(stat.cdc_stats or {}),
                **({stat.path: stat.file_size_bytes} if stat.is_log and stat.path else {}),
            }
            for path, size in said.items():
                sizes[path] = max(size, sizes.get(path, 0))
    return sizes


def _is_other_size(stat: WriteStat, size: int) -> bool:
    if stat.is_log:
        return size < stat.file_size_bytes
    return stat.file_size_bytes not in {0, size}


def _newest_base(commits: _Commits) -> dict[GroupId, InstantTime]:
    """The last commit that wrote a base file of each group."""
    newest: dict[GroupId, InstantTime] = {}
    for requested in sorted(commits):
        for partition, stat in commits[requested].write_stats():
            if not stat.is_log:
                newest[partition, stat.file_id or ""] = requested
    return newest


def _must_exist(
    picture: _Picture, group: GroupId, requested: InstantTime, newest: Mapping[GroupId, InstantTime]
) -> bool:
    """Whether no clean that promises an earliest commit can have removed a file that a commit wrote to a group."""
    replaced = picture.view.replaced.get(group)
    if not picture.was_cleaned:
        return True
    is_last = requested >= newest.get(group, requested)
    earliest = picture.earliest_retained
    if earliest is None:
        return is_last and replaced is None
    return requested >= earliest or (is_last and (replaced is None or replaced >= earliest))


def _not_listed(
    storage: Storage, picture: _Picture, partition: str, stat: WriteStat, requested: InstantTime
) -> Finding:
    path = stat.path or ""
    if partition not in picture.view.partitions and storage.list_dir(partition).files:
        return Finding("partition", partition, "has data files but no partition metafile: readers do not see it")
    return Finding("missing", path, f"is not there, but commit {requested} wrote it and nothing can have cleaned it")


def _visible_files(storage: Storage, picture: _Picture, engine: Engine) -> list[Finding]:
    """Base files that a snapshot reads: each is opened."""
    rows = {
        stat.path: stat.num_writes
        for metadata in picture.commits.values()
        for _, stat in metadata.write_stats()
        if stat.path is not None and not stat.is_log
    }
    bases = [part.base for part in picture.view.slices_at() if part.base is not None]
    tasks = [_FooterTask(storage, base, rows.get(base.path)) for base in bases]
    return [finding for finding in engine.run(_check_footer, tasks, "check files") if finding is not None]


@dataclass(frozen=True, slots=True)
class _FooterTask:
    storage: Storage
    base: BaseFile
    rows: int | None


def _check_footer(_: TaskId, task: _FooterTask) -> Finding | None:
    try:
        rows = row_count(task.storage, task.base)
    except (Corrupt, Missing, Unsupported) as error:
        return _unreadable(error, task.base.path)
    if task.rows is not None and rows != task.rows:
        return Finding("rows", task.base.path, f"has {rows} rows, its commit wrote {task.rows}")
    return None


def _metadata(handle: TableHandle, picture: _Picture) -> Iterator[Finding]:
    """What the metadata table, if there is one, says otherwise than storage."""
    if not handle.config.is_metadata_table_ready:
        return
    # Loads the readers of the metadata table, which nobody else who asks for this module needs.
    from hoodie.metadata import validate_metadata_table  # noqa: PLC0415

    timeline = picture.timeline
    named = {stat.path for metadata in picture.commits.values() for _, stat in metadata.write_stats()}
    naming = timeline.profile.log_naming
    settled = [
        file.path
        for found in picture.view.files
        for file in found.everything
        if timeline.is_committed(file.name.instant) and (naming.writer_of(file.name) or file.path in named)
    ]
    for path, what in validate_metadata_table(handle.storage, handle.config, timeline, picture.sizes, settled):
        yield Finding("metadata", path, what)


def _unreadable(error: HudiError, name: str) -> Finding:
    return Finding("unreadable", str(error.facts.get("path", name)), error.cause)
