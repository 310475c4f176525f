"""The service answers equal timelines, catches up with newer ones, and never guesses; hostile requests get 4xx."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import hoodie.server.service as module
from hoodie.errors import Invalid
from hoodie.remote.known_timeline import told
from hoodie.server import Answer, Service
from hoodie.server.places import is_below, place_of
from hoodie.server.routes import FILES, ROUTES, VIEW
from hoodie.spec import CLEAN
from hoodie.state.handle import timeline_of
from hoodie.testing.lake import Lake, row
from hoodie.timeline import Timeline


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(uri=str(tmp_path / "lake"))
    made.upsert(row("a", part="p"), row("b", part="q"))
    return made


@pytest.fixture
def service(tmp_path: Path, lake: Lake) -> Service:
    return Service([str(tmp_path)])


def timeline(lake: Lake) -> Timeline:
    return timeline_of(lake.handle())


def ask(service: Service, lake: Lake, path: str, known: Mapping[str, str], **more: str) -> Answer:
    return service.answer("GET", VIEW + path, {"basepath": lake.table.uri, **known, **more})


def slices(answer: Answer) -> list[Any]:
    assert answer.status == 200, answer.body
    return list(json.loads(answer.body))


def test_a_client_ahead_is_followed(service: Service, lake: Lake) -> None:
    path = "slices/partition/latest/"
    (before,) = slices(ask(service, lake, path, told(timeline(lake)), partition="p"))
    made = lake.upsert(row("a", "new", ts=2, part="p"))
    (after,) = slices(ask(service, lake, path, told(timeline(lake)), partition="p"))
    assert (before["fileId"], made.instant) == (after["fileId"], after["baseInstant"])


def test_a_client_behind_is_refused_in_the_words_of_hudi(service: Service, lake: Lake) -> None:
    old = told(timeline(lake))
    lake.upsert(row("a", "new", ts=2, part="p"))
    assert ask(service, lake, "slices/all", told(timeline(lake)), partition="p").status == 200
    refused = ask(service, lake, "slices/all", old, partition="p")
    assert refused.status == 400
    assert refused.body.startswith(b"Last known instant from client was " + old["lastinstantts"].encode())
    assert timeline(lake).instants[-1].requested.encode() in refused.body


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"timelinehash": "0" * 64},
        {"lastinstantts": "99991231235959999"},
        {"lastinstantts": "99991231235959999", "timelinehash": "of the service"},
    ],
    ids=str,
)
def test_other_timelines_are_refused(service: Service, lake: Lake, known: dict[str, str]) -> None:
    if "timelinehash" in known and known["timelinehash"] != "0" * 64:
        known = {**known, "timelinehash": told(timeline(lake))["timelinehash"]}
    assert ask(service, lake, "slices/all", known, partition="p").status == 400


def test_a_clean_that_came_last_is_forgiven_and_nothing_else(service: Service, lake: Lake) -> None:
    for turn in range(3):
        lake.upsert(row("a", f"v{turn}", ts=turn + 2, part="p"))
    before = told(timeline(lake))
    lake.table.services.clean(options={"hoodie.clean.commits.retained": 1})
    assert timeline(lake).instants[-1].action == CLEAN
    assert ask(service, lake, "slices/all", told(timeline(lake)), partition="p").status == 200
    assert ask(service, lake, "slices/all", before, partition="p").status == 200
    lake.upsert(row("z", part="p"))
    assert ask(service, lake, "slices/all", told(timeline(lake)), partition="p").status == 200
    assert ask(service, lake, "slices/all", before, partition="p").status == 400


def test_routes_that_no_hash_covers_look_first(service: Service, lake: Lake) -> None:
    first = json.loads(ask(service, lake, "timeline/instants/all", {}).body)
    lake.upsert(row("c", part="p"))
    assert (
        len(json.loads(ask(service, lake, "timeline/instants/all", {}).body)["instants"]) == len(first["instants"]) + 1
    )


def test_an_upgraded_table_is_opened_anew(tmp_path: Path) -> None:
    lake = Lake(6, uri=str(tmp_path / "old"))
    lake.upsert(row("a", part="p"))
    service = Service([str(tmp_path)])
    assert len(slices(ask(service, lake, "slices/all", told(timeline(lake)), partition="p"))) == 1
    lake.table.services.upgrade()
    assert len(slices(ask(service, lake, "slices/all", told(timeline(lake)), partition="p"))) == 1
    Lake(9, uri=lake.uri).upsert(row("a", "new", ts=2, part="p"))
    assert len(slices(ask(service, lake, "slices/all", told(timeline(lake)), partition="p"))) == 2


def test_damaged_metadata_is_said_and_the_next_table_is_served(service: Service, lake: Lake, tmp_path: Path) -> None:
    other = Lake(uri=str(tmp_path / "other"))
    other.upsert(row("a", part="p"))
    assert ask(service, lake, "slices/all", told(timeline(lake)), partition="p").status == 200
    lake.write("insert_overwrite", [row("b", part="q")])
    newest = max((tmp_path / "lake" / ".hoodie" / "timeline").glob("*.replacecommit"))
    whole = newest.read_bytes()
    newest.write_bytes(b"broken")
    known = told(timeline(lake))
    answer = ask(service, lake, "slices/all", known, partition="p")
    assert answer.status == 500
    assert b"replacecommit" in answer.body
    assert ask(service, other, "slices/all", told(timeline(other)), partition="p").status == 200
    newest.write_bytes(whole)
    assert ask(service, lake, "slices/all", known, partition="p").status == 200


def test_partitions_are_loaded_beforehand_and_forgotten(service: Service, lake: Lake) -> None:
    known, base = told(timeline(lake)), {"basepath": lake.table.uri}
    assert slices(ask(service, lake, "datafiles/all/latest/", known)) == []
    assert service.answer("POST", f"{VIEW}loadpartitions/", {**base, "partitions": '["p"]'}) == Answer(200, b"true")
    assert len(slices(ask(service, lake, "datafiles/all/latest/", known))) == 1
    assert service.answer("POST", f"{VIEW}loadallpartitions/", base) == Answer(200, b"true")
    assert len(slices(ask(service, lake, "datafiles/all/latest/", known))) == 2
    assert service.answer("POST", f"{VIEW}refresh/", base) == Answer(200, b"true")
    assert slices(ask(service, lake, "datafiles/all/latest/", known)) == []


def test_a_bootstrapped_table_is_refused(service: Service, lake: Lake) -> None:
    properties = lake.storage.read(".hoodie/hoodie.properties")
    lake.storage.put(".hoodie/hoodie.properties", properties + b"hoodie.bootstrap.base.path=/elsewhere\n")
    assert ask(service, lake, "slices/all", {}).status == 501


def test_what_is_asked_leaves_no_trace(service: Service, lake: Lake) -> None:
    before = lake.files()
    for path in (*ROUTES, *FILES):
        ask(
            service,
            lake,
            path,
            {"refreshoff": ""},
            partition="p",
            maxinstant="1",
            instant="1",
            instants="1",
            fileid="f",
        )
    assert lake.files() == before


def test_a_root_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="There is no folder"):
        Service([str(tmp_path / "nothing")])


def test_what_is_no_table_takes_the_place_of_none(
    service: Service, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_TABLES", 2)
    known = told(timeline(lake))
    assert len(slices(ask(service, lake, "slices/all", known, partition="p"))) == 1
    for number in range(3):
        assert service.answer("GET", f"{VIEW}slices/all", {"basepath": str(tmp_path / f"no{number}")}).status == 404
    assert len(slices(ask(service, lake, "datafiles/all/latest", known))) == 1  # what is loaded is still there


def test_of_too_many_tables_the_one_nobody_asked_for_goes(
    tmp_path: Path, service: Service, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_TABLES", 1)
    other = Lake(uri=str(tmp_path / "other"))
    other.upsert(row("a", part="p"))
    for table, loaded in ((lake, 1), (other, 1)):
        ask(service, table, "slices/all", told(timeline(table)), partition="p")
        assert len(slices(ask(service, table, "datafiles/all/latest", told(timeline(table))))) == loaded
    assert slices(ask(service, lake, "datafiles/all/latest", told(timeline(lake)))) == []


@pytest.mark.parametrize("path", ["slices/all", "timeline/instants/all"])
def test_a_view_that_was_dropped_does_not_come_back(
    path: str, service: Service, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = told(timeline(lake))
    ask(service, lake, "slices/all", known, partition="p")
    for name in ("_loaded", "_synced"):
        monkeypatch.setattr(service, name, _after_refresh(service, lake, getattr(service, name)))
    assert ask(service, lake, path, known, partition="q").status == 200
    monkeypatch.undo()
    assert slices(ask(service, lake, "datafiles/all/latest/", known)) == []


def _after_refresh(service: Service, lake: Lake, then: Callable[..., object]) -> Callable[..., object]:
    def run(*arguments: object) -> object:
        assert service.answer("POST", f"{VIEW}refresh/", {"basepath": lake.table.uri}).status == 200
        return then(*arguments)

    return run


def test_a_table_that_lost_its_metadata_table_is_listed(service: Service, lake: Lake, tmp_path: Path) -> None:
    known = told(timeline(lake))
    assert len(slices(ask(service, lake, "slices/all", known, partition="p"))) == 1
    shutil.rmtree(tmp_path / "lake" / ".hoodie" / "metadata")
    assert ask(service, lake, "slices/all", known, partition="q").status == 500
    properties = tmp_path / "lake" / ".hoodie" / "hoodie.properties"
    lines = properties.read_text().splitlines(keepends=True)
    gone = ("hoodie.table.metadata.partitions=", "hoodie.table.checksum=")
    properties.write_text("".join(line for line in lines if not line.startswith(gone)))
    assert len(slices(ask(service, lake, "slices/all", known, partition="q"))) == 1


def test_names_of_no_partition_are_told_to_nobody(service: Service, lake: Lake) -> None:
    known = told(timeline(lake))
    assert slices(ask(service, lake, "slices/all", known, partition="ghost")) == []
    answer = ask(service, lake, "slices/all/beforeoron/latest/", known, maxinstant="9" * 17)
    assert set(json.loads(answer.body)) == {"p", "q"}


def test_what_nobody_foresaw_is_an_answer_and_tells_nothing(
    service: Service, lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(module, "open_view", fail)
    answer = ask(service, lake, "slices/all", {}, partition="p")
    assert (answer.status, b"secret" in answer.body) == (500, False)
    assert "a secret" in caplog.text


HOSTILE = {
    "no base path": ("GET", "slices/all", {"basepath": ""}, 400),
    "a relative base path": ("GET", "slices/all", {"basepath": "lake"}, 400),
    "a way up": ("GET", "slices/all", {"basepath": "{root}/lake/../../etc"}, 400),
    "elsewhere": ("GET", "slices/all", {"basepath": "/etc"}, 403),
    "a neighbour of the root": ("GET", "slices/all", {"basepath": "{root}-other/lake"}, 403),
    "another storage": ("GET", "slices/all", {"basepath": "s3://bucket/lake"}, 403),
    "a server to call": ("GET", "slices/all", {"basepath": "http://169.254.169.254/latest"}, 403),
    "a link that leads out": ("GET", "slices/all", {"basepath": "{root}/link"}, 403),
    "no table": ("GET", "slices/all", {"basepath": "{root}/nothing"}, 404),
    "a partition that leads out": ("GET", "slices/all", {"partition": "../other"}, 400),
    "Hudi's own folder": ("GET", "slices/all", {"partition": ".hoodie/metadata"}, 400),
    "a partition from the root": ("GET", "slices/all", {"partition": "/etc"}, 400),
    "a null byte": ("GET", "slices/all", {"partition": "p\0"}, 400),
    "a file id that is a path": ("GET", "slices/file/latest/", {"fileid": "../../f"}, 400),
    "an instant that is a path": ("GET", "datafiles/beforeoron/latest/", {"maxinstant": "../1"}, 400),
    "an instant of another alphabet": ("GET", "datafiles/beforeoron/latest/", {"maxinstant": "١٢٣"}, 400),
    "instants that are none": ("GET", "slices/range/latest/", {"instants": "1,x"}, 400),
    "a missing parameter": ("GET", "datafile/on/latest/", {"fileid": "f"}, 400),
    "a very long value": ("GET", "slices/all", {"partition": "p" * 5000}, 400),
    "partitions that are no list": ("POST", "loadpartitions/", {"partitions": '{"a":1}'}, 400),
    "none of many partitions": ("GET", "files/chosen/", {}, 400),
    "some that lead out": ("GET", "files/chosen/", {"partitions": '["p", "../x"]'}, 400),
    "partitions that lead out": ("POST", "loadpartitions/", {"partitions": '["../x"]'}, 400),
    "half of a character": ("POST", "loadpartitions/", {"partitions": '["\\ud800"]'}, 400),
    "half of a character in a question": ("GET", "slices/all", {"partition": "\ud800"}, 400),
    "a very long partition": ("POST", "loadpartitions/", {"partitions": '["' + "a" * 5000 + '"]'}, 400),
    "half of a character in a base path": ("GET", "slices/all", {"basepath": "{root}/\ud800"}, 400),
    "a very long base path": ("GET", "slices/all", {"basepath": "{root}/" + "a" * 300}, 404),
    "very deep partitions": ("POST", "loadpartitions/", {"partitions": "[" * 100_000}, 400),
    "a command asked as a question": ("GET", "refresh/", {}, 404),
    "a question asked as a command": ("POST", "slices/all", {}, 404),
    "another method": ("DELETE", "slices/all", {}, 404),
    "a path that leads out": ("GET", "../../etc/passwd", {}, 404),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_requests_are_refused_and_leave_no_trace(
    case: str, service: Service, lake: Lake, tmp_path: Path
) -> None:
    (tmp_path.parent / "outside").mkdir(exist_ok=True)
    os.symlink(tmp_path.parent / "outside", tmp_path / "link")
    before = sorted(str(path) for path in tmp_path.parent.rglob("*"))
    method, path, given, status = HOSTILE[case]
    parameters = {
        name: value.replace("{root}", str(tmp_path)) for name, value in {"basepath": lake.table.uri, **given}.items()
    }
    answer = service.answer(method, VIEW + path, {**parameters, "refreshoff": ""})
    assert answer.status == status, answer.body
    assert sorted(str(path) for path in tmp_path.parent.rglob("*")) == before


def test_spellings_of_one_place_are_one(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert {place_of(text) for text in (folder, f"{folder}/", f"file:{folder}", f"file://{folder}")} == {
        os.path.realpath(folder)
    }
    assert place_of("s3a://lake/t/") == place_of("s3://lake/t") == "s3://lake/t"
    assert is_below("/a/b", ["/a"])
    assert is_below("/a", ["/"])
    assert not is_below("/ab", ["/a"])


@pytest.mark.parametrize("version", [6, 8])
def test_who_waited_for_a_look_is_not_given_what_a_writer_saw_before_it(tmp_path: Path, version: int) -> None:
    lake = Lake(version, uri=str(tmp_path / "lake"))
    lake.upsert(row("a"))
    handle, before = lake.handle(), timeline(lake)
    service = Service([str(tmp_path)])
    lake.upsert(row("a", "b", 2))
    ask(service, lake, "slices/partition/latest/", told(timeline(lake)), partition="p")
    service.known_at(handle, before, None, 1.0)
    (table,) = service._tables.values()
    waiting_since_s = 0.0
    assert service._synced(table, waiting_since_s).timeline == timeline(lake)
