"""Folders of markers that another process deletes: what is asked for afterwards is written, where Hudi finds it, and
nothing that others wrote meanwhile is taken away.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie import Table
from hoodie.errors import Unavailable
from hoodie.remote.connection import MARKER
from hoodie.server.marker_folder import LOOK_EVERY_S, Batching, MarkerFolder
from hoodie.server.marker_service import MarkerService
from hoodie.spec import MARKER_TYPE
from hoodie.storage import LocalStorage
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.env import FakeEnv

INSTANT = "20260101000000000"
FOLDER = f".hoodie/.temp/{INSTANT}"
NAMES = [f"p/f{number}_1-2-3_{INSTANT}.parquet.marker.CREATE" for number in range(9)]
A_WHILE = timedelta(seconds=LOOK_EVERY_S)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    Table.create(str(tmp_path / "t"), schema=pa.schema([("id", pa.string())]), options=options)
    return tmp_path / "t"


@pytest.fixture
def env() -> FakeEnv:
    return FakeEnv()


class Kept:
    """A folder as a service keeps it. `later`: what is to be done from some time on."""

    def __init__(self, table: Path, env: FakeEnv, lists: int = 1) -> None:
        self.storage = CountingStorage(LocalStorage(str(table)))
        self.env = env
        self.later: list[float] = []
        self.folder = MarkerFolder(self.storage, INSTANT, Batching(lists, 0), env, self._due)

    def _due(self, folder: MarkerFolder, at: float) -> None:
        if at > self.env.monotonic():
            self.later.append(at)
        else:
            folder.write_batch()

    def create(self, name: str) -> bool:
        return self.folder.create(name).result(1)

    def pass_time(self) -> None:
        self.env.advance(A_WHILE)
        due, self.later = [at for at in self.later if at <= self.env.monotonic()], []
        for _ in due:
            self.folder.write_batch()


@pytest.fixture
def kept(table: Path, env: FakeEnv) -> Kept:
    return Kept(table, env)


def lists(table: Path) -> dict[str, list[str]]:
    """The lines of each list, as Hudi reads them: only where something says that there are lists."""
    folder = table / FOLDER
    if not (folder / "MARKERS.type").exists():
        return {}
    assert (folder / "MARKERS.type").read_bytes() == MARKER_TYPE
    return {file.name: file.read_text().splitlines() for file in folder.glob("MARKERS[0-9]*")}


def lines(table: Path) -> list[str]:
    return sorted({line for some in lists(table).values() for line in some})


def test_a_marker_that_is_asked_for_after_another_process_deleted_it_is_written_again(table: Path, kept: Kept) -> None:
    assert kept.create(NAMES[0]) is True
    assert kept.create(NAMES[0]) is False
    shutil.rmtree(table / FOLDER)
    assert kept.create(NAMES[0]) is True
    assert lines(table) == [NAMES[0]]
    assert kept.create(NAMES[0]) is False


def test_a_new_marker_after_a_deletion_goes_to_a_list_that_hudi_reads(table: Path, kept: Kept) -> None:
    assert kept.create(NAMES[0])
    kept.pass_time()
    shutil.rmtree(table / FOLDER)
    kept.pass_time()
    assert kept.create(NAMES[1])
    assert lines(table) == [NAMES[1]]


def test_also_one_that_comes_before_anybody_looked(table: Path, kept: Kept) -> None:
    """The look after the last batch says that there are lists."""
    assert kept.create(NAMES[0])
    shutil.rmtree(table / FOLDER)
    assert kept.create(NAMES[1])
    assert lists(table) == {}
    kept.pass_time()
    assert NAMES[1] in lines(table)
    assert kept.create(NAMES[1]) is False
    calls = kept.storage.count
    kept.pass_time()
    assert kept.storage.count == calls


def test_lists_of_another_service_that_came_after_a_deletion_keep_their_lines(table: Path, env: FakeEnv) -> None:
    first = Kept(table, env)
    assert first.create(NAMES[0])
    shutil.rmtree(table / FOLDER)
    second = Kept(table, env)
    assert second.create(NAMES[1])
    assert second.create(NAMES[2])
    first.pass_time()
    assert first.create(NAMES[3])
    assert first.create(NAMES[1]) is False
    assert second.create(NAMES[4])
    assert lines(table) == NAMES[1:5]
    assert {len(some) for some in lists(table).values()} == {1, 3}


def test_markers_that_others_wrote_are_looked_for_too(table: Path, env: FakeEnv) -> None:
    assert Kept(table, env).create(NAMES[0])
    later = Kept(table, env)
    assert later.create(NAMES[0]) is False
    shutil.rmtree(table / FOLDER)
    assert later.create(NAMES[0]) is True
    assert lines(table) == [NAMES[0]]


def test_direct_markers_that_are_deleted_are_made_again(table: Path, kept: Kept, env: FakeEnv) -> None:
    direct = table / FOLDER / NAMES[0]
    direct.parent.mkdir(parents=True)
    direct.touch()
    found = Kept(table, env)
    assert found.create(NAMES[0]) is False
    shutil.rmtree(table / FOLDER)
    assert found.create(NAMES[0]) is True
    assert lines(table) == [NAMES[0]]


def test_what_is_listed_is_what_is_there(table: Path, kept: Kept) -> None:
    assert kept.create(NAMES[0])
    assert kept.folder.exists()
    shutil.rmtree(table / FOLDER)
    assert not kept.folder.exists()
    assert kept.folder.names() == ()


def test_what_is_being_written_while_the_folder_is_deleted_is_written_once_more(
    table: Path, env: FakeEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes may have been there before the deletion, and gone before it is answered."""
    kept = Kept(table, env, lists=2)
    assert kept.create(NAMES[0])
    create, written, goes_on = LocalStorage.create, threading.Event(), threading.Event()

    def held(self: LocalStorage, path: str, data: bytes) -> None:
        create(self, path, data)
        if NAMES[1].encode() in data and not written.is_set():
            written.set()
            assert goes_on.wait(10)

    monkeypatch.setattr(LocalStorage, "create", held)
    answers: list[Future[bool]] = []
    thread = threading.Thread(target=lambda: answers.append(kept.folder.create(NAMES[1])))
    thread.start()
    assert written.wait(10)
    shutil.rmtree(table / FOLDER)
    assert kept.create(NAMES[0]) is True
    goes_on.set()
    thread.join()
    assert answers[0].result(10) is True
    assert lines(table) == NAMES[:2]


