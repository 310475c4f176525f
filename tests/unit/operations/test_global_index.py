"""Keys that are unique in the table: rows that move between partitions, late rows, deletes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie import Table
from hoodie.testing.lake import ROWS, Lake, row, table_of
from hoodie.timeline import store_table_config

INDEXES = ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"]
COLUMNS = ("id", "part", "_hoodie_partition_path", "v")
PAYLOAD = {6: {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}}


@pytest.fixture(params=INDEXES)
def index(request: pytest.FixtureRequest) -> str:
    return request.param


def lake_with(version: int, index: str, move: bool, **more: str) -> Lake:
    key = {"GLOBAL_SIMPLE": "hoodie.simple.index", "GLOBAL_BLOOM": "hoodie.bloom.index"}[index]
    options = {"hoodie.index.type": index, f"{key}.update.partition.path": move, **PAYLOAD.get(version, {}), **more}
    return Lake(version, options)


def test_row_with_a_new_partition_moves(version: int, index: str) -> None:
    lake = lake_with(version, index, move=True)
    lake.upsert(row("a"), row("b"), row("c", part="q"))
    done = lake.upsert(row("a", "a2", 2, "q"), row("c", "c2", 2, "q"), row("d", part="r"))
    assert lake.rows(COLUMNS) == [
        ("a", "q", "q", "a2"),
        ("b", "p", "p", "a"),
        ("c", "q", "q", "c2"),
        ("d", "r", "r", "a"),
    ]
    assert (done.deletes, done.updates, done.inserts) == (1, 1, 2)
    lake.ensure_sound()


def test_row_stays_in_its_partition_when_moving_is_off(version: int, index: str) -> None:
    lake = lake_with(version, index, move=False)
    lake.upsert(row("a"))
    lake.upsert(row("a", "a2", 2, "q"))
    # The column in the file says q; queries take the partition column from the path where there is a folder for it.
    assert [(key, path, v) for key, _, path, v in lake.rows(COLUMNS)] == [("a", "p", "a2")]
    lake.upsert(row("a", "a3", 3, "q"))
    assert lake.values() == {"a": "a3"}
    assert {partition for partition, _ in lake.live()} == {"p"}
    lake.ensure_sound()


@pytest.mark.parametrize("move", [True, False])
def test_late_row_in_another_partition_loses(version: int, index: str, move: bool) -> None:
    lake = lake_with(version, index, move=move)
    lake.upsert(row("a", ts=5), row("b", ts=5))
    lake.upsert(row("a", "late", 4, "q"), row("b", "newer", 6, "q"))
    expected = [("a", "p", "a"), ("b", "q" if move else "p", "newer")]
    assert [(key, path, v) for key, _, path, v in lake.rows(COLUMNS)] == expected
    lake.ensure_sound()


def test_moving_row_wins_by_time_where_time_decides(index: str) -> None:
    lake = lake_with(9, index, move=True, **{"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"})
    lake.upsert(row("a", ts=5))
    lake.upsert(row("a", "later", 1, "q"))
    assert lake.rows(COLUMNS) == [("a", "q", "q", "later")]


@pytest.mark.parametrize("move", [True, False])
def test_delete_finds_the_key_in_any_partition(version: int, index: str, move: bool) -> None:
    lake = lake_with(version, index, move=move)
    lake.upsert(row("a"), row("b", part="q"))
    done = lake.write(
        "delete", table_of([row("a", part="elsewhere"), row("b", part="elsewhere")]).select(["id", "part"])
    )
    assert (done.deletes, lake.values()) == (2, {})
    lake.ensure_sound()


@pytest.mark.parametrize("move", [True, False])
def test_row_marked_as_deleted_deletes_in_any_partition(version: int, index: str, move: bool) -> None:
    lake = lake_with(version, index, move=move)
    lake.schema = ROWS.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    lake.upsert(row("a", ts=5), row("b", ts=5), row("c", ts=5))
    late = row("b", ts=4, part="q", _hoodie_is_deleted=True)
    without_order = row("c", ts=None, part="q", _hoodie_is_deleted=True)
    lake.upsert(row("a", ts=6, part="q", _hoodie_is_deleted=True), late, without_order)
    assert lake.values() == {"b": "a"}
    assert {partition for partition, _ in lake.live()} == {"p"}
    lake.ensure_sound()


def test_twins_of_different_partitions_in_one_input_are_one_key(version: int, index: str) -> None:
    lake = lake_with(version, index, move=True)
    lake.upsert(row("a", "low", 1), row("a", "high", 2, "q"))
    assert lake.rows(COLUMNS) == [("a", "q", "q", "high")]
    lake.upsert(row("a", "there", 4, "r"), row("a", "here", 3, "q"))
    assert lake.rows(COLUMNS) == [("a", "r", "r", "there")]


def test_older_files_without_the_ordering_column_lose(index: str) -> None:
    plain = pa.schema([field for field in ROWS if field.name != "ts"])
    lake = Lake(9, {"hoodie.index.type": index})
    del lake.options["hoodie.table.ordering.fields"]  # type: ignore[attr-defined]
    lake.write("upsert", table_of([row("a")]).select(plain.names))
    lake.upsert(row("a", "moved", 1, "q"))
    assert lake.rows(("id", "_hoodie_partition_path", "v")) == [("a", "q", "moved")]


def test_insert_with_a_global_index_drops_keys_of_other_partitions(version: int, index: str) -> None:
    lake = lake_with(version, index, move=True)
    lake.upsert(row("a"))
    lake.write("insert", [row("a", part="q"), row("b", part="q")], {"hoodie.datasource.insert.dup.policy": "drop"})
    assert lake.rows(("id", "part")) == [("a", "p"), ("b", "q")]


@pytest.mark.parametrize("index", [*INDEXES, "RECORD_INDEX"])
@pytest.mark.parametrize("move", [None, "true", "false"])
def test_a_table_made_with_a_global_index_keeps_it_in_writes_without_options(version, index, move):
    family = {"GLOBAL_SIMPLE": "simple", "GLOBAL_BLOOM": "bloom", "RECORD_INDEX": "record"}[index]
    options = {
        "hoodie.index.type": index,
        "hoodie.metadata.enable": "true",
        f"hoodie.{family}.index.update.partition.path": move,
        "hoodie.metadata.record.index.enable": "true" if family == "record" else None,
        **PAYLOAD.get(version, {}),
    }
    lake = Lake(version, {key: value for key, value in options.items() if value})
    lake.upsert(row("a"), row("b"))
    bare = Table.open(lake.uri)
    bare.upsert(table_of([row("a", "a2", 2, "q"), row("c", part="q")]))
    assert lake.values() == {"a": "a2", "b": "a", "c": "a"}
    moves = move == "true" or (move is None and family != "record")
    assert {partition for _, partition in lake.rows(("id", "_hoodie_partition_path"), filter="id = 'a'")} == {
        "q" if moves else "p"
    }
    lake.ensure_sound()
    if family != "record":
        bare.upsert(table_of([row("b", "b2", 2, "q")]), **{"hoodie.index.type": "SIMPLE"})
        assert len(lake.rows(filter="id = 'b'")) == 2  # an index that a write names goes before


def test_other_indexes_and_defaults_leave_no_trace_in_the_properties(version):
    for options in ({}, {"hoodie.index.type": "BLOOM"}, {"hoodie.index.type": "SIMPLE"}):
        lake = Lake(version, options)
        lake.upsert(row("a"))
        assert "hoodie.index.type" not in lake.table.config.raw


def test_an_index_that_another_engine_names_in_the_properties_is_passed_over(version):
    lake = Lake(version)
    lake.upsert(row("a"))
    for stored in ("FLINK_STATE", "BUCKET", "nonsense"):
        handle = lake.handle()
        store_table_config(
            lake.storage, handle.config, handle.config.with_changes({"hoodie.index.type": stored}), handle.env
        )
        Table.open(lake.uri).upsert(table_of([row("a", stored, 2)]))
        assert lake.values() == {"a": stored}
