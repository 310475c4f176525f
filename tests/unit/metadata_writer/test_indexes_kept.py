"""Indexes that every write keeps say what indexes made anew from the same files say."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.metadata import load_index_definitions
from hoodie.metadata_writer import build_index
from hoodie.testing.every_index import every_index
from hoodie.testing.index_records import ensure_true
from hoodie.testing.lake import Lake, row

pytestmark = [pytest.mark.deep, pytest.mark.sampled(4)]

ENGINE = LocalEngine(1)
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


def lake_of(version: int, kind: str, *, partitioned: bool = False) -> Lake:
    lake = Lake(version, {"hoodie.metadata.enable": "true", "hoodie.datasource.write.table.type": kind})
    lake.upsert(row("a"), row("b", None), row("c", "c", part="q"))
    for index in every_index(version, partitioned=partitioned):
        build_index(lake.handle(), index, ENGINE, resolve(lake.options))
    return lake


STEPS: dict[str, Callable[[Lake], object]] = {
    "upsert": lambda lake: lake.upsert(row("a", "x", 2), row("c", None, 2, "q"), row("n", part="new")),
    "insert": lambda lake: lake.write("insert", [row("n", "é$", part="q")]),
    "bulk_insert": lambda lake: lake.write("bulk_insert", [row("n", part="new"), row("m", part="p")]),
    "delete": lambda lake: lake.write("delete", [row("a"), row("c", part="q")]),
    "insert_overwrite": lambda lake: lake.write("insert_overwrite", [row("n", part="q")]),
    "insert_overwrite_table": lambda lake: lake.write("insert_overwrite_table", [row("a", "new", part="new")]),
    "delete_partition": lambda lake: lake.write("delete_partition", [row("c", part="q")]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STEPS)
def test_indexes_are_those_of_the_files_after_every_operation(version: int, name: str, kind: str) -> None:
    lake = lake_of(version, kind)
    ensure_true(lake)
    STEPS[name](lake)
    ensure_true(lake)
    lake.upsert(row("a", "y", 3), row("z", part="z"))
    ensure_true(lake)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_is_deleted_and_comes_back_is_found_again(version: int, kind: str) -> None:
    lake = lake_of(version, kind)
    lake.write("delete", [row("a")])
    assert lake.metadata().locate(["a"]).num_rows == 0
    lake.upsert(row("a", "back", 9))
    ensure_true(lake)
    assert lake.metadata().locate(["a"]).num_rows == 1


@pytest.mark.parametrize("version", [9])
@pytest.mark.parametrize("kind", KINDS)
def test_a_partitioned_record_index_gets_groups_for_new_partitions(version: int, kind: str) -> None:
    lake = lake_of(version, kind, partitioned=True)
    lake.upsert(row("a", part="x_y/z"), row("n", part="q"))
    ensure_true(lake)
    found = lake.metadata().locate(["a"], ["x_y/z"])
    assert found.column("partition").to_pylist() == ["x_y/z"]
    assert lake.metadata().locate(["a"]).num_rows == 2


def test_a_secondary_index_is_forgotten_with_the_record_index_it_needs() -> None:
    lake = lake_of(9, "MERGE_ON_READ")
    assert "secondary_index_v" in load_index_definitions(lake.storage, lake.handle().config)
    lake.upsert(row("a", "x", 2), **{"hoodie__metadata__record__index__enable": "false"})
    known = load_index_definitions(lake.storage, lake.handle().config)
    assert "secondary_index_v" not in known
    assert {"expr_index_up", "expr_index_len", "column_stats"} <= known.keys()
    ensure_true(lake)


def test_a_new_column_is_indexed_from_its_first_file_on() -> None:
    lake = lake_of(9, "COPY_ON_WRITE")
    more = pa.schema([*lake.schema, ("n", pa.int64())])
    wide = Lake(9, lake.options, lake.uri, more)
    wide.upsert(row("b", "w", 5, n=7))
    assert lake.metadata().definitions["column_stats"].source_fields[-1] == "n"
    assert lake.metadata().column_stats("n").num_rows == 1
    ensure_true(lake)


@pytest.mark.parametrize("kind", KINDS)
def test_a_partitioned_record_index_of_a_new_table_begins_without_groups(kind: str) -> None:
    options = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.level.index.enable": "true"}
    lake = Lake(9, {**options, "hoodie.datasource.write.table.type": kind})
    lake.upsert(row("a"), row("b", part="q"))
    lake.write("delete_partition", [row("b", part="q")])
    lake.upsert(row("a", "x", 2), row("c", part="new"))
    ensure_true(lake)
    assert sorted(lake.metadata().locate(["a", "b", "c"]).column("record_key").to_pylist()) == ["a", "c"]