def test_while_nobody_can_look_nothing_is_promised(table: Path, kept: Kept) -> None:
    assert kept.create(NAMES[0])
    storage, kept.folder.storage = kept.folder.storage, CountingStorage(LocalStorage(str(table)), fail_at=1)
    with pytest.raises(Unavailable):
        kept.create(NAMES[0])
    kept.folder.storage = storage
    shutil.rmtree(table / FOLDER)
    assert kept.create(NAMES[0]) is True
    assert kept.folder.is_idle


def test_a_look_costs_one_listing_once_in_a_while(table: Path, kept: Kept) -> None:
    for name in NAMES:
        assert kept.create(name)
    assert sum(call.op == "list_dir" for call in kept.storage.calls) == 1  # when it was opened
    kept.pass_time()
    assert sum(call.op == "list_dir" for call in kept.storage.calls) == 2


@pytest.fixture
def service(table: Path) -> Iterator[MarkerService]:
    found = MarkerService([str(table.parent)], batching=Batching(2, 0.001))
    yield found
    found.close()


def test_a_service_notices_that_a_folder_is_gone(table: Path, service: MarkerService) -> None:
    def asked(name: str) -> bool:
        found = service.answer("POST", f"{MARKER}create", {"markerdirpath": f"{table}/{FOLDER}", "markername": name})
        assert isinstance(found, Future)
        return found.result(10)

    assert [asked(name) for name in NAMES[:3]] == [True] * 3
    shutil.rmtree(table / FOLDER)
    assert [asked(name) for name in NAMES[:3]] == [True] * 3
    assert lines(table) == NAMES[:3]
