"""What every `History` promises, as a test class: subclass it with a fixture `storage` and a format profile."""

from __future__ import annotations

from hoodie.spec import COMMIT, CommitMetadata, FormatProfile, Instant, State
from hoodie.storage import Storage
from hoodie.testing.hand_table import at
from hoodie.timeline import (
    ArchivedFiles,
    History,
    HistoryLimits,
    HistoryOptions,
    MergeLimits,
    StateContent,
    history_of,
    load_archived_metadata,
)


class HistoryContract:
    """Subclass it with a fixture `storage`, an empty storage, and the profile whose history is appended to and read."""

    profile: FormatProfile
    options = HistoryOptions(
        entries_per_block=2, merge=MergeLimits(batch_files=2), compact=HistoryLimits(batch_files=2)
    )

    def history(self, storage: Storage) -> History:
        return history_of(storage, self.profile, self.options)

    def archived(self, history: History, second: int) -> ArchivedFiles:
        """A commit with its files in all states, as far as the history wants them."""
        done = Instant(at(second), COMMIT, State.COMPLETED, at(second, 500))
        data = self.profile.commit_codec.encode(CommitMetadata(operation_type=f"OF_{second}"), COMMIT)
        states = [
            StateContent(Instant(at(second), COMMIT, State.REQUESTED), at(second), "requested", b""),
            StateContent(done, at(second, 500), "completed", data),
        ]
        return ArchivedFiles(done, tuple(one for one in states if history.wants(one.instant)))

    def append(self, history: History, *seconds: int) -> str:
        found = [self.archived(history, second) for second in seconds]
        return history.append([one.instant for one in found], ([one] for one in found))

    def test_a_table_that_was_never_archived_has_no_history(self, storage: Storage) -> None:
        history = self.history(storage)
        assert not history.exists()
        assert history.files() == ()
        assert history.load("", None) == ()
        assert history.already_has({(at(1), COMMIT)}) == frozenset()
        assert history.merge() == 0

    def test_what_was_appended_is_there_in_the_order_of_the_timeline(self, storage: Storage) -> None:
        history = self.history(storage)
        self.append(history, 1, 2, 3)
        self.append(history, 4)
        assert history.exists()
        assert [one.requested for one in history.load("", None)] == [at(n) for n in (1, 2, 3, 4)]
        assert {one.action for one in history.load("", None)} == {COMMIT}

    def test_the_file_that_appending_names_is_one_of_the_files(self, storage: Storage) -> None:
        history = self.history(storage)
        path = self.append(history, 1)
        assert path in {file.path for file in history.files()}

    def test_only_instants_at_work_in_a_range_are_loaded(self, storage: Storage) -> None:
        history = self.history(storage)
        self.append(history, 1, 2, 3, 4)
        assert [one.requested for one in history.load(at(1, 900), at(3))] == [at(2), at(3)]

    def test_commits_say_what_they_did(self, storage: Storage) -> None:
        history = self.history(storage)
        self.append(history, 1, 2)
        said = load_archived_metadata(storage, history.load("", None))
        assert {requested: one.operation_type for requested, one in said.items()} == {at(1): "OF_1", at(2): "OF_2"}

    def test_an_archiver_that_died_finds_what_it_had_put_there(self, storage: Storage) -> None:
        history = self.history(storage)
        self.append(history, 1, 2)
        wanted = {(at(2), COMMIT), (at(3), COMMIT)}
        assert history.already_has(wanted) == {(at(2), COMMIT)}

    def test_small_files_become_one_and_nothing_is_lost(self, storage: Storage) -> None:
        history = self.history(storage)
        self.append(history, 1)
        self.append(history, 2)
        assert history.merge() == 1
        assert [one.requested for one in history.load("", None)] == [at(1), at(2)]

    def test_a_sound_history_tells_all_writes(self, storage: Storage) -> None:
        history = self.history(storage)
        self.append(history, 1)
        assert history.tells_all(history.files())

    def test_completed_files_are_kept_in_every_form(self, storage: Storage) -> None:
        assert self.history(storage).wants(Instant(at(1), COMMIT, State.COMPLETED, at(1)))
