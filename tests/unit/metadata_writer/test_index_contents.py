"""`validate` compares what every index says with the rows of the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hoodie.engine import LocalEngine
from hoodie.metadata_writer import build_index, store_index_definitions
from hoodie.metadata_writer.indexes import bloom_filters, column_stats, expression_index, partition_stats
from hoodie.metadata_writer.indexes.record_index import RecordLevelIndex
from hoodie.metadata_writer.indexes.secondary_index import SecondaryIndex
from hoodie.records import BloomOptions
from hoodie.records.bloom import SIMPLE
from hoodie.testing.every_index import every_index
from hoodie.testing.lake import Lake, row

pytestmark = pytest.mark.deep

ENGINE = LocalEngine(1)
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


def lake_of(version: int, kind: str, *, partitioned: bool = False) -> Lake:
    """A table with every index its version can have, and rows written before and after they were made."""
    lake = Lake(version, {"hoodie.metadata.enable": "true", "hoodie.datasource.write.table.type": kind})
    lake.upsert(row("a"), row("b", None), row("c", "c", part="q"))
    for index in every_index(version, partitioned=partitioned):
        build_index(lake.handle(), index, ENGINE)
    lake.upsert(row("a", "z", 2), row("d", "0"), row("e", "e", part="q"))
    return lake


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partitioned", [False, True], ids=["global", "partitioned"])
def test_indexes_that_are_right_have_no_findings(version: int, kind: str, partitioned: bool) -> None:
    if partitioned and version == 6:
        pytest.skip("version 6 has global indexes only")
    lake = lake_of(version, kind, partitioned=partitioned)
    assert lake.table.validate() == []
    lake.write("delete", [row("a"), row("c", part="q")])
    assert lake.table.validate() == []
    lake.upsert(row("a", None, 9), row("n", "n", part="new"))
    assert lake.table.validate() == []
    assert [one for one in lake.table.doctor().concerns if one.severity == "error"] == []


def nothing(*_: Any) -> tuple[()]:
    return ()


def narrow(make: Any) -> Any:
    """Statistics that say of every column that its greatest value is its least."""

    def made(rows: Any, *more: Any, **named: Any) -> pa.Table:
        wrong = [replace(one, range=replace(one.range, high=one.range.low)) for one in rows]
        return make(wrong, *more, **named)

    return made


def emptied(make: Any) -> Any:
    """Filters that hold nothing."""

    def made(filters: Any) -> pa.Table:
        return make([replace(one, kind=SIMPLE, text=BloomOptions(SIMPLE).new_filter().to_text()) for one in filters])

    return made


def lies(patch: pytest.MonkeyPatch, index: str) -> None:
    """Lets writes tell the index nothing, or wrong things."""
    match index:
        case "record_index":
            patch.setattr(RecordLevelIndex, "updated", nothing)
        case "secondary_index_v":
            patch.setattr(SecondaryIndex, "updated", nothing)
        case "column_stats":
            patch.setattr(column_stats, "stats_rows", narrow(column_stats.stats_rows))
        case "partition_stats":
            patch.setattr(partition_stats, "stats_rows", narrow(partition_stats.stats_rows))
        case "bloom_filters":
            patch.setattr(bloom_filters, "filter_rows", emptied(bloom_filters.filter_rows))
        case "expr_index_up":
            patch.setattr(expression_index, "expression_rows", narrow(expression_index.expression_rows))
        case _:
            patch.setattr(expression_index, "filter_rows", emptied(expression_index.filter_rows))


EVERY = ("record_index", "secondary_index_v", "column_stats", "partition_stats", "bloom_filters")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", [*EVERY, "expr_index_up", "expr_index_len"])
def test_an_index_that_does_not_know_of_rows_is_found_and_mended(
    monkeypatch: pytest.MonkeyPatch, kind: str, index: str
) -> None:
    lake = lake_of(9, kind)
    with monkeypatch.context() as patch:
        lies(patch, index)
        lake.upsert(row("a", "far", 3), row("new", "zzz", 3), row("c", "up", 3, part="q"))
        lake.write("bulk_insert", [row("other", "yyyy", 3)])
    found = lake.table.validate()
    assert {one.kind for one in found} == {"index"}
    derived = {"column_stats": {".hoodie/metadata/partition_stats"}}.get(index, set())
    assert {one.path for one in found} - derived == {f".hoodie/metadata/{index}"}
    assert [one.kind for one in lake.table.doctor().concerns if one.severity == "error"] == ["index"] * len(found)
    lake.table.indexes.rebuild()
    assert lake.table.validate() == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", ["record_index", "secondary_index_v"])
def test_an_index_with_entries_that_no_row_has_is_found(monkeypatch: pytest.MonkeyPatch, kind: str, index: str) -> None:
    lake = lake_of(9, kind)
    with monkeypatch.context() as patch:
        lies(patch, index)
        lake.write("delete", [row("a"), row("e", part="q")])
    found = lake.table.validate()
    assert {(one.kind, one.path) for one in found} == {("index", f".hoodie/metadata/{index}")}
    assert all("not there" in one.message or "no row has" in one.message for one in found)


def test_a_key_that_the_index_has_in_another_group_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    moving = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}
    lake = lake_of(9, "COPY_ON_WRITE")
    with monkeypatch.context() as patch:
        lies(patch, "record_index")
        lake.write("upsert", [row("a", "moved", 5, part="q")], moving)
    found = [one.message for one in lake.table.validate() if one.path.endswith("record_index")]
    assert any("in other file groups" in one for one in found)


def test_an_index_of_a_function_that_is_not_known_keeps_no_other_from_being_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = lake_of(9, "COPY_ON_WRITE")
    with monkeypatch.context() as patch:
        lies(patch, "record_index")
        lake.write("insert", [row("new")])
    definitions = lake.metadata().definitions
    strange = replace(definitions["expr_index_up"], function="frobnicate")
    store_index_definitions(lake.handle(), {**definitions, strange.name: strange})
    assert ["record_index" in finding.path for finding in lake.table.validate()] == [True]
