"""Archived history: what happened before the active timeline starts.

1. Two forms exist, and the format profile says which one a table has: archives in log format (`LogHistory`), or
   parquet files with a manifest (`ParquetHistory`). An upgraded table keeps the archives of its former form; they count
   no more, since the upgrade has copied them.
2. A logical instant has one entry, and it is a completed one.
3. Times and actions are read at once, what a commit did only when it is asked for.

Where it is needed: `hoodie timeline --all`, incremental queries that begin before the active timeline, completion times
of log files older than it; archiving and upgrades write it. Bytes: `docs/format/history.md`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hoodie.errors import Invalid
from hoodie.spec import (
    CLEAN,
    CLUSTERING,
    COMPACTION,
    COMPLETED_WRITE_ACTIONS,
    LOG_COMPACTION,
    MANIFEST_PREFIX,
    REPLACE_COMMIT,
    CleanMetadata,
    CommitMetadata,
    FormatProfile,
    HistoryForm,
    Instant,
    InstantTime,
    State,
    archived_schema,
    encode_archived_state,
)
from hoodie.storage import FileInfo, Storage
from hoodie.timeline.archived_instant import ArchivedInstant, LogPlace, RowPlace
from hoodie.timeline.log_archive import (
    has_torn_spans,
    list_archives,
    load_archived_logicals,
    load_log_archive,
    load_log_clean,
    load_log_metadata,
)
from hoodie.timeline.log_archive_writer import MergeLimits, append_archive, merge_archives, settle_merge
from hoodie.timeline.lsm_history import load_lsm_cleans, load_lsm_history, load_lsm_metadata
from hoodie.timeline.lsm_writer import HistoryLimits, HistoryRow, append_history, compact_history

MAX_LOG_BYTES = 16 << 20
"""Bytes of archives in log format that are read to know all archived writes: one or two seconds of work."""

Logical = tuple[InstantTime, str]

_PLANNED_ACTIONS = frozenset({CLEAN, COMPACTION, LOG_COMPACTION, REPLACE_COMMIT, CLUSTERING})


@dataclass(frozen=True, slots=True)
class StateContent:
    """A file of an instant: the state it stands for, when it was changed, and its bytes."""

    instant: Instant
    changed: InstantTime
    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ArchivedFiles:
    """A completed instant on its way into the history, with those of its files that the history wants."""

    instant: Instant
    states: tuple[StateContent, ...]


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """How history is written. `entries_per_block` and `merge` (None: never) are for log files, `compact` for parquet
    files.
    """

    entries_per_block: int = 10
    merge: MergeLimits | None = None
    compact: HistoryLimits = field(default_factory=HistoryLimits)


class History(Protocol):
    """The archived history of one table, in one form.

    Implemented here, once for each `HistoryForm`; `history_of` chooses. A value: threads may share it. One archiver at
    a time writes (it holds the table lock); who dies within `append` has changed nothing that readers see, and who dies
    within `merge` leaves what the next `already_has` or `merge` finishes. Every method may raise `Corrupt` for a
    damaged file.
    """

    def files(self) -> tuple[FileInfo, ...]:
        """The files it is kept in. Listings only."""
        ...

    def exists(self) -> bool:
        """Whether instants were archived, by the names of files. Listings only."""
        ...

    def tells_all(self, files: Sequence[FileInfo]) -> bool:
        """Whether reading `files`, all of it, tells which writes there were, at a bearable price."""
        ...

    def load(self, after: InstantTime, until: InstantTime | None) -> tuple[ArchivedInstant, ...]:
        """The instants that were at work at some time in (after, until], in timeline order."""
        ...

    def already_has(self, wanted: Collection[Logical]) -> frozenset[Logical]:
        """Those of the instants, all still on the timeline, that an archiver has put here before it died."""
        ...

    def wants(self, state: Instant) -> bool:
        """Whether the file of an instant in this state is kept."""
        ...

    def append(self, instants: Sequence[Instant], portions: Iterable[Sequence[ArchivedFiles]]) -> str:
        """Adds the instants, in timeline order, and returns the path of the file they are in. `portions` has their
        files, in that order. The history has them when this returns, not earlier.
        """
        ...

    def merge(self) -> int:
        """Merges small files where there are enough of them; returns how many files were made by that."""
        ...


@dataclass(frozen=True, slots=True)
class _Folder:
    """Where a history lies, and how it is written."""

    storage: Storage
    profile: FormatProfile
    options: HistoryOptions

    @property
    def folder(self) -> str:
        return self.profile.history_dir


@dataclass(frozen=True, slots=True)
class LogHistory(_Folder):
    """Archives in log format (version 6): an entry for each state of an instant. They are read as a whole."""

    def files(self) -> tuple[FileInfo, ...]:
        return list_archives(self.storage, self.folder)

    def exists(self) -> bool:
        return bool(self.files())

    def tells_all(self, files: Sequence[FileInfo]) -> bool:
        is_small = sum(one.size_bytes for one in files) <= MAX_LOG_BYTES
        return is_small and not has_torn_spans(self.storage, files)

    def load(self, after: InstantTime, until: InstantTime | None) -> tuple[ArchivedInstant, ...]:
        return tuple(one for one in load_log_archive(self.storage, self.folder) if one.was_at_work(after, until))

    def already_has(self, wanted: Collection[Logical]) -> frozenset[Logical]:
        # A run writes one file, so only the newest can have what is still on the timeline.
        settle_merge(self.storage, self.folder)
        own = [file for file in self.files() if file.path.startswith(f"{self.folder}/")]
        return frozenset(one for file in own[-1:] for one in load_archived_logicals(self.storage, file)) & {*wanted}

    def wants(self, state: Instant) -> bool:
        del state
        return True

    def append(self, instants: Sequence[Instant], portions: Iterable[Sequence[ArchivedFiles]]) -> str:
        del instants
        generation = self.profile.avro_generation
        states = (state for portion in portions for one in portion for state in one.states)
        entries = (encode_archived_state(one.instant, one.changed, one.data, one.path, generation) for one in states)
        schema = archived_schema(generation)
        return append_archive(self.storage, self.folder, schema, _blocks(entries, self.options.entries_per_block))

    def merge(self) -> int:
        limits = self.options.merge
        return 0 if limits is None else int(merge_archives(self.storage, self.folder, limits) is not None)


@dataclass(frozen=True, slots=True)
class ParquetHistory(_Folder):
    """Parquet files with a manifest (versions 8 and later): a row for each instant, with its completed file and its
    plan. What statistics rule out is not read.
    """

    def files(self) -> tuple[FileInfo, ...]:
        return self.storage.list_dir(self.folder).files

    def exists(self) -> bool:
        names = (file.path.rpartition("/")[2] for file in self.files())
        return any(name.startswith(MANIFEST_PREFIX) or name.endswith(".parquet") for name in names)

    def tells_all(self, files: Sequence[FileInfo]) -> bool:
        del files
        return True

    def load(self, after: InstantTime, until: InstantTime | None) -> tuple[ArchivedInstant, ...]:
        return load_lsm_history(self.storage, self.folder, after, until)

    def already_has(self, wanted: Collection[Logical]) -> frozenset[Logical]:
        first, last = min(wanted)[0], max(wanted)[0]
        archived = self.load(first[:-1], last)  # from before `first`: it counts itself
        return frozenset(one.instant.logical for one in archived).intersection(wanted)

    def wants(self, state: Instant) -> bool:
        is_plan = state.state is State.REQUESTED or state.action in (REPLACE_COMMIT, CLUSTERING)
        return state.is_completed or (state.action in _PLANNED_ACTIONS and is_plan)

    def append(self, instants: Sequence[Instant], portions: Iterable[Sequence[ArchivedFiles]]) -> str:
        rows = ([_row(one) for one in portion] for portion in portions)
        file = append_history(self.storage, self.folder, instants[0].requested, instants[-1].requested, rows)
        return f"{self.folder}/{file.name}"

    def merge(self) -> int:
        return compact_history(self.storage, self.folder, self.options.compact)


_FORMS: Mapping[HistoryForm, type[LogHistory] | type[ParquetHistory]] = {
    "log_files": LogHistory,
    "parquet_files": ParquetHistory,
}


def history_of(storage: Storage, profile: FormatProfile, options: HistoryOptions | None = None) -> History:
    """The history of a table, in the form of its version; `options` for who writes it. Reads nothing."""
    return _FORMS[profile.history_form](storage, profile, options or HistoryOptions())


def has_history(storage: Storage, profile: FormatProfile) -> bool:
    """Whether instants were archived, by the names archives have. Listings only."""
    return history_of(storage, profile).exists()


def load_history(
    storage: Storage, profile: FormatProfile, after: InstantTime = "", until: InstantTime | None = None
) -> tuple[ArchivedInstant, ...]:
    """The archived instants that were at work at some time in (after, until], all by default; in timeline order.

    An instant is at work from its request to its completion, so a range on either clock gets all it needs.

    Raises:
        Corrupt: a file of the history is damaged or gone.
    """
    return history_of(storage, profile).load(after, until)


def load_archived_commits(
    storage: Storage, profile: FormatProfile, after: InstantTime = "", until: InstantTime | None = None
) -> dict[InstantTime, InstantTime]:
    """Requested → completion time of the writes among `load_history`. Raises as that does."""
    found = load_history(storage, profile, after, until)
    return {one.requested: one.completed for one in found if one.action in COMPLETED_WRITE_ACTIONS}


def load_archived_paths(storage: Storage, profile: FormatProfile, requested: InstantTime) -> frozenset[str] | None:
    """The files that the write requested then has written, by what the history says of it; None where it has no such
    write.

    Raises:
        Corrupt: a file of the history is damaged. Missing: it was rewritten meanwhile.
    """
    history = load_history(storage, profile, requested[:-1])
    found = [one for one in history if one.requested == requested and one.action in COMPLETED_WRITE_ACTIONS]
    if not found:
        return None
    said = load_archived_metadata(storage, found)
    return frozenset(stat.path for one in said.values() for _, stat in one.write_stats() if stat.path)


def load_archived_metadata(
    storage: Storage, instants: Iterable[ArchivedInstant]
) -> Mapping[InstantTime, CommitMetadata]:
    """What archived commits did, by requested time.

    Raises:
        Invalid: one of them is no commit.
        Corrupt: a file of the history is damaged.
        Missing: the history was rewritten since the instants were loaded; load them again.
    """
    rows: list[tuple[ArchivedInstant, RowPlace]] = []
    found: dict[InstantTime, CommitMetadata] = {}
    for one in instants:
        if one.action not in COMPLETED_WRITE_ACTIONS:
            raise Invalid(f"{one.requested} is a {one.action}, which has no commit metadata", instant=one.requested)
        match one.place:
            case LogPlace() as place:
                found[one.requested] = load_log_metadata(storage, place)
            case RowPlace() as place:
                rows.append((one, place))
    return found | load_lsm_metadata(storage, rows)


def load_archived_cleans(
    storage: Storage, profile: FormatProfile, after: InstantTime = ""
) -> tuple[CleanMetadata, ...]:
    """What the archived cleans did that ended after a time; those left out whose entries do not say.

    Raises:
        Corrupt: a file of the history is damaged or gone.
        Missing: the history was rewritten meanwhile: ask again.
    """
    cleans = [one for one in load_history(storage, profile, after) if one.action == CLEAN]
    rows = [(one, one.place) for one in cleans if isinstance(one.place, RowPlace)]
    logged = (load_log_clean(storage, one.place) for one in cleans if isinstance(one.place, LogPlace))
    return (*load_lsm_cleans(storage, rows), *(done for done in logged if done is not None))


def _row(files: ArchivedFiles) -> HistoryRow:
    metadata, plan = b"", None
    for one in files.states:
        if one.instant.is_completed:
            metadata = one.data
        else:  # of replacing commits the inflight file says more than the requested one, if it says anything
            plan = one.data or plan
    return HistoryRow(files.instant, metadata, plan)


def _blocks(entries: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    block: list[bytes] = []
    for entry in entries:
        block.append(entry)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block
