"""Every object that the real timeline server wrote is understood, and written the same again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hoodie.errors import Unavailable
from hoodie.remote.files_json import (
    base_file_json,
    groups_json,
    parse_base_file,
    parse_group,
    parse_log_file,
    parse_slice,
    slice_json,
)
from hoodie.remote.instants_json import instant_json, parse_instant, parse_timeline, timeline_json
from hoodie.remote.json_values import Json
from hoodie.remote.plans_json import clustering_json, compaction_json, parse_clustering, parse_compaction
from hoodie.spec import Instant, State
from hoodie.testing.recorded_answers import Recorded, load_recorded, recorded_names

FOLDER = Path(__file__).parents[2] / "golden" / "timeline_server"
NAMES = recorded_names(FOLDER)


def recorded(name: str) -> Iterator[Recorded]:
    return (one for one in load_recorded(FOLDER, name) if one.status == 200)


def written(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


def without_status(value: Json) -> Json:
    """The same with each file status null, as views in RocksDB write it, and paths without a scheme."""
    if isinstance(value, list):
        return [without_status(one) for one in value]
    if not isinstance(value, dict):
        return value
    plain = {name: None if name == "fileStatus" else without_status(one) for name, one in value.items()}
    return {name: one.removeprefix("file:") if isinstance(one, str) else one for name, one in plain.items()}


def kinds(name: str, *prefixes: str) -> Iterator[Json]:
    """Elements of the answers to paths that begin so."""
    for one in recorded(name):
        if one.path.startswith(prefixes):
            many = one.answer.values() if isinstance(one.answer, dict) else [one.answer]
            yield from (element for some in many for element in some)


def test_answers_about_many_kinds_of_tables_are_recorded() -> None:
    assert len(NAMES) >= 20
    assert {name.partition("/")[0] for name in NAMES} == {"0.15.0", "1.2.0"}


@pytest.mark.parametrize("name", NAMES)
def test_base_files_and_slices_are_written_as_they_were_read(name: str) -> None:
    count = 0
    for value in kinds(name, "datafile", "basefiles"):
        partition = partition_of(value["fullPath"])
        assert written(base_file_json(parse_base_file(value, partition), "{base}")) == written(without_status(value))
        count += 1
    for value in kinds(name, "slice"):
        assert written(slice_json(parse_slice(value), "{base}")) == written(without_status(value))
        count += 1
    assert count


def partition_of(path: str) -> str:
    return path.removeprefix("file:").removeprefix("{base}").strip("/").rpartition("/")[0]


@pytest.mark.parametrize("name", NAMES)
def test_file_groups_and_timelines_are_written_as_they_were_read(name: str) -> None:
    for one in recorded(name):
        if one.path.startswith("filegroups"):
            timeline = parse_timeline(one.answer[0]["timeline"]) if one.answer else ()
            again = groups_json([parse_group(value) for value in one.answer], "{base}", timeline)
            assert written(again) == written(without_status(one.answer))
        if one.path == "timeline/instants/all":
            assert written(timeline_json(parse_timeline(one.answer))) == written(one.answer)
        if one.path == "timeline/instant/last":
            assert [instant_json(parse_instant(value)) for value in one.answer] == one.answer


def test_pending_plans_are_written_as_they_were_read() -> None:
    seen = set()
    for name in NAMES:
        for value in kinds(name, "compactions"):
            requested, operation = parse_compaction(value)
            again = compaction_json(operation, Instant(requested, "compaction", State.REQUESTED))
            assert written(again) == written(value)
            seen.add("compaction")
        for value in kinds(name, "clustering"):
            group, instant = parse_clustering(value)
            assert written(clustering_json(group, instant)) == written(value)
            seen.add(instant.action)
    assert seen == {"compaction", "clustering", "replacecommit"}


def test_a_file_status_counts_where_there_is_one() -> None:
    value = {
        "fileStatus": {"path": {"uri": "file:///t/p/f-0_0-1-2_20260101000000000.parquet"}, "length": 7},
        "fullPath": "/other/g-0_0-1-2_20260101000000000.parquet",
        "fileLen": 8,
    }
    file = parse_base_file(value, "p")
    assert (file.path, file.size_bytes) == ("p/f-0_0-1-2_20260101000000000.parquet", 7)


def test_an_instant_of_a_release_before_1_0_has_its_time_in_ts() -> None:
    value = {"action": "commit", "ts": "20260101000000000", "state": "COMPLETED"}
    assert parse_instant(value) == Instant("20260101000000000", "commit", State.COMPLETED)


def test_log_files_come_newest_first_and_are_held_oldest_first() -> None:
    name = "1.2.0/mor_part"
    many = [value for value in kinds(name, "slices/all") if len(value["logFiles"]) > 1]
    for value in many:
        assert [log.path for log in parse_slice(value).logs] == [
            log["path"].removeprefix("{base}/") for log in reversed(value["logFiles"])
        ]
    assert many


BROKEN: list[tuple[Callable[[Json], object], Json]] = [
    (parse_instant, {"action": "commit", "ts": "1", "state": "DONE"}),
    (parse_instant, {"action": "commit", "state": "COMPLETED"}),
    (parse_instant, []),
    (parse_timeline, {"instants": {}}),
    (parse_slice, {"partition": "p", "fileId": "f", "baseInstant": "1", "logFiles": None}),
    (parse_slice, {"partition": "p", "fileId": "f", "baseInstant": 1, "logFiles": []}),
    (lambda value: parse_base_file(value, "p"), {"fullPath": "/t/p/.hoodie_partition_metadata", "fileLen": 1}),
    (lambda value: parse_base_file(value, "p"), {"fullPath": "/t/p/f_1-2-3_4.parquet", "fileLen": True}),
    (lambda value: parse_log_file(value, "p"), {"path": "/t/p/f_1-2-3_4.parquet", "len": 1}),
    (parse_group, {"partition": "p", "fileId": "f", "slices": "none"}),
    (parse_compaction, {"partition": "p", "id": "f", "deltaFiles": [1], "compactionInstant": "1"}),
    (parse_compaction, {"partition": "p", "id": "f", "deltaFiles": [], "metrics": {"a": "b"}, "compactionInstant": ""}),
    (parse_clustering, {"partition": "p", "id": "f", "instantTime": "1", "instantAction": "x", "instantState": ""}),
]


@pytest.mark.parametrize(("parse", "value"), BROKEN, ids=range(len(BROKEN)))
def test_an_object_that_is_none_is_an_answer_that_cannot_be_used(parse: Callable[[Json], object], value: Json) -> None:
    with pytest.raises(Unavailable, match="cannot be used"):
        parse(value)


def test_a_group_has_slices_of_its_partition_alone() -> None:
    part: Json = {"baseFile": None, "logFiles": [], "partition": "q", "fileId": "f", "baseInstant": "1"}
    with pytest.raises(Unavailable, match="has a slice of 'q'"):
        parse_group({"partition": "p", "fileId": "f", "slices": [part]})


def test_long_names_are_shown_in_part() -> None:
    with pytest.raises(Unavailable) as error:
        parse_base_file({"fullPath": "/t/p/" + "x" * 100_000, "fileLen": 1}, "p")
    assert len(str(error.value)) < 300


def test_a_slice_without_files_is_one() -> None:
    empty = parse_slice({"baseFile": None, "logFiles": [], "partition": "p", "fileId": "f", "baseInstant": "1"})
    assert empty.is_empty
    assert empty._replace(partition="q").group_id == ("q", "f")
