"""Early detection of conflicts by a timeline service: at once among its own writers, now and then for others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra `server`")

from hoodie.errors import Invalid, Unavailable
from hoodie.layout.opening import options_for_others
from hoodie.remote.connection import MARKER
from hoodie.server import Answer, Service
from hoodie.server.marker_conflicts import Detection, WatchedTable
from hoodie.server.marker_folder import Batching
from hoodie.server.marker_service import MarkerService, answered
from hoodie.spec import MarkerKind
from hoodie.storage import Storage
from hoodie.testing.interleaved import run_in_order, writer
from hoodie.testing.lake import Lake, row
from hoodie.testing.running_server import running_server
from hoodie.timeline import create_requested, to_inflight
from hoodie.timeline.markers import DirectMarkers
from hoodie.transaction import Committed, EarlyConflict
from hoodie.transaction.early_detection import ENABLE
from hoodie.transaction.heartbeat import heartbeat_path
from hoodie.transaction.lookout import Lookout, writes_with_markers

OLDER, OWN, NEWER = "20990101000000000", "20990101000000001", "20990101000000002"
FILE = "f1-0_1-2-3"
ASYNC = "org.apache.hudi.timeline.service.handlers.marker.AsyncTimelineServerBasedDetectionStrategy"


@pytest.fixture
def lake(tmp_path: Path, version: int) -> Lake:
    made = Lake(version, {"hoodie.metadata.enable": "false"}, uri=str(tmp_path / "lake"))
    made.upsert(row("a"), row("b", part="q"))
    return made


@pytest.fixture
def serving(lake: Lake) -> Iterator[Callable[..., MarkerService]]:
    made: list[MarkerService] = []

    def serve(detection: Detection | None = None) -> MarkerService:
        made.append(MarkerService([lake.uri], batching=Batching(2, 0), detection=detection))
        return made[-1]

    yield serve
    for one in made:
        one.close()


def begun(lake: Lake, instant: str, *, alive: bool = True) -> None:
    """A write of another that has begun."""
    profile = lake.handle().profile
    requested = create_requested(lake.storage, profile, instant, "commit", b"")
    to_inflight(lake.storage, profile, requested, b"", is_new=True)
    if alive:
        lake.storage.put(heartbeat_path(instant), b"")


def create(service: MarkerService, lake: Lake, instant: str, file: str = FILE, **more: str) -> bool:
    """What the service answers to a writer that wants to hear of others, as Hudi's asks it."""
    parameters = {
        "markerdirpath": f"{lake.uri}/.hoodie/.temp/{instant}",
        "markername": f"p/{file}_{instant}.parquet.marker.MERGE",
        "basepath": lake.uri,
        **more,
    }
    found = service.create_known(parameters) or service.answer("POST", f"{MARKER}create", parameters)
    if not isinstance(found, Answer):
        found.exception(10)
        found = answered(found)
    assert found.status == 200, found.body
    return found.body == b"true"


def test_of_two_writers_of_one_service_the_later_hears_of_it_at_once(
    lake: Lake, serving: Callable[..., MarkerService]
) -> None:
    service = serving(Detection(period_s=1000))
    begun(lake, OLDER)
    begun(lake, OWN)
    assert create(service, lake, OLDER)
    assert not create(service, lake, OWN)
    assert create(service, lake, OWN, "other-0_1-2-3")
    assert not create(service, lake, OWN), "whoever asks again hears the same"
    names = {path.rpartition("/")[2] for path in lake.files() if f"{OWN}/MARKERS" in path}
    assert names
    text = b"".join(data for path, data in lake.files().items() if f"{OWN}/MARKERS" in path)
    assert FILE.encode() not in text


def test_who_began_earlier_goes_on(lake: Lake, serving: Callable[..., MarkerService]) -> None:
    service = serving()
    begun(lake, OWN)
    begun(lake, NEWER)
    assert create(service, lake, NEWER)
    assert create(service, lake, OWN)


@pytest.mark.parametrize("alive", [True, False])
def test_markers_that_others_wrote_count_while_their_writer_lives(
    lake: Lake, serving: Callable[..., MarkerService], alive: bool
) -> None:
    begun(lake, OLDER, alive=alive)
    DirectMarkers(lake.storage, OLDER).create(f"p/{FILE}_{OLDER}.parquet", MarkerKind.MERGE)
    assert create(serving(), lake, OWN) == (not alive)


def test_what_others_write_meanwhile_is_seen_after_a_period(lake: Lake, serving: Callable[..., MarkerService]) -> None:
    service = serving(Detection(period_s=0.05))
    assert create(service, lake, OWN, "other-0_1-2-3")
    begun(lake, OLDER)
    DirectMarkers(lake.storage, OLDER).create(f"p/{FILE}_{OLDER}.parquet", MarkerKind.MERGE)
    until = time.monotonic() + 20
    number = 0
    while create(service, lake, OWN, FILE.replace("_1-2-3", f"_{number}-2-3")) and time.monotonic() < until:
        time.sleep(0.02)
        number += 1
    assert not create(service, lake, OWN, FILE.replace("_1-2-3", "_99999-2-3"))


def test_a_first_look_that_is_to_come_later_comes_later(lake: Lake, serving: Callable[..., MarkerService]) -> None:
    begun(lake, OLDER)
    DirectMarkers(lake.storage, OLDER).create(f"p/{FILE}_{OLDER}.parquet", MarkerKind.MERGE)
    assert create(serving(Detection(initial_delay_s=1000)), lake, OWN)


