"""Moving an instant from state to state: each step is one new file, nothing is renamed or overwritten.

1. A step is create-if-absent: of two writers one succeeds, the other gets Conflict.
2. A step needs the files of the steps before. One that the caller has just made, and let nobody in, is not looked for;
   others are, also behind an inflight file. If one is gone, someone rolled this instant back: Fenced.
3. `complete` also refuses when a later rollback or restore is aimed at the instant, even if it has removed nothing yet.
   Instants of zeros, which make partitions of a metadata table, are older than every restore and not meant by any.
   A plan that a rollback or restore has left on the timeline may be tried again when that one is completed.
4. Whoever stalls between that look and the step itself may wake when its instant was undone. So a completed write looks
   once more. Whoever undoes stores its plan first and looks for a completion then: one of the two sees the other. A
   write whose inflight file is gone may have been archived since: the history knows. A plan whose inflight file is
   another one was begun anew by somebody else, who has deleted what this run had made.
5. Under a lock that holds nobody completes a write or stores a plan between the look that an action rests on and its
   completed instant, or its plan. Where somebody has, the lock was lost, and one of the two gives way (`others`).
6. The completion time (version 8+) is greater than every time on the timeline at that moment.

It does not roll anything back and holds no lock; callers hold the table lock.
Grammar of names and contents: `docs/format/timeline.md`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

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
from hoodie.timeline.history import load_archived_paths
from hoodie.timeline.load import instant_path, is_clustering, list_instants, load_requested
from hoodie.timeline.others import Others
from hoodie.timeline.timeline import furthest

_NOT_REQUESTED: Final = "its requested file is gone"
_GONE: Final = "its inflight file is gone"
_BEGUN_ANEW: Final = "another executor has begun it anew"


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


def ensure_newest(
    storage: Storage, profile: FormatProfile, requested: Instant, seen: Iterable[Instant], timezone: TimeZone
) -> None:
    """Checks that nobody has completed a write or stored a plan between the look that showed `seen`, on which a plan
    rests, and its requested file, which is there now. Else that goes again: it would leave out what came, the timeline
    might begin with it, or it might keep everybody out. Who came later has seen it, and may have gone on from it.

    Raises:
        Fenced: somebody has, who had taken the lock.
    """
    known = list_instants(storage, profile, timezone)
    try:
        cause = Others.than(storage, profile, requested, seen).came_first(known, requested)
    except Missing as error:  # somebody has taken the plan off
        raise _fenced(requested, _NOT_REQUESTED) from error
    if not cause:
        return
    with deleting_own(storage):
        storage.delete(instant_path(profile, requested))
    raise _fenced(requested, cause)


def to_inflight(
    storage: Storage, profile: FormatProfile, instant: Instant, payload: bytes = b"", *, is_new: bool = False
) -> Instant:
    """The instant in state INFLIGHT, on storage. `payload` is a writer's workload profile. `is_new`: the caller has
    just made the requested file and let nobody in, so it is not looked for.

    Raises:
        Fenced: its requested file is gone.
        Conflict: it is inflight already.
    """
    is_looked_for = instant.action != SAVEPOINT and not is_new
    if is_looked_for:
        _ensure_there(storage, profile, instant)
    inflight = replace(instant, state=State.INFLIGHT)
    storage.create(instant_path(profile, inflight), payload)
    if is_looked_for:
        try:
            _ensure_there(storage, profile, instant)
        except Fenced:
            # It would be pending for good, and where all others are archived the timeline would begin with it.
            with deleting_own(storage):
                storage.delete(instant_path(profile, inflight))
            raise
    return inflight


def complete(  # noqa: PLR0917
    storage: Storage,
    profile: FormatProfile,
    instant: Instant,
    payload: bytes,
    env: Env,
    timezone: TimeZone,
    *,
    since: Iterable[Instant] | None = None,
    is_repeated: bool = False,
) -> Instant:
    """The instant in state COMPLETED, on storage: from now on readers see what it did.

    Where names carry no completion time (version 6) `completed` is close to what a later load takes from the file.
    `since`: what was on the timeline when the caller, under its lock, looked whether the instant may complete; by
    default what is there now. `is_repeated`: the instant may have been undone and begun again, as that of a plan in the
    metadata table. Who undid it has removed its inflight file: the one that is there is a later run's.

    Raises:
        Fenced: its inflight file is gone, a later rollback or restore is aimed at it, or others had the table since.
            Nothing of it is visible.
        Conflict: it is completed already.
        CommitUnknown: the storage's answer was lost, or somebody began to undo it at the same moment.
    """
    done, _ = complete_and_look(storage, profile, instant, payload, env, timezone, since=since, is_repeated=is_repeated)
    return done


def complete_and_look(  # noqa: PLR0917
    storage: Storage,
    profile: FormatProfile,
    instant: Instant,
    payload: bytes,
    env: Env,
    timezone: TimeZone,
    *,
    begun_ms: int | None = None,
    since: Iterable[Instant] | None = None,
    is_repeated: bool = False,
) -> tuple[Instant, tuple[Instant, ...]]:
    """The same, and all state files of the timeline as the last look at it showed them. Raises as `complete`.

    `begun_ms`: when the inflight file of a plan was made that others may take away and begin anew at the same instant
    (`load_begun_ms`).
    """
    known = list_instants(storage, profile, timezone)
    ensure_alive(storage, profile, instant, known, begun_ms, is_repeated=is_repeated)
    if instant.action != SAVEPOINT and not any(
        i.state is State.REQUESTED for i in known if i.logical == instant.logical
    ):
        raise _fenced(instant, _NOT_REQUESTED)
    # Plans are new behind the completion time alone, which is drawn below: files of a slice go by that.
    seen = known if since is None else (*since, *(i for i in known if not i.is_completed))
    others = Others.than(storage, profile, instant, seen, is_metadata=is_repeated)
    newest = max(time for i in known for time in (i.requested, i.completed) if time)
    completed = new_instant_time(env, timezone, newest)
    done = replace(instant, action=instant.comparable_action, state=State.COMPLETED, completed=completed)
    completion = _Completion(storage, profile, instant, done, payload, timezone, begun_ms, others, is_repeated)
    if done.action in COMPLETED_WRITE_ACTIONS and (cause := others.came_first(known)):
        raise _fenced(instant, cause)
    # The commit point. From here on no error may say that nothing happened, unless it is so.
    try:
        storage.create(instant_path(profile, done), payload)
    except Conflict:
        raise
    except BaseException:
        if done.action in COMPLETED_WRITE_ACTIONS:
            with suppress(HudiError):  # it may be there all the same
                completion.ensure_kept()
        raise
    if done.action in COMPLETED_WRITE_ACTIONS:
        known = completion.ensure_kept()
    return done, (*known, done)


def ensure_alive(
    storage: Storage,
    profile: FormatProfile,
    instant: Instant,
    known: Iterable[Instant],
    begun_ms: int | None = None,
    *,
    is_repeated: bool = False,
) -> None:
    """Checks that a pending instant may be completed by who made its inflight file, at `begun_ms` if it may have been
    made anew since. `known`: what is on the timeline; `is_repeated`: see `complete`.

    Raises:
        Conflict: it is completed already. Fenced: it was, or is about to be, undone, or another run has begun it anew.
    """
    states = {i.state for i in known if i.logical == instant.logical}
    if State.COMPLETED in states:
        raise Conflict(
            f"The {instant.action} {instant.requested} is completed already",
            remedy="Read the table again; if this write is not in it, repeat it",
            instant=instant.requested,
        )
    if State.INFLIGHT not in states:
        raise _fenced(instant, _GONE)
    if cause := _undone_by(storage, profile, instant, known, is_repeated=is_repeated):
        raise _fenced(instant, cause)
    if begun_ms is not None and load_begun_ms(storage, profile, instant) != begun_ms:
        raise _fenced(instant, _BEGUN_ANEW)


def load_begun_ms(storage: Storage, profile: FormatProfile, inflight: Instant) -> int:
    """When the file of an inflight instant was made, in milliseconds since 1970: it tells one run of a plan from the
    next.

    Raises:
        Fenced: it is gone.
    """
    try:
        return storage.head(instant_path(profile, inflight)).modified_ms
    except Missing as error:
        raise _fenced(inflight, _GONE) from error


def delete_instant_files(storage: Storage, profile: FormatProfile, instant: Instant) -> None:
    """Remove an instant's files up to its state: completed first, then inflight, then requested. Missing ones are fine.

    In this order a crash in between leaves an instant that readers ignore and the next rollback finds.
    """
    if instant.is_completed:
        storage.delete(instant_path(profile, instant))
    for state in (State.INFLIGHT, State.REQUESTED):
        if not (state is State.REQUESTED and instant.action == SAVEPOINT):
            storage.delete(instant_path(profile, replace(instant, state=state, completed=None)))


@dataclass(frozen=True, slots=True)
class _Completion:
    """The pending `instant`, which has become `done` with `payload` in its file, or may have."""

    storage: Storage
    profile: FormatProfile
    instant: Instant
    done: Instant
    payload: bytes
    timezone: TimeZone
    begun_ms: int | None
    others: Others
    is_repeated: bool

    def ensure_kept(self) -> tuple[Instant, ...]:
        """The state files, after a check that nobody undoes or has undone the instant. The look is owed: where it fails
        it is taken once more, by who is interrupted or meets an error of another kind, too.
        """
        try:
            return self.look()
        except (Fenced, CommitUnknown):
            raise
        except HudiError:
            pass
        except BaseException:
            with suppress(HudiError):
                self.look()
            raise
        try:
            return self.look()
        except (Fenced, CommitUnknown):
            raise
        except HudiError as error:
            raise _unknown(self.instant, f"the look for a rollback failed ({error.cause})") from error

    def look(self) -> tuple[Instant, ...]:
        """The state files, when nobody undoes or has undone the instant; who was undone takes `done` away."""
        known = list_instants(self.storage, self.profile, self.timezone)
        is_inflight = any(one.logical == self.done.logical and one.state is State.INFLIGHT for one in known)
        begun_ms = self.begun_ms
        if is_inflight and begun_ms is not None:
            try:
                begun_ms = load_begun_ms(self.storage, self.profile, self.instant)
            except Fenced:  # it went since the listing
                known = list_instants(self.storage, self.profile, self.timezone)
                is_inflight = False
        cause = _undone_by(self.storage, self.profile, self.instant, known, is_repeated=self.is_repeated)
        if not is_inflight:
            if not cause and self._is_archived():
                return known
            # It may be older than all others, whose timeline would begin with it: what was archived would not count.
            self._withdraw()
            if all(one.logical == self.done.logical for one in known):  # the table has another version by now
                raise _unknown(self.instant, _GONE)
            raise _fenced(self.instant, cause or _GONE)
        if begun_ms != self.begun_ms:
            self._withdraw()
            raise _fenced(self.instant, _BEGUN_ANEW)
        if cause:
            raise _unknown(self.instant, cause)
        if cause := self.others.came_first(known, self.done):
            self._withdraw()
            raise _fenced(self.instant, cause)
        return known

    def _is_archived(self) -> bool:
        """Whether the history has what was completed: an archiver puts it there before it takes its files. Of a plan it
        may have another run.
        """
        there = load_archived_paths(self.storage, self.profile, self.instant.requested)
        if there is None or self.begun_ms is None:
            return there is not None
        said = self.profile.commit_codec.parse(self.payload, instant_path(self.profile, self.done))
        return there == {stat.path for _, stat in said.write_stats() if stat.path}

    def _withdraw(self) -> None:
        """Deletes the completed instant. Who takes an inflight file away has taken the data files before, or does so
        next. Whoever has lost the lock may delete it: it is his own.
        """
        path = instant_path(self.profile, self.done)
        if self.begun_ms is not None and not _holds(self.storage, path, self.payload):
            return  # that of another run, whose name is the same in version 6
        with deleting_own(self.storage):
            self.storage.delete(path)


def _holds(storage: Storage, path: str, payload: bytes) -> bool:
    try:
        return storage.read(path) == payload
    except Missing:
        return False


def _unknown(instant: Instant, cause: str) -> CommitUnknown:
    return CommitUnknown(
        f"Whether the {instant.action} {instant.requested} stays is not known: {cause}",
        remedy="Look whether it is on the timeline once no rollback is pending; do not repeat it before",
        instant=instant.requested,
    )


def _undone_by(
    storage: Storage, profile: FormatProfile, instant: Instant, known: Iterable[Instant], *, is_repeated: bool
) -> str:
    """What undoes a pending instant, in words; empty when nothing does."""
    for other in furthest(known):
        if other.requested <= instant.requested:
            continue
        cause = _undoing(storage, profile, other, instant)
        if cause and not (other.is_completed and (is_repeated or _outlives(storage, profile, instant, known))):
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
    there; a plan, which undoing leaves, and whose inflight file it removes: the one that is there is a later run's; a
    clean, which keeps what is in use by the time it goes on; and what undoes itself, which finds gone what is gone.
    """
    if instant.action == SAVEPOINT:
        same = (one for one in known if one.requested == instant.requested and one.is_completed)
        return any(one.action in COMPLETED_WRITE_ACTIONS for one in same)
    if instant.action in (CLEAN, COMPACTION, LOG_COMPACTION, ROLLBACK, RESTORE):
        return True
    return is_clustering(storage, profile, instant)


def _target_of(storage: Storage, profile: FormatProfile, rollback: Instant) -> InstantTime | None:
    plan = load_requested(storage, profile, rollback)
    if not plan:
        return None
    return parse_rollback_plan(plan, instant_path(profile, rollback)).instant_to_rollback.commit_time


def _ensure_there(storage: Storage, profile: FormatProfile, instant: Instant) -> None:
    try:
        storage.head(instant_path(profile, replace(instant, state=State.REQUESTED)))
    except Missing as error:
        raise _fenced(instant, _NOT_REQUESTED) from error


def _fenced(instant: Instant, reason: str) -> Fenced:
    return Fenced(
        f"The {instant.action} {instant.requested} was taken from this writer: {reason}",
        remedy="Nothing of it became visible; read the table again and repeat the write",
        instant=instant.requested,
    )
