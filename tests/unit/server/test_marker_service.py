"""Markers by a timeline service: Hudi's bytes, durable before they are answered; nothing else is written."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie import Table
from hoodie.errors import Invalid, Unavailable
from hoodie.remote.connection import MARKER
from hoodie.server import Answer
from hoodie.server.marker_folder import Batching, MarkerFolder
from hoodie.server.marker_service import MarkerService, answered
from hoodie.spec import MARKER_TYPE
from hoodie.storage import LocalStorage
from hoodie.testing.counting_storage import Call, CountingStorage
from hoodie.testing.env import FakeEnv
from hoodie.timeline import markers_of

INSTANT = "20260101000000000"
FOLDER = f".hoodie/.temp/{INSTANT}"
NAMES = [f"p{number % 3}/f{number}_1-2-3_{INSTANT}.parquet.marker.CREATE" for number in range(40)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    Table.create(str(tmp_path / "t"), schema=pa.schema([("id", pa.string())]), options=options)
    return tmp_path / "t"


@pytest.fixture
def service(table: Path) -> Iterator[MarkerService]:
    found = MarkerService([str(table.parent)], batching=Batching(4, 0.005))
    yield found
    found.close()


def ask(service: MarkerService, method: str, path: str, folder: Path | str, **more: str) -> tuple[int, object]:
    found = service.answer(method, MARKER + path, {"markerdirpath": str(folder), **more})
    if isinstance(found, Future):
        found.exception(10)
        found = answered(found)
    assert isinstance(found, Answer)
    return found.status, json.loads(found.body) if found.status == 200 else found.body.decode()


def create(service: MarkerService, folder: Path | str, *names: str) -> list[object]:
    """The answers to requests that are made at the same time."""
    waiting = [
        service.answer("POST", f"{MARKER}create", {"markerdirpath": str(folder), "markername": name}) for name in names
    ]
    return [one.result(10) if isinstance(one, Future) else one for one in waiting]


def lines(folder: Path) -> list[str]:
    return sorted(
        line for file in folder.glob("MARKERS*") if file.suffix != ".type" for line in file.read_text().splitlines()
    )


def test_markers_go_into_few_lists_in_the_bytes_of_hudi(service: MarkerService, table: Path) -> None:
    folder = table / FOLDER
    for start in range(0, 40, 8):
        assert create(service, folder, *NAMES[start : start + 8]) == [True] * 8
    assert {file.name for file in folder.iterdir()} == {"MARKERS.type", *(f"MARKERS{number}" for number in range(4))}
    assert (folder / "MARKERS.type").read_bytes() == MARKER_TYPE == b"TIMELINE_SERVER_BASED"
    assert (folder / "MARKERS1").read_bytes().endswith(b".parquet.marker.CREATE\n")
    assert lines(folder) == sorted(NAMES)
    loaded = markers_of(LocalStorage(str(table)), INSTANT).load()
    assert loaded is not None
    assert [f"{one.data_path}.marker.{one.kind.value}" for one in loaded] == sorted(NAMES)


def test_all_questions_are_answered(service: MarkerService, table: Path) -> None:
    folder = table / FOLDER
    assert ask(service, "GET", "dir/exists", folder) == (200, False)
    assert ask(service, "GET", "all", folder) == (200, [])
    log = f"p0/.f_{INSTANT}.log.1_0-1-2.marker.APPEND"
    assert create(service, folder, NAMES[0], log) == [True, True]
    assert create(service, f"{folder}/", NAMES[0]) == [False]
    assert ask(service, "GET", "dir/exists/", folder) == (200, True)
    assert ask(service, "GET", "all", f"file://{folder}") == (200, sorted([NAMES[0], log]))
    assert ask(service, "GET", "create-and-merge", folder) == (200, [NAMES[0]])
    assert ask(service, "GET", "append", folder) == (200, [log])
    assert ask(service, "POST", "dir/delete", folder) == (200, True)
    assert not folder.exists()
    assert ask(service, "POST", "dir/delete", folder) == (200, False)
    assert create(service, folder, NAMES[0]) == [True]
    assert lines(folder) == [NAMES[0]]


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "create"), ("POST", "all"), ("GET", "dir/delete"), ("GET", ""), ("PUT", "create")]
)
def test_what_nobody_asks_is_not_found(service: MarkerService, table: Path, method: str, path: str) -> None:
    assert ask(service, method, path, table / FOLDER)[0] == 404


@pytest.mark.parametrize(
    "folder",
    [
        "",
        "/",
        "{table}",
        "{table}/.hoodie",
        "{table}/.hoodie/.temp",
        "{table}/.hoodie/.temp/x",
        "{table}/.hoodie/.temp/../20260101000000000",
        "{table}/.hoodie/.temp/20260101000000000/..",
        "{table}/p/../../u/.hoodie/.temp/20260101000000000",
        "relative/.hoodie/.temp/20260101000000000",
        "{table}\0/.hoodie/.temp/20260101000000000",
    ],
)
@pytest.mark.parametrize("ending", [("POST", "create"), ("POST", "dir/delete"), ("GET", "all")])
def test_no_other_folder_is_touched(service: MarkerService, table: Path, folder: str, ending: tuple[str, str]) -> None:
    before = sorted(table.parent.rglob("*"))
    status, _ = ask(service, *ending, folder.format(table=table), markername=NAMES[0])
    assert status == 400
    assert sorted(table.parent.rglob("*")) == before


def test_only_tables_below_the_roots_are_served(service: MarkerService, table: Path, tmp_path: Path) -> None:
    assert ask(service, "POST", "create", f"/elsewhere/{FOLDER}", markername=NAMES[0])[0] == 403
    (tmp_path / "no_table").mkdir()
    assert ask(service, "POST", "create", tmp_path / "no_table" / FOLDER, markername=NAMES[0])[0] == 404
    assert not list((tmp_path / "no_table").iterdir())
    outside = tmp_path.parent / f"{tmp_path.name}_outside"
    outside.mkdir()
    (table / ".hoodie" / ".temp").mkdir(exist_ok=True)
    (table / FOLDER).symlink_to(outside)
    assert ask(service, "POST", "create", table / FOLDER, markername=NAMES[0])[0] in (400, 503)
    assert not list(outside.iterdir())


@pytest.mark.parametrize(
    "name",
    [
        "",
        "p/f.parquet",
        "p/f.parquet.marker.OTHER",
        "../f.parquet.marker.CREATE",
        "/p/f.parquet.marker.CREATE",
        "p//f.parquet.marker.CREATE",
        ".hoodie/f.parquet.marker.CREATE",
        "p/f\n.parquet.marker.CREATE",
        f"p/f_1-2-3_{INSTANT}.parquet.marker.CREATE,p/x.parquet.marker.CREATE",
        "p/f\r.parquet.marker.CREATE",
        "p/f\0.parquet.marker.CREATE",
        "p/\ud800.parquet.marker.CREATE",
        f"{'p' * 5000}/f.parquet.marker.CREATE",
    ],
)
def test_what_is_no_marker_is_refused(service: MarkerService, table: Path, name: str) -> None:
    create(service, table / FOLDER, NAMES[0])
    assert ask(service, "POST", "create", table / FOLDER, markername=name)[0] == 400
    assert service.create_known({"markerdirpath": str(table / FOLDER), "markername": name}) is None
    assert lines(table / FOLDER) == [NAMES[0]]


def test_a_service_that_was_started_anew_knows_what_is_there_and_writes_beside_it(table: Path) -> None:
    folder = table / FOLDER
    first = MarkerService([str(table)], batching=Batching(2, 0))
    create(first, folder, *NAMES[:3])
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    second = MarkerService([str(table)], batching=Batching(2, 0))
    assert create(second, folder, *NAMES[:5]) == [False, False, False, True, True]
    assert before.items() <= {file.name: file.read_bytes() for file in folder.iterdir()}.items()
    assert lines(folder) == sorted(NAMES[:5])


def test_two_services_on_one_table_take_nothing_from_each_other(table: Path) -> None:
    folder = table / FOLDER
    both = [MarkerService([str(table)], batching=Batching(3, 0)) for _ in range(2)]
    for one in both:
        assert ask(one, "GET", "all", folder) == (200, [])
    for turn, name in enumerate(NAMES):
        assert create(both[turn % 2], folder, name) == [True]
    assert lines(folder) == sorted(NAMES)
    for one in both:
        assert ask(one, "GET", "all", folder) == (200, sorted(NAMES))


def test_a_type_that_nobody_knows_is_refused_and_one_that_says_nothing_written_anew(
    service: MarkerService, table: Path
) -> None:
    folder = table / FOLDER
    folder.mkdir(parents=True)
    (folder / "MARKERS.type").write_bytes(b"OTHER")
    assert ask(service, "POST", "create", folder, markername=NAMES[0])[0] == 503
    (folder / "MARKERS.type").write_bytes(b"")
    assert create(service, folder, NAMES[0]) == [True]
    assert (folder / "MARKERS.type").read_bytes() == MARKER_TYPE


def test_half_a_line_is_no_marker_and_nobody_goes_on_with_that_list(service: MarkerService, table: Path) -> None:
    """Whoever wrote it died, and its file was never begun."""
    folder = table / FOLDER
    folder.mkdir(parents=True)
    (folder / "MARKERS.type").write_bytes(MARKER_TYPE)
    torn = f"{NAMES[0]}\n{NAMES[1][:-6]}".encode()
    (folder / "MARKERS0").write_bytes(torn)
    assert create(service, folder, NAMES[0], NAMES[1]) == [False, True]
    assert (folder / "MARKERS0").read_bytes() == torn
    assert ask(service, "GET", "all", folder) == (200, sorted(NAMES[:2]))


def test_lists_without_a_type_count_and_get_one(service: MarkerService, table: Path) -> None:
    folder = table / FOLDER
    folder.mkdir(parents=True)
    (folder / "MARKERS3").write_bytes(f"{NAMES[0]}\n".encode())
    assert create(service, folder, NAMES[0], NAMES[1]) == [False, True]
    assert (folder / "MARKERS.type").read_bytes() == MARKER_TYPE


def folder_on(storage: CountingStorage, env: FakeEnv | None = None, lists: int = 1) -> MarkerFolder:
    return MarkerFolder(storage, INSTANT, Batching(lists, 0), env or FakeEnv(), lambda folder, _: folder.write_batch())


@pytest.mark.parametrize("after", [False, True])
def test_a_batch_that_failed_is_known_no_more_and_takes_no_line_away(table: Path, after: bool) -> None:
    """Also when it was written and only the answer was lost: then the line is there twice in the end."""
    storage = CountingStorage(LocalStorage(str(table)))
    folder = folder_on(storage)
    assert folder.create(NAMES[0]).result(1)
    at = storage.count + 1
    storage = CountingStorage(LocalStorage(str(table)), **{"fail_after" if after else "fail_at": at})
    folder.storage = storage
    storage.calls.extend(Call(number, "", "") for number in range(1, at))
    failed = folder.create(NAMES[1])
    with pytest.raises(Unavailable):
        failed.result(1)
    assert folder.create(NAMES[1]).result(1) is True
    assert folder.create(NAMES[2]).result(1) is True
    assert set(lines(table / FOLDER)) == set(NAMES[:3])
    assert folder.create(NAMES[1]).result(1) is False


def test_on_a_full_disk_no_marker_is_promised(table: Path) -> None:
    storage = CountingStorage(LocalStorage(str(table)))
    folder = folder_on(storage)
    assert folder.create(NAMES[0]).result(1)
    folder.storage = CountingStorage(LocalStorage(str(table)), full_from=1)
    with pytest.raises(Unavailable):
        folder.create(NAMES[1]).result(1)
    folder.storage = storage
    assert folder.create(NAMES[1]).result(1) is True
    assert lines(table / FOLDER) == NAMES[:2]


def test_a_second_request_waits_for_the_bytes_of_the_first(table: Path) -> None:
    due: list[MarkerFolder] = []
    folder = MarkerFolder(LocalStorage(str(table)), INSTANT, Batching(1, 0), FakeEnv(), lambda one, _: due.append(one))
    first, second = folder.create(NAMES[0]), folder.create(NAMES[0])
    assert not first.done()
    assert not second.done()
    assert ask_names(folder) == [NAMES[0]]
    due.pop().write_batch()
    assert (first.result(0), second.result(0)) == (True, False)
    assert len(due) == 1  # whether it is still there


def ask_names(folder: MarkerFolder) -> list[str]:
    return list(folder.names())


def test_who_waits_for_a_folder_that_is_deleted_hears_of_it(table: Path) -> None:
    folder = MarkerFolder(LocalStorage(str(table)), INSTANT, Batching(1, 0), FakeEnv(), lambda one, _: None)
    waiting = folder.create(NAMES[0])
    assert folder.delete() is False
    with pytest.raises(Unavailable):
        waiting.result(0)
    with pytest.raises(Unavailable):
        folder.create(NAMES[1]).result(0)
    folder.write_batch()
    assert not (table / FOLDER).exists()


def test_many_threads_get_each_line_written_once(service: MarkerService, table: Path) -> None:
    names = [f"p/f{number}.parquet.marker.MERGE" for number in range(350)]
    found: list[object] = []

    def work(some: list[str]) -> None:
        for name in some:
            found.extend(create(service, table / FOLDER, name))

    threads = [
        threading.Thread(target=work, args=(names[start % 300 : start % 300 + 100],)) for start in range(0, 600, 50)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert lines(table / FOLDER) == sorted(names)
    assert found.count(True) == len(names)


@pytest.mark.parametrize(("lists", "seconds"), [(0, 1), (1, -1), (5000, 1), (1, 100)])
def test_batches_that_cannot_be_are_refused(lists: int, seconds: float) -> None:
    with pytest.raises(Invalid):
        Batching(lists, seconds)