def test_who_does_not_want_to_hear_of_others_does_not(lake: Lake, serving: Callable[..., MarkerService]) -> None:
    service = serving()
    begun(lake, OLDER)
    assert create(service, lake, OLDER)
    name = f"p/{FILE}_{OWN}.parquet.marker.MERGE"
    parameters = {"markerdirpath": f"{lake.uri}/.hoodie/.temp/{OWN}", "markername": name}
    found = service.answer("POST", f"{MARKER}create", parameters)
    assert not isinstance(found, Answer)
    assert found.result(10) is True


def test_a_bucket_is_one_group_for_who_says_so(lake: Lake, serving: Callable[..., MarkerService]) -> None:
    service = serving()
    begun(lake, OLDER)
    assert create(service, lake, OLDER, "00000003-aaaa-0_1-2-3")
    assert create(service, lake, OWN, "00000003-bbbb-0_1-2-3")
    assert not create(service, lake, NEWER, "00000003-cccc-0_1-2-3", bybucket="true")


def test_a_look_that_fails_keeps_nobody_from_writing(
    lake: Lake, serving: Callable[..., MarkerService], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service = serving()
    begun(lake, OLDER)
    assert create(service, lake, OLDER)

    def fails(*_: object) -> None:
        raise Unavailable("it is away")

    monkeypatch.setattr(Lookout, "at_work", fails)
    assert create(service, lake, OWN)
    assert any("no look" in one.getMessage() for one in caplog.records)


def test_a_write_that_has_ended_is_in_nobodys_way(lake: Lake, serving: Callable[..., MarkerService]) -> None:
    service = serving(Detection(period_s=1000))
    begun(lake, OLDER)
    assert create(service, lake, OLDER)
    service.answer("POST", f"{MARKER}dir/delete", {"markerdirpath": f"{lake.uri}/.hoodie/.temp/{OLDER}"})
    assert create(service, lake, OWN)


def options(port: int) -> dict[str, str]:
    return {
        ENABLE: "true",
        "hoodie.write.concurrency.early.conflict.detection.strategy": ASYNC,
        "hoodie.write.markers.type": "TIMELINE_SERVER_BASED",
        "hoodie.filesystem.view.type": "REMOTE_FIRST",
        "hoodie.filesystem.view.remote.host": "127.0.0.1",
        "hoodie.filesystem.view.remote.port": str(port),
    }


@pytest.mark.parametrize("server", ["one", "two", "dead"])
def test_writers_by_servers_give_way_and_say_to_whom(
    lake: Lake, serving: Callable[..., MarkerService], server: str
) -> None:
    """Also where each has a server of its own, and where it does not answer."""
    with (
        running_server(Service([lake.uri]), serving()) as first,
        running_server(Service([lake.uri]), serving()) as second,
    ):
        ports = {"one": (first, first), "two": (first, second), "dead": (first, 9)}[server]
        actors = {
            "A": writer(lake, [row("a", "A", 2)], **options(ports[0])),
            "B": writer(lake, [row("a", "B", 2), row("b", "B", 2, "q")], **options(ports[1])),
        }
        ends = run_in_order(tuple("AABBBA"), actors)
    error, winner = ends["B"], ends["A"]
    assert isinstance(error, EarlyConflict), error
    assert isinstance(winner, Committed), winner
    assert error.facts["other"] == winner.instant
    assert error.facts["owner"].operation == "upsert"
    assert error.facts["partitions"] == ("p",)
    assert lake.values() == {"a": "A", "b": "a"}
    assert not [path for path in lake.files() if "/.temp/" in path or "/.heartbeat/" in path]


def test_what_a_server_takes_for_a_conflict_and_is_none_is_written(
    lake: Lake, serving: Callable[..., MarkerService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Hudi's does, which compares names up to their first underscore."""
    service = serving()
    monkeypatch.setattr(service, "create_known", lambda _: None)
    monkeypatch.setattr(service, "_is_taken", lambda *_: True)
    with running_server(Service([lake.uri]), service) as port:
        end = run_in_order(tuple("AAA"), {"A": writer(lake, [row("a", "A", 2)], **options(port))})["A"]
    assert isinstance(end, Committed), end
    assert lake.values() == {"a": "A", "b": "a"}
    assert not [path for path in lake.files() if "/.temp/" in path]


@pytest.mark.parametrize(("delay", "period"), [(-1, 1), (0, 0), (0, 100_000), (100_000, 1)])
def test_looks_that_cannot_be_are_refused(delay: float, period: float) -> None:
    with pytest.raises(Invalid):
        Detection(delay, period)


def test_tables_whose_files_lie_elsewhere_on_the_disk_are_looked_at_too(tmp_path: Path) -> None:
    places = {"hoodie.storage.path": str(tmp_path / "root"), "hoodie.storage.strategy": "bits:4"}
    lake = Lake(9, places, uri=str(tmp_path / "lake"))
    lake.upsert(row("a"))
    begun(lake, OLDER)
    DirectMarkers(lake.storage, OLDER).create(f"p/{FILE}_{OLDER}.parquet", MarkerKind.MERGE)
    begun(lake, OWN)
    service = MarkerService([], batching=Batching(2, 0))
    service.admit(lake.uri, options_for_others(lake.options))
    try:
        assert not create(service, lake, OWN)
    finally:
        service.close()


def test_a_writer_that_asks_while_others_are_listed_is_remembered(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table, group = WatchedTable(lake.handle(), Detection()), ("p", "f1")
    listed = writes_with_markers

    def asked_meanwhile(storage: Storage) -> Iterator[str]:
        found = list(listed(storage))
        assert not table.suspects(OLDER, group)
        return iter(found)

    monkeypatch.setattr("hoodie.server.marker_conflicts.writes_with_markers", asked_meanwhile)
    table.look()
    assert table.suspects(OWN, group)
