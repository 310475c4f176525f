"""What each gap between two calls of a transaction leaves: the table of docs/design/0019-transactions.md, held.

Every call of a commit, and of an abort, is the last one once. All of them in version 9, a sample in the others.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

import pytest

from hoodie.errors import HudiError
from hoodie.metadata_writer import MetadataParticipant
from hoodie.state.handle import load_handle
from hoodie.storage import Storage
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.hand_write import HandWrite
from hoodie.testing.lake import Awake, Lake, row

pytestmark = pytest.mark.sampled(3)

EVERY = int(os.environ.get("HOODIE_CRASH_EVERY", "4"))
VERSIONS = [6, 8, 9]
_FILES: dict[int, dict[str, bytes]] = {}


def lake_of(version: int) -> Lake:
    if version not in _FILES:
        made = Lake(version)
        made.upsert(row("a"))
        _FILES[version] = made.files()
    lake = Lake(version)
    for path, data in _FILES[version].items():
        lake.storage.put(path, data)
    return lake


def commits(storage: Storage) -> str:
    write = HandWrite(load_handle(storage, Awake()))
    with write.transaction as transaction:
        write.begin()
        write.write_file("q", loses=True)
        write.write_file("q")
        write.commit((MetadataParticipant(),))
    return transaction.instant


def aborts(storage: Storage) -> str:
    write = HandWrite(load_handle(storage, Awake()))
    try:
        with write.transaction:
            write.begin()
            write.write_file("q")
            write.commit((MetadataParticipant(), Refuses()))
    except ZeroDivisionError:
        return write.transaction.instant
    raise AssertionError("it was to fail")


class Refuses(MetadataParticipant):
    def prepare(self, pending: object) -> None:
        raise ZeroDivisionError


def calls_of(version: int, act: Callable[[Storage], str]) -> list[int]:
    counted = CountingStorage(lake_of(version).storage)
    act(counted)
    every = 1 if version == 9 else EVERY
    return [call.n for call in counted.calls][version % every :: every]


def ensure_over(lake: Lake, where: str) -> None:
    """Checks that the next write takes away all that is left of the one before; markers that nobody's instant names any
    more go with the write after that, which knows by the timeline that they are old.
    """
    lake.upsert(row("z", part="z"))
    assert not lake.table.timeline().pending(), where
    if [path for path in lake.files() if path.startswith(".hoodie/.temp/")]:
        lake.upsert(row("z", part="z"))
    assert not [path for path in lake.files() if path.startswith(".hoodie/.temp/")], where
    committed = {one.requested for one in lake.table.timeline().completed_writes()}
    strangers = [path for path in lake.base_files() if ".hoodie/" not in path and instant_in(path) not in committed]
    assert strangers == [], where


def instant_in(path: str) -> str:
    return path.rpartition("_")[2].partition(".")[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_that_dies_at_any_call_is_before_or_after(version: int) -> None:
    seen = []
    for n in calls_of(version, commits):
        lake = lake_of(version)
        storage = CountingStorage(lake.storage, crash_at=n)
        with pytest.raises(Crash):
            commits(storage)
        last = storage.calls[-1] if storage.count < n else storage.calls[n - 1]
        where = f"call {n}: {last.op} {last.path}"
        groups = len(lake.live())
        assert groups in (1, 2), where
        seen.append(groups)
        ensure_over(lake, where)
        assert len(lake.live()) == groups + 1, where
    assert seen == sorted(seen)
    assert seen[0] == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_an_abort_that_dies_at_any_call_is_before_and_the_next_write_ends_it(version: int) -> None:
    for n in calls_of(version, aborts):
        lake = lake_of(version)
        storage = CountingStorage(lake.storage, crash_at=n)
        with pytest.raises(Crash):
            aborts(storage)
        where = f"call {n}: {storage.calls[n - 1].op} {storage.calls[n - 1].path}"
        assert len(lake.live()) == 1, where
        ensure_over(lake, where)
        assert len(lake.live()) == 2, where


@pytest.mark.parametrize("version", VERSIONS)
def test_an_abort_that_fails_at_any_call_leaves_nothing_or_what_the_next_write_ends(version: int) -> None:
    for n in calls_of(version, aborts):
        lake = lake_of(version)
        with suppress(HudiError):
            aborts(CountingStorage(lake.storage, fail_at=n))
        assert len(lake.live()) == 1, f"call {n}"
        ensure_over(lake, f"call {n}")
