"""Making and dropping indexes: beside writers, after a crash, and with errors that say what to do."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hoodie.config import resolve
from hoodie.env import SystemEnv
from hoodie.errors import Conflict, Fenced, Invalid, Unsupported
from hoodie.locks import held_lock, options_to_wait
from hoodie.metadata import load_index_definitions
from hoodie.metadata_writer import (
    bloom_filters_index,
    column_stats_index,
    drop_index,
    expression_index,
    partition_stats_index,
    record_index,
    secondary_index,
)
from hoodie.metadata_writer import build_index as build
from hoodie.metadata_writer.indexes.secondary_index import SecondaryIndex
from hoodie.present import as_json
from hoodie.spec import INDEXING
from hoodie.spec.index_plan import IndexedPartition, encode_index_metadata, encode_index_plan, parse_index_plan
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.testing.counting_storage import Call, CountingStorage, Crash
from hoodie.testing.lake import Lake, row

ON = {"hoodie.metadata.enable": "true"}


def lake_of(version: int = 9, **options: str) -> Lake:
    lake = Lake(version, {**ON, **options})
    lake.upsert(row("a"), row("b", "x"), row("c", "c", part="q"))
    return lake


def entries(lake: Lake, name: str = "secondary_index_v") -> list[str]:
    return sorted(lake.metadata().records(name).column("key").to_pylist())


def test_building_is_an_indexing_on_the_timeline() -> None:
    lake = lake_of()
    built = build(lake.handle(), secondary_index("v", "v"))
    assert (built.name, built.records, built.made_too) == ("secondary_index_v", 3, ("record_index",))
    timeline = timeline_of(lake.handle())
    assert [one.requested for one in timeline.completed() if one.action == INDEXING] == [built.instant]
    assert not timeline.pending()
    assert lake.metadata().definitions["secondary_index_v"].version == "V2"
    assert entries(lake) == ["a$a", "c$c", "x$b"]
    assert as_json(built)["kind"] == "secondary_index"
    assert "secondary_index_v" in built._repr_html_()


def test_writes_that_complete_meanwhile_are_caught_up_with(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_of()
    initial = SecondaryIndex.initial

    def beside_writers(self: SecondaryIndex, context: object) -> object:
        found = list(initial(self, context))  # type: ignore[arg-type]
        monkeypatch.setattr(SecondaryIndex, "initial", initial)
        lake.upsert(row("a", "new", 2), row("n", part="new"))
        lake.write("delete", [row("c", part="q")])
        return found

    monkeypatch.setattr(SecondaryIndex, "initial", beside_writers)
    build(lake.handle(), secondary_index("v", "v"))
    assert entries(lake) == ["a$n", "new$a", "x$b"]
    lake.upsert(row("b", "y", 2))
    assert entries(lake) == ["a$n", "new$a", "y$b"]


def test_a_table_that_was_compacted_meanwhile_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_of()
    often = {"hoodie.metadata.compact.max.delta.commits": "1"}
    initial = SecondaryIndex.initial

    def beside_writers(self: SecondaryIndex, context: object) -> object:
        found = list(initial(self, context))  # type: ignore[arg-type]
        monkeypatch.setattr(SecondaryIndex, "initial", initial)
        lake.write("upsert", [row("a", "new", 2)], often)
        lake.write("upsert", [row("n", part="new")], often)
        return found

    monkeypatch.setattr(SecondaryIndex, "initial", beside_writers)
    build(lake.handle(), secondary_index("v", "v"))
    assert entries(lake) == ["a$n", "c$c", "new$a", "x$b"]


@pytest.mark.deep
@pytest.mark.sampled(3)
def test_a_build_that_died_at_any_call_can_be_repeated(version: int) -> None:
    kind = record_index()
    total = _calls_of(lake_of(version), kind)
    for last in range(1, total, 3):
        lake = lake_of(version)
        with suppress(Crash):  # names differ from run to run, and so may the number of calls
            build(_dying_at(lake, last), kind)
        assert lake.values() == {"a": "a", "b": "x", "c": "c"}
        lake.upsert(row("a", "y", 2), row("n", part="new"))
        if "record_index" not in lake.handle().config.metadata_partitions:
            build(lake.handle(), kind)
        lake.upsert(row("m", part="q"))
        found = lake.metadata().locate(["a", "b", "c", "n", "m", "z"])
        assert sorted(found.column("record_key").to_pylist()) == ["a", "b", "c", "m", "n"], last
        pending = [one for one in timeline_of(lake.handle()).pending() if one.action == INDEXING]
        assert not pending, last


@pytest.mark.parametrize("how", ["restore", "rebuild"])
def test_a_build_that_died_ends_where_its_index_is_made_anew(version: int, how: str) -> None:
    lake = lake_of(version)
    to = lake.table.timeline().completed_writes()[-1].requested
    lake.upsert(row("a", "undone", 2))

    def die_at_its_end(call: Call) -> None:
        if call.op == "create" and call.path.endswith(".indexing"):
            raise Crash("at its end")

    end = CountingStorage(lake.storage, on_call=die_at_its_end)
    with pytest.raises(Crash):
        build(load_handle(end, SystemEnv()), bloom_filters_index())
    assert [one.action for one in lake.table.timeline().pending()] == [INDEXING]
    if how == "restore":
        lake.table.services.restore(to)
    else:
        lake.table.indexes.rebuild()
    lake.upsert(row("b", "y", 3))
    assert lake.table.timeline().pending() == ()
    is_made_anew = (version, how) != (6, "restore")  # there the next write makes what its options ask for
    assert ("bloom_filters" in lake.handle().config.metadata_partitions) == is_made_anew
    lake.ensure_sound()


def test_a_build_whose_index_is_made_anew_meanwhile_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_of()
    initial = SecondaryIndex.initial

    def beside_a_repair(self: SecondaryIndex, context: object) -> object:
        found = list(initial(self, context))  # type: ignore[arg-type]
        monkeypatch.setattr(SecondaryIndex, "initial", initial)
        lake.table.indexes.rebuild()
        lake.upsert(row("a", "new", 2))
        return found

    monkeypatch.setattr(SecondaryIndex, "initial", beside_a_repair)
    with pytest.raises(Fenced, match="secondary_index_v was given up meanwhile"):
        build(lake.handle(), secondary_index("v", "v"))
    assert entries(lake) == ["c$c", "new$a", "x$b"]
    assert lake.table.timeline().pending() == ()
    lake.ensure_sound()


def test_a_build_that_does_not_see_its_own_groups_says_so_and_can_be_repeated(version: int) -> None:
    """A storage whose listings lag from the second group on: keys must not be spread over fewer groups."""
    counted = CountingStorage(lake_of(version).storage)
    build(load_handle(counted, SystemEnv()), record_index())
    groups = [call.n for call in counted.calls if call.op == "put" and "/.record-index-" in call.path]
    lake = lake_of(version)
    with pytest.raises(Fenced):
        build(load_handle(CountingStorage(lake.storage, stale_from=groups[1]), SystemEnv()), record_index())
    build(lake.handle(), record_index())
    assert sorted(lake.metadata().locate(["a", "b", "c", "z"]).column("record_key").to_pylist()) == ["a", "b", "c"]


def test_dropping_takes_dependents_along_and_forgets_their_definitions() -> None:
    lake = lake_of()
    build(lake.handle(), secondary_index("v", "v"))
    assert drop_index(lake.handle(), "record_index") == ("record_index", "secondary_index_v")
    handle = lake.handle()
    assert not {"record_index", "secondary_index_v"} & set(handle.config.metadata_partitions)
    assert set(load_index_definitions(handle.storage, handle.config)) == {"column_stats"}
    lake.upsert(row("a", "y", 2))
    assert lake.values()["a"] == "y"


def test_an_index_is_dropped_by_the_name_it_was_given() -> None:
    lake = lake_of()
    build(lake.handle(), expression_index("up", "v", "upper"))
    assert drop_index(lake.handle(), "up") == ("expr_index_up",)
    with pytest.raises(Invalid, match="no index 'up'"):
        drop_index(lake.handle(), "up")
    with pytest.raises(Invalid, match="metadata table itself"):
        drop_index(lake.handle(), "files")


def test_what_cannot_be_indexed_is_said_before_anything_is_written() -> None:
    lake = lake_of()
    before = lake.files()
    for definition, error, words in (
        (secondary_index("x", "nowhere"), Unsupported, "nowhere"),
        (expression_index("x", "nowhere", "upper"), Invalid, "nowhere"),
        (column_stats_index("v"), Invalid, "already"),
    ):
        with pytest.raises(error, match=words):
            build(lake.handle(), definition)
    with pytest.raises(Unsupported, match="soundex"):
        expression_index("x", "v", "soundex")
    with pytest.raises(Invalid, match="column_stats or bloom_filters"):
        expression_index("x", "v", "upper", using="other")
    assert lake.files() == before


def test_version_6_refuses_what_its_readers_do_not_know() -> None:
    lake = lake_of(6)
    for definition in (secondary_index("v", "v"), partition_stats_index()):
        with pytest.raises(Invalid, match="version 6"):
            build(lake.handle(), definition)
    with pytest.raises(Unsupported, match="whole table"):
        build(lake.handle(), record_index(partitioned=True))


def test_another_writer_that_holds_the_table_is_a_conflict() -> None:
    lake = lake_of()
    with held_lock(lake.storage, "test"), pytest.raises(Conflict):
        build(lake.handle(), record_index(), config=resolve(options_to_wait(0)))


def test_options_switch_indexes_on_and_off(version: int) -> None:
    lake = lake_of(version)
    lake.write("upsert", [row("a", "x", 2)], {"hoodie.metadata.record.index.enable": "true"})
    assert "record_index" in lake.metadata().partitions
    lake.write("upsert", [row("a", "y", 2)], {"hoodie.metadata.record.index.enable": "false"})
    assert "record_index" not in lake.metadata().partitions
    lake.write("upsert", [row("a", "z", 3)], {"hoodie.metadata.index.column.stats.enable": "false"})
    assert lake.metadata().partitions == ("files",)


def test_indexes_stay_where_options_forbid_to_drop_them(version: int) -> None:
    lake = lake_of(version, **{"hoodie.metadata.record.index.enable": "true"})
    had = lake.metadata().partitions
    off = {"hoodie.metadata.record.index.enable": "false", "hoodie.metadata.index.column.stats.enable": "false"}
    lake.write("upsert", [row("n", part="q")], {**off, "hoodie.metadata.auto.delete.partitions": "false"})
    assert lake.metadata().partitions == had
    assert lake.metadata().locate(["n"]).num_rows == 1
    lake.write("upsert", [row("n", "y", 2, part="q")], off)
    assert lake.metadata().partitions == ("files",)


@pytest.mark.parametrize("auto_delete", [None, "true", "false"])
def test_indexes_that_options_do_not_name_stay(version: int, auto_delete: str | None) -> None:
    lake = lake_of(version, **{"hoodie.metadata.record.index.enable": "true"})
    had = lake.metadata().partitions
    assert "record_index" in had
    plain = Lake(version, {"hoodie.metadata.auto.delete.partitions": auto_delete}, lake.uri)
    plain.upsert(row("a", "y", 2), row("n", part="q"))
    assert plain.metadata().partitions == had
    found = plain.metadata().locate(["a", "n", "z"]).column("record_key").to_pylist()
    assert sorted(found) == ["a", "n"]


def test_other_columns_make_the_statistics_anew() -> None:
    lake = lake_of()
    columns = {"hoodie.metadata.index.column.stats.column.list": "v,ts"}
    lake.write("upsert", [row("a", "y", 2)], columns)
    metadata = lake.metadata()
    assert metadata.definitions["column_stats"].source_fields[3:] == ("v", "ts")
    assert metadata.column_stats("id").num_rows == 0
    assert metadata.column_stats("v").num_rows == 3
    lake.upsert(row("a", "z", 3))
    assert lake.metadata().column_stats("v").num_rows == 4


@pytest.mark.parametrize("generation", ["0.15", "1.x"])
def test_plans_are_read_as_they_were_written(generation: str) -> None:
    partitions = (IndexedPartition("record_index", "20240101000000000"), IndexedPartition("x", "1"))
    for encode in (encode_index_plan, encode_index_metadata):
        assert parse_index_plan(encode(partitions, generation), "p") == partitions  # type: ignore[arg-type]


def _dying_at(lake: Lake, call: int) -> TableHandle:
    return replace(lake.handle(), storage=CountingStorage(lake.storage, crash_at=call))


def _calls_of(lake: Lake, kind: object) -> int:
    storage = CountingStorage(lake.storage)
    build(replace(lake.handle(), storage=storage), kind)  # type: ignore[arg-type]
    return len(storage.calls)
