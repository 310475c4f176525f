"""One write as a transaction: begun by its instant, completed as a whole, or aborted.

1. Nothing is visible before the completed instant is created, and everything is visible after it.
2. Order of a commit: files of retried tasks go, the table lock, the conflict rule, partition metafiles, participants
   (the metadata table), the heartbeat's word, the completed instant, the markers go.
3. A file of this write that is not in its statistics (a retried or speculative task wrote it) is deleted before the
   instant completes; the markers tell. Where no task ran twice there is none, and they are not listed. Partition
   metafiles exist before the instant completes, and participants know the write at its instant: readers count it once
   the instant is completed.
4. A transaction whose block fails aborts itself, whatever failed, but for two ends: what is on storage belongs to
   another writer (`InstantTaken`), or may be visible (`CommitUnknown`). Then nothing is touched.
5. Errors, not answers, say how a commit ended: `Conflict` (still pending: mend and commit again, or leave the block),
   `Fenced` (another writer took it away), `CommitUnknown`. They come from the storage below and reach the user above
   with cause and remedy; an answer would be one more thing to pass through and to forget.

It does not plan and writes no data file. How long the lock is held decides `locking`, who is in the way `conflicts`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Final, Self

from hoodie.config import Config
from hoodie.errors import CommitUnknown, Conflict, Corrupt, Fenced, HudiError, Missing
from hoodie.spec import Instant, InstantTime, parse_data_file_name
from hoodie.state.handle import TableHandle, load_handle, load_handle_again, timeline_of
from hoodie.state.table_state import TableState, state_from
from hoodie.storage.fence import deleting_own
from hoodie.timeline import Markers, Timeline, complete_and_look, create_requested, ensure_alive, to_inflight
from hoodie.transaction.abort import abort, drop_markers, leave_strays, remove_fenced, remove_losers, remove_strays
from hoodie.transaction.conflicts import ConflictRule, NobodyElse
from hoodie.transaction.early_detection import parse_early_detection
from hoodie.transaction.heartbeat import Heartbeat, heartbeat_rule, holding_heartbeat
from hoodie.transaction.locking import Locking
from hoodie.transaction.lookout import KnownCommits, Lookout
from hoodie.transaction.lost_files import is_lost
from hoodie.transaction.marking import markers_for, watchful_markers
from hoodie.transaction.outcome import Outcome
from hoodie.transaction.own_run import OwnRun
from hoodie.transaction.participant import Participant
from hoodie.transaction.partition_metafiles import create_partition_metafiles
from hoodie.transaction.pending_commit import PendingCommit
from hoodie.transaction.strategies import compares_buckets
from hoodie.transaction.write_conflict import REPEAT_THE_WRITE, WriteConflict

log = logging.getLogger(__name__)

_DEFAULTS: Final = Config()
_NOBODY_ELSE: Final = NobodyElse()


class InstantTaken(Conflict):
    """Another writer began an instant of the very same time: what is on storage under it is that writer's, not ours."""


