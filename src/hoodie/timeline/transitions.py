"""Moving an instant from state to state: each step is one new file, nothing is renamed or overwritten.

1. A step is create-if-absent: of two writers one succeeds, the other gets Conflict.
2. A step needs the file of the step before, which is looked for unless the same caller has just made it. If it is gone,
   someone rolled this instant back: Fenced.
3. `complete` also refuses when a later rollback or restore is aimed at the instant, even if it has removed nothing yet.
   Instants of zeros, which make partitions of a metadata table, are older than every restore and not meant by any.
   A plan that a rollback or restore has left on the timeline may be tried again when that one is completed.
4. Whoever stalls between that look and the step itself may wake when its instant was undone. So a completed write looks
   once more. Whoever undoes stores its plan first and looks for a completion then: one of the two sees the other.
5. The completion time (version 8+) is greater than every time on the timeline at that moment.

It does not roll anything back and holds no lock; callers hold the table lock.
Grammar of names and contents: `docs/format/timeline.md`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from hoodie.env import Env
from hoodie.errors import CommitUnknown, Conflict, Fenced, HudiError, Missing
from hoodie.spec import (
    CLEAN,
    COMPACTION,
    COMPLETED_WRITE_ACTIONS,
    INIT_INSTANT,
    LOG_COMPACTION,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    FormatProfile,
    Instant,
    InstantTime,
    State,
    TimeZone,
    parse_rollback_plan,
)
from hoodie.storage import Storage
from hoodie.storage.fence import deleting_own
from hoodie.timeline.clock import new_instant_time
from hoodie.timeline.history import load_archived_commits
from hoodie.timeline.load import instant_path, is_clustering, list_instants, load_requested
from hoodie.timeline.timeline import Timeline, furthest


def create_requested(
    storage: Storage, profile: FormatProfile, requested: InstantTime, action: str, payload: bytes = b""
) -> Instant:
    """The new instant in state REQUESTED, on storage. `payload` is the plan of actions that have one.

    Raises:
        Conflict: there is such an instant already.
    """
    instant = Instant(requested, action, State.REQUESTED)
    storage.create(instant_path(profile, instant), payload)
    return instant


def to_inflight(
    storage: Storage, profile: FormatProfile, instant: Instant, payload: bytes = b"", *, is_new: bool = False
) -> Instant:
    """The instant in state INFLIGHT, on storage. `payload` is a writer's workload profile. `is_new`: the caller has
    just made the requested file, so it is not looked for; who undoes it meanwhile is seen when it completes.

    Raises:
        Fenced: its requested file is gone.
        Conflict: it is inflight already.
    """
    if instant.action != SAVEPOINT and not is_new:
        _ensure_there(storage, profile, replace(instant, state=State.REQUESTED))
    inflight = replace(instant, state=State.INFLIGHT)
    storage.create(instant_path(profile, inflight), payload)
    return inflight


def complete(  # noqa: PLR0917
    storage: Storage, profile: FormatProfile, instant: Instant, payload: bytes, env: Env, timezone: TimeZone
) -> Instant:
    """The instant in state COMPLETED, on storage: from now on readers see what it did.

    Where names carry no completion time (version 6) `completed` is close to what a later load takes from the file.

    Raises:
        Fenced: its inflight file is gone, or a later rollback or restore is aimed at it. Nothing of it is visible.
        Conflict: it is completed already.
        CommitUnknown: the storage's answer was lost, or somebody began to undo it at the same moment.
    """
    return complete_and_look(storage, profile, instant, payload, env, timezone)[0]


def complete_and_look(  # noqa: PLR0917
    storage: Storage, profile: FormatProfile, instant: Instant, payload: bytes, env: Env, timezone: TimeZone
) -> tuple[Instant, tuple[Instant, ...]]:
    """The same, and all state files of the timeline as the last look at it showed them. Raises as `complete`."""
    known = list_instants(storage, profile, timezone)
    _ensure_alive(storage, profile, instant, known)
    newest = max(time for i in known for time in (i.requested, i.completed) if time)
    completed = new_instant_time(env, timezone, newest)
    done = replace(instant, action=instant.comparable_action, state=State.COMPLETED, completed=completed)
    # The commit point. From here on no error may say that nothing happened, unless it is so.
    try:
        storage.create(instant_path(profile, done), payload)
    except Conflict:
        raise
    except BaseException:
        if done.action in COMPLETED_WRITE_ACTIONS:
            with suppress(HudiError):  # it may be there all the same
                _look(storage, profile, instant, done, timezone)
        raise
    if done.action in COMPLETED_WRITE_ACTIONS:
        known = _ensure_kept(storage, profile, instant, done, timezone)
    return done, (*known, done)


def delete_instant_files(storage: Storage, profile: FormatProfile, instant: Instant) -> None:
    """Remove an instant's files up to its state: completed first, then inflight, then requested. Missing ones are fine.

    In this order a crash in between leaves an instant that readers ignore and the next rollback finds.
    """
    if instant.is_completed:
        storage.delete(instant_path(profile, instant))
    for state in (State.INFLIGHT, State.REQUESTED):
        if not (state is State.REQUESTED and instant.action == SAVEPOINT):
            storage.delete(instant_path(profile, replace(instant, state=state, completed=None)))


def _ensure_alive(storage: Storage, profile: FormatProfile, instant: Instant, known: Iterable[Instant]) -> None:
    states = {i.state for i in known if i.logical == instant.logical}
    if State.COMPLETED in states:
        raise Conflict(
            f"The {instant.action} {instant.requested} is completed already",
            remedy="Read the table again; if this write is not in it, repeat it",
            instant=instant.requested,
        )
    if State.INFLIGHT not in states:
        raise _fenced(instant, "its inflight file is gone")
    if cause := _undone_by(storage, profile, instant, known):
        raise _fenced(instant, cause)


def _ensure_kept(
    storage: Storage, profile: FormatProfile, instant: Instant, done: Instant, timezone: TimeZone
) -> tuple[Instant, ...]:
    """The state files, after a check that nobody undoes or has undone the pending `instant` that has become `done`. The
    look is owed: where it fails it is taken once more, by who is interrupted or meets an error of another kind, too.
    """
    try:
        return _look(storage, profile, instant, done, timezone)
    except (Fenced, CommitUnknown):
        raise
    except HudiError:
        pass
    except BaseException:
        with suppress(HudiError):
            _look(storage, profile, instant, done, timezone)
        raise
    try:
        return _look(storage, profile, instant, done, timezone)
    except (Fenced, CommitUnknown):
        raise
    except HudiError as error:
        raise _unknown(instant, f"the look for a rollback failed ({error.cause})") from error


def _look(
    storage: Storage, profile: FormatProfile, instant: Instant, done: Instant, timezone: TimeZone
) -> tuple[Instant, ...]:
    """The state files, when nobody undoes or has undone the instant; who was undone takes `done` away."""
    known = list_instants(storage, profile, timezone)
    cause = _undone_by(storage, profile, instant, known)
    is_inflight = any(one.logical == done.logical and one.state is State.INFLIGHT for one in known)
    if not cause and (is_inflight or _is_archived(storage, profile, instant)):
        return known
    if not is_inflight and (cause or _is_in_the_active_timeline(profile, instant, known)):
        # Who takes the inflight file away has taken the data files before. Whoever has lost the lock may delete this:
        # it is his own.
        with deleting_own(storage):
            storage.delete(instant_path(profile, done))
        raise _fenced(instant, cause or "its inflight file is gone")
    raise _unknown(instant, cause or "its inflight file is gone")


def _is_archived(storage: Storage, profile: FormatProfile, instant: Instant) -> bool:
    """Whether the history has a completed write: an archiver puts it there before it takes its files."""
    return instant.requested in load_archived_commits(storage, profile, instant.requested[:-1])


def _is_in_the_active_timeline(profile: FormatProfile, instant: Instant, known: Iterable[Instant]) -> bool:
    """Whether the timeline begins before the instant, by what there is beside its own files."""
    first = Timeline(profile, furthest(one for one in known if one.logical != instant.logical)).first_write_instant
    return first is not None and first.requested < instant.requested


def _unknown(instant: Instant, cause: str) -> CommitUnknown:
    return CommitUnknown(
        f"Whether the {instant.action} {instant.requested} stays is not known: {cause}",
        remedy="Look whether it is on the timeline once no rollback is pending; do not repeat it before",
        instant=instant.requested,
    )


def _undone_by(storage: Storage, profile: FormatProfile, instant: Instant, known: Iterable[Instant]) -> str:
    """What undoes a pending instant, in words; empty when nothing does."""
    for other in furthest(known):
        if other.requested <= instant.requested:
            continue
        cause = _undoing(storage, profile, other, instant)
        if cause and not (other.is_completed and _outlives(storage, profile, instant, known)):
            return cause
    return ""


def _undoing(storage: Storage, profile: FormatProfile, later: Instant, instant: Instant) -> str:
    """How a later instant undoes this one, in words; empty when it does not."""
    if later.action == ROLLBACK and _target_of(storage, profile, later) == instant.requested:
        return f"rollback {later.requested} is aimed at it"
    if later.action == RESTORE and not instant.requested.startswith(INIT_INSTANT):
        return f"restore {later.requested} began after it"
    return ""


def _outlives(storage: Storage, profile: FormatProfile, instant: Instant, known: Iterable[Instant]) -> bool:
    """Whether a pending instant may go on after what undid it is completed: a savepoint of a commit that is still
    there; a plan, which undoing leaves, and whose inflight file it removes: the one that is there is a later run's; and
    a clean, which keeps what is in use by the time it goes on.
    """
    if instant.action == SAVEPOINT:
        same = (one for one in known if one.requested == instant.requested and one.is_completed)
        return any(one.action in COMPLETED_WRITE_ACTIONS for one in same)
    return instant.action in (CLEAN, COMPACTION, LOG_COMPACTION) or is_clustering(storage, profile, instant)


def _target_of(storage: Storage, profile: FormatProfile, rollback: Instant) -> InstantTime | None:
    plan = load_requested(storage, profile, rollback)
    if not plan:
        return None
    return parse_rollback_plan(plan, instant_path(profile, rollback)).instant_to_rollback.commit_time


def _ensure_there(storage: Storage, profile: FormatProfile, instant: Instant) -> None:
    try:
        storage.head(instant_path(profile, instant))
    except Missing as error:
        raise _fenced(instant, f"its {instant.state.name.lower()} file is gone") from error


def _fenced(instant: Instant, reason: str) -> Fenced:
    return Fenced(
        f"The {instant.action} {instant.requested} was taken from this writer: {reason}",
        remedy="Nothing of it became visible; read the table again and repeat the write",
        instant=instant.requested,
    )
