"""A transaction completes as a whole, or leaves nothing; what it does to what belongs to another writer: nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import CommitUnknown, Conflict, Fenced, Missing, Unavailable
from hoodie.locks import held_lock
from hoodie.metadata_writer import MetadataParticipant
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.spec import Instant
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.hand_write import HandWrite
from hoodie.testing.lake import Awake, Lake, Row, row
from hoodie.timeline import create_requested, markers_of
from hoodie.transaction import InstantTaken, LockPolicy, Outcome, Participant, PendingCommit, PlanSetAside, locking
from hoodie.transaction.concurrency import POLICY
from hoodie.transaction.heartbeat import heartbeat_path

LAZY = resolve({POLICY: "LAZY"})


@pytest.fixture(params=[6, 8, 9], ids=lambda version: f"v{version}")
def lake(request: pytest.FixtureRequest) -> Lake:
    made = Lake(request.param)
    made.upsert(row("a"))
    return made


@dataclass
class Noted:
    """A participant that notes what it is told, and does `then` when it is to prepare."""

    told: list[str] = field(default_factory=list)
    error: Exception | None = None

    def prepare(self, pending: PendingCommit) -> None:
        assert not timeline_of(pending.handle).is_committed(pending.inflight.requested)
        self.told.append("prepare")
        if self.error is not None:
            raise self.error

    def withdraw(self, handle: TableHandle, inflight: Instant) -> TableHandle:
        del inflight
        self.told.append("withdraw")
        return handle


def run(write: HandWrite, *steps: Callable[[], object]) -> None:
    """A write of one file, in its transaction; then the steps."""
    with write.transaction:
        write.begin()
        write.write_file("q")
        for step in steps:
            step()


def fail(error: BaseException) -> None:
    raise error


def test_a_commit_shows_all_and_leaves_no_marker_and_no_file_of_a_retried_task(lake: Lake) -> None:
    write = HandWrite(lake.handle())
    with write.transaction as transaction:
        write.begin()
        lost = write.write_file("q", loses=True)
        write.write_file("q")
        before = lake.live()
        done = write.commit((MetadataParticipant(),))
    assert done.is_completed
    assert done.requested == transaction.instant
    assert len(lake.live()) == len(before) + 1
    assert lost not in lake.files()
    assert not [path for path in lake.files() if path.startswith(".hoodie/.temp/")]


@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyboardInterrupt(), Unavailable("no storage")])
def test_a_block_that_fails_leaves_nothing(lake: Lake, error: BaseException) -> None:
    before, write = lake.files(), HandWrite(lake.handle())
    with pytest.raises(type(error)):
        run(write, lambda: fail(error))
    assert lake.files() == before


def test_a_participant_is_told_before_the_instant_and_takes_it_back_after_an_error(lake: Lake) -> None:
    before, write, noted = lake.files(), HandWrite(lake.handle()), Noted(error=Unavailable("it is away"))
    with pytest.raises(Unavailable, match="it is away"):
        run(write, lambda: write.commit((MetadataParticipant(), noted)))
    assert noted.told == ["prepare", "withdraw"]
    assert {path for path in lake.files() if path not in before} == set()
    lake.ensure_sound()


def test_a_participant_hears_nothing_of_a_write_that_never_came_to_its_commit(lake: Lake) -> None:
    write, noted = HandWrite(lake.handle()), Noted()
    with pytest.raises(Conflict):
        run(write, lambda: lake.upsert(row("other")), lambda: write.commit((noted,)))  # the upsert rolls it back
    assert noted.told == []


def test_an_unknown_end_is_left_alone(lake: Lake) -> None:
    write = HandWrite(lake.handle())
    with pytest.raises(CommitUnknown):
        run(write, lambda: fail(CommitUnknown("the answer was lost")))
    assert set(write.outcome.files) <= set(lake.files())
    assert write.inflight is not None
    assert timeline_of(lake.handle()).find(write.inflight.requested) is not None


def test_a_lost_answer_of_the_last_step_is_unknown_and_the_write_is_there(lake: Lake) -> None:
    def ends_with(storage: CountingStorage) -> int:
        return max(one.n for one in storage.calls if one.op == "create" and one.path.endswith("commit"))

    twin = Lake(lake.version)
    for path, data in lake.files().items():
        twin.storage.put(path, data)
    counted = CountingStorage(twin.storage)
    first = HandWrite(load_handle(counted, Awake()))
    run(first, lambda: first.commit((MetadataParticipant(),)))
    last = ends_with(counted)
    lost = CountingStorage(lake.storage, fail_after=last, failure=CommitUnknown("the answer was lost"))
    second = HandWrite(load_handle(lost, Awake()))
    with pytest.raises(CommitUnknown):
        run(second, lambda: second.commit((MetadataParticipant(),)))
    assert set(second.outcome.files) <= set(lake.files())
    assert timeline_of(lake.handle()).is_committed(second.transaction.instant)


def test_an_instant_of_another_writer_stays(lake: Lake) -> None:
    write = HandWrite(lake.handle())
    other = create_requested(write.handle.storage, write.handle.profile, write.transaction.instant, "commit")
    before = lake.files()
    with pytest.raises(InstantTaken), write.transaction:
        write.begin()
    assert lake.files() == before
    assert timeline_of(lake.handle()).find(other.requested) is not None


def test_who_was_rolled_back_is_fenced_and_leaves_no_file(lake: Lake) -> None:
    write = HandWrite(lake.handle())
    with pytest.raises(Fenced):
        run(
            write,
            lambda: roll_back_failed_writes(lake.handle(), LocalEngine(1)),
            lambda: write.write_file("q"),  # whoever rolled it back has not seen this one
            lambda: write.commit((MetadataParticipant(),), PlanSetAside()),
        )
    assert [path for path in lake.files() if write.transaction.instant in path and "rollback" not in path] == []


def test_an_error_of_one_that_was_rolled_back_says_so(lake: Lake) -> None:
    write = HandWrite(lake.handle())
    with pytest.raises(Fenced, match="was taken from this writer") as told:
        run(
            write,
            lambda: roll_back_failed_writes(lake.handle(), LocalEngine(1)),
            lambda: fail(Unavailable("a file of it is gone")),
        )
    assert isinstance(told.value.__cause__, Unavailable)


def test_who_had_not_begun_and_misses_a_file_is_fenced_where_another_has_written_meanwhile(lake: Lake) -> None:
    """Its lease was over, and what it had spooled, or what it reads, went with others."""

    def misses_a_file(*before: Row) -> None:
        with HandWrite(lake.handle()).transaction:
            for one in before:
                lake.upsert(one)
            raise Missing("a file is gone")

    with pytest.raises(Fenced, match="before it began") as told:
        misses_a_file(row("n"))
    assert isinstance(told.value.__cause__, Missing)
    with pytest.raises(Missing):
        misses_a_file()


def test_a_conflict_leaves_the_write_and_it_may_be_committed_again_on_the_newer_timeline(lake: Lake) -> None:
    """What a retry is made of: files that nobody touched are kept."""
    write = HandWrite(lake.handle())
    with write.transaction as transaction:
        write.begin()
        kept, lost = write.write_file("q"), write.write_file("r")
        other = HandWrite(lake.handle())
        other.begin()
        other.write_file("p")
        other.commit((MetadataParticipant(),), PlanSetAside())
        with pytest.raises(Conflict, match="appeared while"):
            write.commit((MetadataParticipant(),))
        assert {kept, lost} <= set(lake.files())
        write.stats.pop()  # what the conflict touched is written anew
        again = write.write_file("r")
        write.planned_on = timeline_of(write.handle)
        write.commit((MetadataParticipant(),))
    assert timeline_of(lake.handle()).is_committed(transaction.instant)
    assert {kept, again} <= set(lake.files())
    assert lost not in lake.files()


def test_the_heartbeat_beats_in_the_block_and_has_a_word_before_the_end(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = HandWrite(lake.handle(), config=LAZY)
    beat = heartbeat_path(write.transaction.instant)
    there: list[bool] = []
    with pytest.raises(Fenced, match="no sign of life"):
        run(
            write,
            lambda: there.append(beat in lake.files()),
            lambda: monkeypatch.setattr("hoodie.env.SystemEnv.monotonic", lambda env: 1e12),
            lambda: write.commit((MetadataParticipant(),)),
        )
    assert there == [True]
    assert beat not in lake.files()
    assert not timeline_of(lake.handle()).is_committed(write.transaction.instant)


def test_beside_writers_the_lock_is_free_while_files_are_written_and_taken_to_commit(lake: Lake) -> None:
    with locking(lake.storage, "a write", Awake(), LockPolicy.AT_BOTH_ENDS) as lock:
        with lock.to_begin() as handle:
            write = HandWrite(handle, lock)
            write.begin()
        with write.transaction, held_lock(lake.storage, "another"):
            write.write_file("q")
            with pytest.raises(Conflict, match="a write"):
                write.commit((MetadataParticipant(),))
            participants: tuple[Participant, ...] = (Held(lake), MetadataParticipant())
        write.commit(participants)
    assert timeline_of(lake.handle()).is_committed(write.transaction.instant)


@dataclass
class Held:
    """Sees that the table lock is held."""

    lake: Lake

    def prepare(self, pending: PendingCommit) -> None:
        assert pending.seen is not None
        with pytest.raises(Conflict), held_lock(self.lake.storage, "another"):
            pytest.fail("the lock is not held")

    def withdraw(self, handle: TableHandle, inflight: Instant) -> TableHandle:
        del inflight
        return handle


def test_what_was_not_begun_is_not_committed(lake: Lake) -> None:
    before, write = lake.files(), HandWrite(lake.handle())
    with pytest.raises(ValueError, match="not begun"), write.transaction:
        write.commit()
    assert lake.files() == before
    assert markers_of(lake.storage, write.transaction.instant).load() is None


class RanOnce(HandWrite):
    """A write whose tasks ran once: only what an outcome names was written."""

    @property
    def outcome(self) -> Outcome:
        return replace(super().outcome, ran_once=True)


@pytest.mark.parametrize("metadata", ["true", "false"])
def test_files_of_an_outcome_that_had_to_give_way_go_with_the_next(metadata: str) -> None:
    lake = Lake(9, {"hoodie.metadata.enable": metadata})
    lake.upsert(row("a"))
    write, other = RanOnce(lake.handle()), HandWrite(lake.handle())
    with write.transaction:
        write.begin()
        write.write_file("q")
        lost = write.write_file("r")
        other.begin()
        other.write_file("p")
        other.commit((MetadataParticipant(),), PlanSetAside())
        with pytest.raises(Conflict):
            write.commit((MetadataParticipant(),))
        write.stats.pop()
        write.write_file("r")
        write.planned_on = timeline_of(write.handle)
        write.commit((MetadataParticipant(),))
    assert lost not in lake.files()
    assert [one.partition for one in lake.table.files()].count("r") == 1
