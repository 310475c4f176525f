"""Files older than the active timeline count when their write is in the history, as far as that is known."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hoodie.spec import V6, V8, V9, BaseFileName, FormatProfile, Instant, State, archived_schema, encode_archived_state
from hoodie.storage import Storage
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.hand_table import HandTable, at
from hoodie.timeline import HistoryRow, append_archive, append_history, history, load_timeline
from hoodie.view import PartitionFiles, list_files, load_view

PROFILES = pytest.mark.parametrize("profile", [V6, V8, V9], ids=["v6", "v8", "v9"])
COMMIT = b'{"partitionToWriteStats":{},"compacted":false,"extraMetadata":{},"operationType":"UPSERT"}'


def table(profile: FormatProfile, archived: Sequence[int] = ()) -> HandTable:
    """A file group with base files of 1, 2, 3 and 4, an active timeline from 8 on, and these commits in the history."""
    made = HandTable(profile)
    made.commit(at(8), {("p", "other"): []})
    for second in (1, 2, 3, 4):
        made.storage.put(f"p/{BaseFileName('f', '0-1-2', at(second)).text}", b"x")
    if archived:
        archive(made.storage, made.profile, archived)
    return made


def archive(storage: Storage, profile: FormatProfile, seconds: Sequence[int]) -> None:
    commits = [Instant(at(n), "commit", State.COMPLETED, at(n, 500)) for n in seconds]
    if profile.history_form == "log_files":
        entries = [encode_archived_state(one, at(9), COMMIT, "", profile.avro_generation) for one in commits]
        append_archive(storage, profile.history_dir, archived_schema(profile.avro_generation), [entries])
    else:
        rows = [HistoryRow(one, COMMIT) for one in commits]
        append_history(storage, profile.history_dir, at(seconds[0]), at(seconds[-1]), [rows])


def counted(
    made: HandTable, storage: Storage | None = None, listing: tuple[PartitionFiles, ...] | None = None
) -> list[str]:
    """The base files of the group that count, oldest first."""
    timeline = load_timeline(made.storage, made.profile, "UTC")
    place = storage or made.storage
    files = list_files(place) if listing is None else listing
    view = load_view(place, timeline, files, {}, are_settled=listing is not None)
    return sorted(part.base_instant for part in view.all_slices() if part.file_id == "f")


@PROFILES
@pytest.mark.parametrize(
    ("archived", "expected"),
    [
        ((1, 2, 3, 4), (1, 2, 3, 4)),
        ((1, 2, 4), (1, 2, 4)),
        ((2, 4), (1, 2, 4)),
        ((6,), (1, 2, 3, 4)),
        ((), (1, 2, 3, 4)),
    ],
    ids=["all", "one was never committed", "its beginning was cut", "nothing so old", "no history"],
)
def test_what_the_history_should_have_and_has_not_does_not_count(profile, archived, expected):
    assert counted(table(profile, archived)) == [at(n) for n in expected]


@PROFILES
def test_history_that_cannot_be_read_is_not_held_against_files(profile):
    made = table(profile, (1, 2, 4))
    for file in made.storage.list_dir(profile.history_dir).files:
        if file.path.endswith((".parquet", "_1-0-1")):
            made.storage.put(file.path, made.storage.read(file.path)[:-30])
    assert counted(made) == [at(n) for n in (1, 2, 3, 4)]


@PROFILES
def test_files_that_a_metadata_table_lists_are_not_asked_about(profile):
    made = table(profile, (1, 2, 4))
    storage = CountingStorage(made.storage)
    assert counted(made, storage, list_files(made.storage)) == [at(n) for n in (1, 2, 3, 4)]
    assert not [call for call in storage.calls if call.path.startswith(profile.history_dir)]


@PROFILES
def test_history_is_read_once_while_it_does_not_change(profile):
    made = table(profile, (1, 2, 4))
    counted(made)
    storage = CountingStorage(made.storage)
    assert counted(made, storage) == [at(n) for n in (1, 2, 4)]
    asked = [call.op for call in storage.calls if call.path.startswith((profile.history_dir, ".hoodie/history"))]
    assert set(asked) == {"list_dir"}
    archive(made.storage, made.profile, (5, 6, 7))
    made.storage.put(f"p/{BaseFileName('f', '0-1-2', at(6)).text}", b"x")
    assert counted(made) == [at(n) for n in (1, 2, 4, 6)]


def test_history_is_not_read_while_no_file_is_older_than_the_timeline():
    made = HandTable(V9)
    made.commit(at(8), {("p", "other"): []})
    archive(made.storage, made.profile, (1, 2))
    storage = CountingStorage(made.storage)
    counted(made, storage)
    assert not [call for call in storage.calls if call.path.startswith(V9.history_dir)]


def test_archives_of_version_6_that_are_too_large_are_left_alone(monkeypatch):
    made = table(V6, (1, 2, 4))
    monkeypatch.setattr(history, "MAX_LOG_BYTES", 10)
    assert counted(made) == [at(n) for n in (1, 2, 3, 4)]
