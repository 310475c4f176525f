"""New instant times and times as users write them."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from hoodie.env import SystemEnv
from hoodie.errors import Invalid
from hoodie.testing.env import FakeEnv
from hoodie.timeline import new_instant_time, parse_as_of


def test_times_are_now_in_the_tables_zone():
    env = FakeEnv(datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=UTC), tick_ms=0)
    assert new_instant_time(env, "UTC", None) == "20260102030405006"


def test_times_grow_when_the_clock_stands_or_goes_back():
    env = FakeEnv(tick_ms=0)
    first = new_instant_time(env, "UTC", None)
    env.advance(timedelta(hours=-1))
    second = new_instant_time(env, "UTC", None)
    assert second > first
    assert int(second) == int(first) + 1


def test_times_are_greater_than_what_the_table_knows():
    env = FakeEnv(tick_ms=0)
    assert new_instant_time(env, "UTC", "20991231235959999") == "21000101000000000"


def test_each_fake_clock_stands_for_itself():
    ahead, other = FakeEnv(tick_ms=0), FakeEnv(tick_ms=0)
    new_instant_time(ahead, "UTC", "20991231235959999")
    assert new_instant_time(other, "UTC", None) < "2027"


def test_threads_with_system_clocks_never_get_the_same_time():
    with ThreadPoolExecutor(8) as pool:
        times = list(pool.map(lambda _: new_instant_time(SystemEnv(), "LOCAL", None), range(500)))
    assert len(set(times)) == 500


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20261121053901683", "20261121053901683"),
        ("20261121053901", "20261121053901000"),
        ("2026-11-21 05:39:01.683", "20261121053901683"),
        ("2026-11-21 05:39:01", "20261121053901999"),
        ("2026-11-21T05:39:01", "20261121053901999"),
        ("2026-11-21T05:39:01.683", "20261121053901683"),
        ("2026-11-21", "20261121000000000"),
        (" 2026-11-21 ", "20261121000000000"),
        ("00000000000000", "00000000000000000"),
        ("00000000000001", "00000000000001000"),
        ("00000000000000010", "00000000000000010"),
    ],
)
@pytest.mark.parametrize("timezone", ["LOCAL", "UTC"])
def test_every_accepted_form(text, expected, timezone):
    assert parse_as_of(text, timezone) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026",
        "202611210539016",
        "2026-13-01",
        "2026-02-30",
        "2026-11-21 25:00:00",
        "2026-11-21 05:39",
        "21.11.2026",
        "2026-11-21T05:39:01 CET",
        "2026-11-21 05:39:01.",
        "20261399999999999",
    ],
)
def test_other_forms_are_invalid_and_the_error_names_the_accepted_ones(text):
    with pytest.raises(Invalid, match="yyyy-MM-dd HH:mm:ss"):
        parse_as_of(text, "UTC")


def test_a_fake_world_is_the_same_for_the_same_seed():
    one, two = FakeEnv(seed=7), FakeEnv(seed=7)
    assert (one.now(), one.uuid(), one.random()) == (two.now(), two.uuid(), two.random())
    assert FakeEnv(seed=8).uuid() != FakeEnv(seed=7).uuid()
    one.sleep(2)
    assert one.sleeps == [2]
    assert one.monotonic() > two.monotonic()


def test_a_table_of_the_far_future_does_not_move_the_times_of_others() -> None:
    env = FakeEnv()
    assert new_instant_time(env, "UTC", "29990101000000000") == "29990101000000001"
    assert new_instant_time(env, "UTC", None) < "20270101000000000"