class Transaction:
    """The write `instant` of a table, from before its first file to after its last.

    `with transaction:` says that its work may fail: then it is aborted. Under failed-write policy LAZY (`config`) its
    heartbeat beats inside the block, and says `what` is being done. A `run` of a plan leaves its end to its executor,
    and is used without the block. One thread works with a transaction; its tasks may run anywhere. `after` is the table
    as the last look at it showed it, once `commit` has completed the write.
    """

    def __init__(
        self,
        handle: TableHandle,
        instant: InstantTime,
        locking: Locking,
        config: Config = _DEFAULTS,
        run: OwnRun | None = None,
        *,
        what: str = "write",
    ) -> None:
        self.handle = handle
        self.instant = instant
        self.after: TableState | None = None
        self._is_first = True
        self._locking = locking
        self._config = config
        self._what = what
        self._run = run
        self._inflight = None if run is None else run.inflight
        self._requested: Instant | None = None
        self._participants: Sequence[Participant] = ()
        self._offered: tuple[str, ...] | None = None
        self._reopened = False
        self._heartbeat: Heartbeat | None = None
        self._block = ExitStack()

    def __enter__(self) -> Self:
        self._block.enter_context(self._aborted_when_failed())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._block.__exit__(kind, error, trace)

    def markers(self, handle: TableHandle) -> Markers:
        """The markers of the write. `handle`: of the table, as its caller holds it."""
        return markers_for(handle.storage, self.instant, self._config)

    def announcing(self, handle: TableHandle, planned_on: Timeline, operation: str) -> Markers:
        """How tasks announce the files of the write: after a look around for others, where options ask for it."""
        asked = parse_early_detection(self._config) if self._locking.lets_others_in else None
        if asked is None:
            return self.markers(handle)
        lookout = Lookout(
            handle,
            self.instant,
            operation,
            heartbeat_rule(self._config),
            compares_buckets(self._config, handle.config),
            KnownCommits.of(planned_on) if asked.looks_at_commits else None,
        )
        return watchful_markers(lookout, asked, self._config)

    def announce(self, action: str, plan: bytes = b"") -> None:
        """Creates the requested instant, with the plan in its file: from here on others know of the write. Where others
        are let in between, its time is drawn and announced under one hold of the table lock.

        Raises:
            InstantTaken: another writer has begun an instant of this time.
        """
        try:
            self._requested = create_requested(self.handle.storage, self.handle.profile, self.instant, action, plan)
        except Conflict as error:
            raise InstantTaken(error.cause, remedy=error.remedy, **error.facts) from error

    def begin(self, action: str, plan: bytes = b"", workload: bytes = b"") -> Instant:
        """The inflight instant, with the workload profile in its file; it is announced first, unless it was. Who dies
        between the two leaves a pending write without files.

        Raises:
            InstantTaken: another writer has begun an instant of this time.
            Fenced: another writer has rolled it back since it was announced.
        """
        if self._requested is None:
            self.announce(action, plan)
        assert self._requested is not None
        is_new = not self._locking.lets_others_in
        self._inflight = to_inflight(self.handle.storage, self.handle.profile, self._requested, workload, is_new=is_new)
        return self._inflight

    def commit(
        self,
        outcome: Outcome,
        planned_on: Timeline,
        known_partitions: Iterable[str],
        participants: Sequence[Participant] = (),
        rule: ConflictRule = _NOBODY_ELSE,
    ) -> Instant:
        """The completed instant: the write is visible now. `planned_on` is the timeline the write was planned on;
        partitions that are not among `known_partitions` get their metafiles.

        Raises:
            Conflict: the rule refuses what others did meanwhile, or the lock was not to be had; nothing became visible,
                the write is still pending and may be committed again.
            Fenced: another writer rolled this write back, or may have; nothing became visible, its files are gone.
            CommitUnknown: the answer to the last step was lost.
        """
        self._offered = tuple(outcome.files)
        with self.committing(outcome, planned_on, rule) as pending:
            handle, inflight = pending.handle, pending.inflight
            written = {stat.partition_path for stat in outcome.stats}
            create_partition_metafiles(handle, written.difference(known_partitions), inflight.requested)
            payload = handle.profile.commit_codec.encode(outcome.metadata, inflight.action)
            self._participants = participants
            try:
                for one in participants:
                    one.prepare(pending)
                if self._heartbeat is not None:
                    self._heartbeat.ensure_alive()
                done, seen = complete_and_look(
                    handle.storage,
                    handle.profile,
                    inflight,
                    payload,
                    handle.env,
                    handle.config.timezone,
                    begun_ms=None if self._run is None else self._run.begun_ms,
                    since=pending.timeline.instants,
                )
                self.after, self._offered = state_from(handle, seen), None
            except Fenced:
                if self._is_planned(handle):
                    raise  # what participants and markers know of the instant may be the next run's
                with deleting_own(handle.storage):
                    markers = self.markers(handle)
                    self._reopened = not remove_fenced(handle, inflight, outcome.files, participants, markers)
                raise
            drop_markers(self.markers(handle), inflight.requested)
        return done

    @contextmanager
    def committing(self, outcome: Outcome, planned_on: Timeline, rule: ConflictRule) -> Iterator[PendingCommit]:
        """The write under the table lock, which is held inside the block, after the rule has let it through: for who
        completes it in a way of his own. Raises as `commit`.
        """
        inflight = self._inflight
        if inflight is None:
            raise ValueError(f"The write {self.instant} was not begun")
        first, self._is_first = self._is_first, False
        if not (outcome.ran_once and first):  # what an earlier outcome named may not be named any more
            remove_losers(self.handle, self.instant, self.markers(self.handle), outcome.stats, self._run)
        with self._locking.to_commit(self.handle) as (handle, seen):
            pending = PendingCommit(handle, inflight, outcome, planned_on, seen)
            rule.check(pending)
            self._ensure_alive(handle, inflight, seen)
            yield pending

    def _ensure_alive(self, handle: TableHandle, inflight: Instant, seen: Timeline | None) -> None:
        """Checks before participants are told of the write that others have not taken it away while they had the lock,
        or, of a run of a plan, whenever it was lost: participants cannot tell one run from the next.
        """
        if self._run is not None:
            now = timeline_of(handle) if seen is None else seen
            ensure_alive(handle.storage, handle.profile, inflight, now.instants, self._run.begun_ms)
        elif seen is not None:
            ensure_alive(handle.storage, handle.profile, inflight, seen.instants)

    def _is_planned(self, handle: TableHandle) -> bool:
        """Whether this is a run of a plan that is on the timeline, or may be."""
        if self._run is None:
            return False
        try:
            return timeline_of(handle).find(self.instant) is not None
        except HudiError:
            return True

    @contextmanager
    def _aborted_when_failed(self) -> Iterator[None]:
        with holding_heartbeat(self.handle, self.instant, self._config, self._what) as self._heartbeat:
            try:
                with self._fenced_when_gone():
                    yield
            except (CommitUnknown, InstantTaken):
                raise
            except (Exception, KeyboardInterrupt) as cause:
                self._abort(cause)
                raise

    @contextmanager
    def _fenced_when_gone(self) -> Iterator[None]:
        """Says that the write is fenced, when the block fails because another writer has taken its instant and files;
        and that it has to give way, when a data file is gone that another one may have removed.

        Raises:
            Fenced: so it is. WriteConflict: a data file is gone, and others have been at work meanwhile, or an index is
                gone that somebody has dropped. Else what the block raises.
        """
        try:
            yield
        except (Conflict, CommitUnknown, Fenced):
            raise
        except HudiError as error:
            begun = self._inflight or self._requested
            if begun is None:
                if isinstance(error, Missing) and not self._locking.lets_others_in:
                    self._ensure_held(error)
                raise
            now = timeline_of(self.handle)
            if now.find(self.instant) is not None:
                if self._locking.lets_others_in and isinstance(error, Missing) and _is_data_file(error):
                    self._ensure_alone(now, error)
                if self._locking.lets_others_in and isinstance(error, Corrupt | Missing):
                    self._ensure_indexed(error)
                raise
            raise Fenced(
                f"The {begun.action} {self.instant} was taken from this writer ({error.cause})",
                remedy="Nothing of it became visible; read the table again and repeat the write",
                instant=self.instant,
            ) from error

    def _ensure_held(self, missing: Missing) -> None:
        """Checks that nobody has had the table while this writer, who has not begun, held it. Who has may have taken
        away what is `missing`, as the input that waited in files.

        Raises:
            Fenced: somebody has.
        """
        last = max(timeline_of(self.handle).instants, key=_last_time, default=None)
        if last is None or _last_time(last) <= self.instant:
            return
        raise Fenced(
            f"The {self._what} {self.instant} was stopped before it began: the table was taken from this writer, the "
            f"last to write was the {last.action} {last.requested} ({missing.cause})",
            remedy="Nothing of it became visible; read the table again and repeat the write",
            instant=self.instant,
        ) from missing

    def _ensure_alone(self, now: Timeline, missing: Missing) -> None:
        """Checks that nothing has begun or ended since the write began (its time was later than any other then), or
        that the table as it is now needs the file, too.

        Raises:
            WriteConflict: others have been at work, and what is `missing` has gone with an older state.
        """
        last = max(now.instants, key=_last_time)
        if _last_time(last) <= self.instant or is_lost(self.handle, str(missing.facts["path"])):
            return
        raise WriteConflict(
            f"The {self._what} {self.instant} cannot go on: a file of the state it reads is gone ({missing.cause}), "
            f"and others have been at work meanwhile, the last of them with the {last.action} {last.requested}",
            remedy=REPEAT_THE_WRITE,
            instant=self.instant,
            operation=self._what.upper(),
            other=last.requested,
            path=missing.facts.get("path"),
        ) from missing

    def _ensure_indexed(self, error: HudiError) -> None:
        """Checks that the table has all indexes it had when the write began.

        Raises:
            WriteConflict: somebody has dropped one, which an `error` about its files may come from.
        """
        now = load_handle(self.handle.storage, self.handle.env)
        gone = sorted(set(self.handle.config.metadata_partitions).difference(now.config.metadata_partitions))
        if not gone:
            return
        raise WriteConflict(
            f"The {self._what} {self.instant} cannot go on: {', '.join(gone)}, which it may use, was dropped meanwhile "
            f"({error.cause})",
            remedy=REPEAT_THE_WRITE,
            instant=self.instant,
            operation=self._what.upper(),
            indexes=tuple(gone),
        ) from error

    def _abort(self, cause: BaseException) -> None:
        try:
            markers, begun = self.markers(self.handle), self._inflight or self._requested
            with deleting_own(self.handle.storage):
                alone = self.handle.profile.log_naming.has_one_write_per_file and not self._participants
                if alone:
                    self._remove_strays(begun, markers, cause)
                # Others may be at work: the metadata table, and the folders of new partitions, are theirs, too.
                with (
                    self._unless_locked_out(begun, markers, cause),
                    self._locking.to_commit(self.handle) as (handle, _),
                ):
                    if not alone:
                        self._remove_strays(begun, markers, cause)
                    if not self._reopened:
                        abort(handle, self.instant, self._participants, markers)
        except HudiError as error:
            log.warning("the failed write (%s) could not be aborted now: %s; the next write will do it", cause, error)

    @contextmanager
    def _unless_locked_out(self, begun: Instant | None, markers: Markers, cause: BaseException) -> Iterator[None]:
        """Leaves what the block would have taken away to a rollback, where others have the table lock."""
        try:
            yield
        except Conflict:
            if begun is not None and not self._reopened and self._offered is not None:
                self._reopened = not leave_strays(
                    load_handle_again(self.handle),
                    begun,
                    markers,
                    self._offered,
                    was_told=bool(self._participants),
                    may_be_done=self._may_be_done(cause),
                )
            raise

    def _remove_strays(self, begun: Instant | None, markers: Markers, cause: BaseException) -> None:
        if begun is None or isinstance(cause, CommitUnknown):
            return
        is_rid = remove_strays(
            load_handle_again(self.handle),
            begun,
            markers,
            self._offered or (),
            self._participants,
            may_be_done=self._may_be_done(cause),
        )
        self._reopened |= not is_rid

    def _may_be_done(self, cause: BaseException) -> bool:
        return self._offered is None or not isinstance(cause, Conflict | Fenced)


def _last_time(instant: Instant) -> InstantTime:
    return max(instant.requested, instant.completed or "")


def _is_data_file(missing: Missing) -> bool:
    path = str(missing.facts.get("path", ""))
    return parse_data_file_name(path.rpartition("/")[2]) is not None
