"""Instants: their times and their file names in both forms."""

import time
from datetime import UTC, datetime

import pytest

from hoodie.errors import Invalid
from hoodie.spec import (
    V6,
    V9,
    Instant,
    State,
    format_instant_millis,
    format_instant_time,
    next_instant_time,
    parse_instant_time,
)

T, C = "20261121053901683", "20261121053903598"
PENDING = ["deltacommit", "replacecommit", "compaction", "logcompaction", "clean", "rollback", "restore", "indexing"]
COMPLETED = ["commit", "deltacommit", "replacecommit", "clean", "rollback", "restore", "savepoint", "indexing"]

NAMES_BOTH = [
    (f"{T}.commit.requested", Instant(T, "commit", State.REQUESTED)),
    (f"{T}.inflight", Instant(T, "commit", State.INFLIGHT)),
    (f"{T}.savepoint.inflight", Instant(T, "savepoint", State.INFLIGHT)),
    *((f"{T}.{action}.requested", Instant(T, action, State.REQUESTED)) for action in PENDING),
    *((f"{T}.{action}.inflight", Instant(T, action, State.INFLIGHT)) for action in PENDING),
    ("00000000000001.commit.requested", Instant("00000000000001", "commit", State.REQUESTED)),
]
NAMES_V6 = [(f"{T}.{action}", Instant(T, action, State.COMPLETED)) for action in COMPLETED]
NAMES_V9 = [
    *((f"{T}_{C}.{action}", Instant(T, action, State.COMPLETED, C)) for action in COMPLETED),
    (f"{T}.clustering.requested", Instant(T, "clustering", State.REQUESTED)),
    (f"{T}.clustering.inflight", Instant(T, "clustering", State.INFLIGHT)),
    (f"{T}.commit", Instant(T, "commit", State.COMPLETED, legacy_name=True)),
]
NO_INSTANTS = [
    "hoodie.properties",
    f".{T}.commit.crc",
    f"{T}.commit.requested.crc",
    f"{T}.commit.0fa1c6c4-2d9e-4c55-8a5e-1b6b0e1a2f3d",
    f"{T}.commit.requested.x",
    f"{T}.commit.tmp",
    f"{T}.commit.inflight",
    f"{T}.savepoint.requested",
    f"{T}.schemacommit",
    f"{T}_{C}.commit.requested",
    f"{T}_{C}.inflight",
    f"{T}.",
    f"{T}",
    "x.commit",
    "archived",
    "",
]


@pytest.mark.parametrize(("name", "instant"), NAMES_BOTH + NAMES_V6)
def test_names_of_layout_one_parse_and_format(name, instant):
    assert V6.instant_names.parse(name) == instant
    assert V6.instant_names.file_name(instant) == name


@pytest.mark.parametrize(("name", "instant"), NAMES_BOTH + NAMES_V9)
def test_names_of_layout_two_parse_and_format(name, instant):
    assert V9.instant_names.parse(name) == instant
    assert V9.instant_names.file_name(instant) == name


@pytest.mark.parametrize("profile", [V6, V9])
@pytest.mark.parametrize("name", NO_INSTANTS)
def test_other_files_are_no_instants(profile, name):
    assert profile.instant_names.parse(name) is None


@pytest.mark.parametrize("name", [f"{T}_{C}.commit", f"{T}.clustering.requested"])
def test_layout_one_knows_neither_completion_times_nor_clustering(name):
    assert V6.instant_names.parse(name) is None


@pytest.mark.parametrize(
    ("pending", "v6", "v9"),
    [
        ("compaction", f"{T}.commit", f"{T}_{C}.commit"),
        ("logcompaction", f"{T}.deltacommit", f"{T}_{C}.deltacommit"),
        ("clustering", f"{T}.replacecommit", f"{T}_{C}.replacecommit"),
    ],
)
def test_table_services_complete_under_the_name_of_a_write(pending, v6, v9):
    done = Instant(T, pending, State.COMPLETED, C)
    assert V6.instant_names.file_name(done) == v6
    assert V9.instant_names.file_name(done) == v9


def test_layout_one_writes_pending_clustering_as_replacecommit():
    assert V6.instant_names.file_name(Instant(T, "clustering", State.INFLIGHT)) == f"{T}.replacecommit.inflight"


def test_a_completed_instant_without_time_has_no_name_in_layout_two():
    with pytest.raises(Invalid):
        V9.instant_names.file_name(Instant(T, "commit", State.COMPLETED))


def test_instants_order_by_time_action_and_state():
    unordered = [
        Instant("2", "commit", State.REQUESTED),
        Instant("1", "deltacommit", State.COMPLETED, "9"),
        Instant("1", "commit", State.COMPLETED, "9"),
        Instant("1", "commit", State.INFLIGHT),
    ]
    assert sorted(unordered) == [unordered[3], unordered[2], unordered[1], unordered[0]]


def test_times_are_cut_to_milliseconds_in_utc():
    moment = datetime(2026, 1, 2, 3, 4, 5, 6999, tzinfo=UTC)
    assert format_instant_time(moment, "UTC") == "20260102030405006"
    assert format_instant_millis(1, "UTC") == "19700101000000001"


def test_local_times_are_in_the_machines_zone(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert format_instant_millis(0, "LOCAL") == "19700101090000000"
        assert parse_instant_time("19700101090000000", "LOCAL") == datetime(1970, 1, 1, tzinfo=UTC)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("text", "millis"), [("20260102030405006", 6), ("20260102030405", 999), ("20260102030405006001", 6)]
)
def test_times_of_all_lengths_parse(text, millis):
    assert parse_instant_time(text, "UTC") == datetime(2026, 1, 2, 3, 4, 5, millis * 1000, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "2026", "20261302030405006", "2026010203040500x", "²0260102030405006"])
def test_other_text_is_no_time(text):
    with pytest.raises(Invalid):
        parse_instant_time(text, "UTC")


@pytest.mark.parametrize(
    ("after", "following"),
    [
        ("20260102030405006", "20260102030405007"),
        ("20261231235959999", "20270101000000000"),
        ("20260228235959999", "20260301000000000"),
        ("00000000000000000", "00000000000000001"),
    ],
)
def test_the_next_time_is_one_millisecond_later(after, following):
    assert next_instant_time(after) == following


@pytest.mark.parametrize("after", ["00000000000001", "20260102030405", "0"])
def test_the_next_time_after_a_short_one_is_full_length_and_greater(after):
    assert len(next_instant_time(after)) == 17
    assert next_instant_time(after) > after
