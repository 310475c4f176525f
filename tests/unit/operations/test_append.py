"""Append: new files only, nothing else is looked at, statistics and indexes follow."""

from __future__ import annotations

import pytest

from hoodie.config import resolve
from hoodie.engine import ArrowSource, LocalEngine
from hoodie.records import read_footer
from hoodie.records.bloom import BloomFilter
from hoodie.services.ingest import Request
from hoodie.services.save import write_table
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lake import Awake, Lake, row, table_of

SMALL_FILES = "hoodie.parquet.small.file.limit"
RECORD_INDEX = {"hoodie.metadata.record.index.enable": "true"}


def appended(lake: Lake, *rows: dict[str, object], **options: str) -> object:
    return lake.table.append(table_of(rows), **{name.replace("__", "."): value for name, value in options.items()})


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_each_append_is_a_new_file_in_each_partition_and_the_others_stay(version: int, kind: str) -> None:
    lake = Lake(version, {"hoodie.datasource.write.table.type": kind, **RECORD_INDEX})
    lake.upsert(row("a"), row("b", part="q"))
    before = lake.base_files()
    appended(lake, row("c"), row("d"), row("e", part="q"))
    appended(lake, row("f"))
    assert set(before) < set(lake.base_files())
    assert len(lake.base_files()) == len(before) + 3
    assert len(lake.live()) == 5
    said = lake.commits()[1]
    assert said.operation_type == "INSERT"
    assert sorted((stat.prev_commit, stat.num_inserts) for _, stat in said.write_stats()) == [("null", 1), ("null", 2)]
    assert lake.values() == dict.fromkeys("abcdef", "a")
    lake.upsert(row("c", "new", 2), row("e", "new", 2, "q"))
    assert lake.values() == {**dict.fromkeys("abdf", "a"), "c": "new", "e": "new"}
    lake.ensure_sound()


def test_keys_are_not_looked_up_and_may_come_again() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    appended(lake, row("a", "again"), row("a", "and again"))
    assert lake.rows() == [("a", "a"), ("a", "again"), ("a", "and again")]


def test_duplicates_are_looked_for_where_that_is_asked_for() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    appended(lake, row("a", "again"), row("b"), hoodie__datasource__insert__dup__policy="drop")
    assert lake.values() == {"a": "a", "b": "a"}


def test_rows_of_an_append_go_to_the_buckets_of_their_keys() -> None:
    lake = Lake(9, {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
    lake.upsert(row("a"))
    appended(lake, row("b"))
    assert len(lake.live()) == 1
    lake.upsert(row("b", "new", 2))
    assert lake.values() == {"a": "a", "b": "new"}


def test_the_filter_of_a_file_is_made_for_its_rows() -> None:
    lake = Lake(9, {"hoodie.index.bloom.num_entries": "50000"})
    lake.upsert(row("a"))
    appended(lake, *(row(f"k{n}") for n in range(1500)))
    sizes = {}
    for path in lake.base_files():
        footer = read_footer(lake.storage, path)
        assert footer.bloom_text is not None
        sizes[footer.rows] = BloomFilter.from_text(footer.bloom_text, footer.bloom_type).vector_size
        assert footer.bloom().contains(table_of([row(footer.min_key or "")]).column("id")).all()
    assert sizes[1] == pytest.approx(25 * sizes[1500], rel=0.01)


def test_an_append_looks_at_no_file_but_its_own() -> None:
    lake = Lake(9, RECORD_INDEX)
    lake.upsert(row("a"))
    appended(lake, row("b"))
    counted = CountingStorage(lake.storage)
    config = resolve({**lake.options, SMALL_FILES: "0"})
    done = write_table(counted, Request("insert", ArrowSource(table_of([row("z")])), config, LocalEngine(1)), Awake())
    inside = {call.path for call in counted.calls if call.path.partition("/")[0] == "p"}
    assert inside - {"p/.hoodie_partition_metadata"} == {path for path in lake.base_files() if done.instant in path}
