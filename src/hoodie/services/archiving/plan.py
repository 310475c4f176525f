"""Which instants leave the timeline for the history: the oldest commits but for what somebody still needs there.

1. Archiving begins above `max_commits` completed writes and would leave `min_commits`. Both are raised when the
   cleaner keeps more commits, plus two, so that its earliest commit stays on the timeline.
2. Writes go in order of requested time and only before the first that has to stay. What has to stay begins with the
   earliest of
   a. the last completed write before the first pending one (or that one): files of pending writes must not be taken
      for committed ones, as everything before the start of the timeline is;
   b. the first of the delta commits that are counted for the next compaction (merge-on-read, counting triggers);
   c. the first replacing commit whose replaced files may still be there: from the last clean's earliest commit on, or
      completed after that clean was planned, or after a commit whose savepoint kept such files, whenever it was
      requested; any, when nothing was ever cleaned. Without it on the timeline its replaced groups would be back;
   d. what the metadata table has not compacted: its log blocks count because the timeline has their commits;
   e. in a metadata table, the first commit on the data timeline;
   f. the first savepoint, and what completed after its commit; or, beyond savepoints, only the saved commits
      themselves;
   g. where asked for, the earliest commit of the last clean.
3. Completed cleans and rollbacks go with the commits around them; in version 6, by the same counts as commits, each
   action for itself.
4. Savepoints, restores and index builds are never archived.

Pure; `archive` gathers the arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from hoodie.errors import Invalid
from hoodie.services.archiving.options import ArchiveOptions
from hoodie.services.cleaning.facts import LastClean
from hoodie.services.cleaning.retention import earliest_retained
from hoodie.spec import (
    CLEAN,
    CLUSTERING,
    COMMIT,
    COMPLETED_WRITE_ACTIONS,
    DELTA_COMMIT,
    REPLACE_COMMIT,
    ROLLBACK,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
    InstantTime,
    TimeZone,
    parse_instant_time,
)
from hoodie.timeline import Timeline


@dataclass(frozen=True, slots=True)
class ArchiveFacts:
    """What is known beside the timeline. `compacted`: the newest completed compaction of the metadata table, empty text
    when there was none yet, None when there is no metadata table. `data_timeline`: the timeline of the table that this
    metadata table describes.
    """

    now: datetime
    timezone: TimeZone
    is_merge_on_read: bool
    last_clean: LastClean | None = None
    compacted: InstantTime | None = None
    data_timeline: Timeline | None = None


@dataclass(frozen=True, slots=True)
class PlannedArchive:
    """The completed instants that go, in timeline order. `notes` say what keeps others."""

    instants: tuple[Instant, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Limits:
    """What cleans and rollbacks go by. `last_write`: the last write that goes, "" for none; `min_instants` of an action
    stay, and archiving begins above `max_instants`; what is `needed` (None: nothing) stays with all after it.
    """

    last_write: InstantTime
    min_instants: int
    max_instants: int
    needed: InstantTime | None


@dataclass(frozen=True, slots=True)
class _Bound:
    """Writes from `requested` on have to stay, and why."""

    requested: InstantTime
    reason: str


def plan_archive(timeline: Timeline, options: ArchiveOptions, facts: ArchiveFacts) -> PlannedArchive:
    """What goes now; nothing while there are not too many commits."""
    min_writes, max_writes = _counts(timeline, options, facts)
    writes = timeline.completed_writes()
    if facts.compacted == "":
        return PlannedArchive(notes=("the metadata table was never compacted, so nothing can be archived yet",))
    bound = min(_bounds(timeline, options, facts), key=lambda instant: instant.requested, default=None)
    saved = {instant.requested for instant in timeline.completed() if instant.action == SAVEPOINT}
    chosen: list[Instant] = []
    notes: list[str] = []
    if len(writes) > max_writes:
        free = [instant for instant in writes if bound is None or instant.requested < bound.requested]
        chosen = [instant for instant in free if instant.requested not in saved][: len(writes) - min_writes]
        if bound is not None and len(chosen) < len(writes) - min_writes:
            notes.append(f"writes from {bound.requested} on stay: {bound.reason}")
    else:
        notes.append(f"{len(writes)} completed commits, archiving begins above {max_writes}")
    limits = _Limits(chosen[-1].requested if chosen else "", min_writes, max_writes, _needed(options, facts))
    others = _others(limits, timeline)
    return PlannedArchive(tuple(sorted([*chosen, *others])), tuple(notes))


def may_archive(timeline: Timeline, options: ArchiveOptions) -> bool:
    """Whether there are instants enough for anything to go; the real limits are never lower than those."""
    actions = [instant.action for instant in timeline.completed()]
    counts = [len(timeline.completed_writes()), actions.count(CLEAN), actions.count(ROLLBACK)]
    return any(count > options.max_commits for count in counts)


def _counts(timeline: Timeline, options: ArchiveOptions, facts: ArchiveFacts) -> tuple[int, int]:
    """How many completed writes stay, and above how many archiving begins."""
    min_writes, max_writes = options.min_commits, options.max_commits
    last = timeline.last_completed_write()
    now = facts.now if last is None else _moment(last.requested, facts)
    earliest = earliest_retained(timeline, options.clean, now, facts.timezone, sees_compactions=False)
    if earliest is None:
        return min_writes, max_writes
    needed = sum(instant.requested > earliest.requested for instant in timeline.completed_writes()) + 2
    return (needed, max_writes + needed - min_writes) if min_writes < needed else (min_writes, max_writes)


def _moment(requested: InstantTime, facts: ArchiveFacts) -> datetime:
    try:
        return parse_instant_time(requested, facts.timezone)
    except Invalid:  # the all-zero times of bootstraps
        return facts.now


def _bounds(timeline: Timeline, options: ArchiveOptions, facts: ArchiveFacts) -> Iterator[_Bound]:
    writes = timeline.completed_writes()
    pending = next((instant for instant in timeline.pending() if instant.action in WRITE_ACTIONS), None)
    if pending is not None:
        before = [instant.requested for instant in writes if instant.requested < pending.requested]
        yield _Bound(max(before, default=pending.requested), f"{pending.action} {pending.requested} is pending")
    if facts.is_merge_on_read and options.delta_commits is not None:
        yield from _counted_for_compaction(timeline, options.delta_commits)
    yield from _not_cleaned(timeline, facts)
    if facts.compacted:
        yield from _not_compacted(timeline, facts.compacted)
    if facts.data_timeline is not None:
        yield from _needed_by_data(facts.data_timeline, options)
    saved = min((instant.requested for instant in timeline.completed() if instant.action == SAVEPOINT), default=None)
    if saved is not None and not options.beyond_savepoint:
        yield _Bound(saved, "it has a savepoint")
        # A restore has to undo what was pending then, too.
        commit = next((instant for instant in writes if instant.requested == saved), None)
        is_after = timeline.profile.clock.is_after
        first = next((write for write in writes if commit is not None and is_after(write, commit)), None)
        if first is not None and first.requested < saved:
            yield _Bound(first.requested, f"it completed after {saved}, which has a savepoint")
    if options.block_on_clean and facts.last_clean is not None and facts.last_clean.metadata.earliest:
        yield _Bound(facts.last_clean.metadata.earliest, "the last clean kept it")


def _counted_for_compaction(timeline: Timeline, delta_commits: int) -> Iterator[_Bound]:
    compacted = max((instant for instant in timeline.completed() if instant.action == COMMIT), default=None)
    deltas = [instant for instant in timeline.instants if instant.action == DELTA_COMMIT]
    since = [instant for instant in deltas if compacted is None or instant.requested > compacted.requested]
    first = compacted or next(iter(deltas), None)
    if first is not None:
        counted = first if len(since) < delta_commits else since[len(since) - delta_commits]
        yield _Bound(counted.requested, "it counts for the next compaction")


def _not_cleaned(timeline: Timeline, facts: ArchiveFacts) -> Iterator[_Bound]:
    since = planned = ""
    keeping = {instant.requested for instant in timeline.completed() if instant.action == SAVEPOINT}
    if facts.last_clean is not None:
        cleaned, planned = facts.last_clean.metadata, facts.last_clean.instant.requested
        # A clean that counts versions removes all that was replaced when it was planned, but for what is saved.
        since, keeping = cleaned.earliest or planned, {*keeping, *cleaned.savepoints}
    saved = min(keeping, default=None)
    for instant in timeline.instants:
        if instant.action in (REPLACE_COMMIT, CLUSTERING):
            ended = instant.completed or instant.requested
            if instant.requested >= since or ended > planned or (saved is not None and ended > saved):
                yield _Bound(instant.requested, "the files it replaced may not be cleaned yet")
                return


def _not_compacted(timeline: Timeline, compacted: InstantTime) -> Iterator[_Bound]:
    clock = timeline.profile.clock
    first = next((instant for instant in timeline.completed_writes() if clock.of(instant) > compacted), None)
    if first is not None:
        yield _Bound(first.requested, "the metadata table has not compacted it yet")


def _needed_by_data(data_timeline: Timeline, options: ArchiveOptions) -> Iterator[_Bound]:
    """A metadata table keeps what its table has on the timeline, and what happens there now."""
    saved = {instant.requested for instant in data_timeline.completed() if instant.action == SAVEPOINT}
    needed = [
        instant.requested
        for instant in data_timeline.instants
        if not instant.is_completed
        or (instant.action in COMPLETED_WRITE_ACTIONS and not (options.beyond_savepoint and instant.requested in saved))
    ]
    if needed:
        yield _Bound(min(needed), "the table it describes has it on its timeline")


def _needed(options: ArchiveOptions, facts: ArchiveFacts) -> InstantTime | None:
    """The first instant time that the metadata table, or the data timeline, still needs."""
    needed = [facts.compacted] if facts.compacted else []
    if facts.data_timeline is not None:
        needed += [bound.requested for bound in _needed_by_data(facts.data_timeline, options)]
    return min(needed, default=None)


def _others(limits: _Limits, timeline: Timeline) -> Iterator[Instant]:
    """Cleans and rollbacks that go."""
    for action in (CLEAN, ROLLBACK):
        done = [instant for instant in timeline.completed() if instant.action == action]
        yield from _OTHERS[timeline.profile.history_form](done, limits)


def _before_writes(done: Sequence[Instant], limits: _Limits) -> Iterator[Instant]:
    """Those before the last write that goes."""
    yield from (instant for instant in done if instant.requested < limits.last_write)


def _by_count(done: Sequence[Instant], limits: _Limits) -> Iterator[Instant]:
    """The oldest, where there are too many, but none that the metadata table or the data timeline still needs."""
    if len(done) <= limits.max_instants:
        return
    oldest = done[: len(done) - limits.min_instants]
    yield from (instant for instant in oldest if limits.needed is None or instant.requested < limits.needed)


_OTHERS = {"log_files": _by_count, "parquet_files": _before_writes}
