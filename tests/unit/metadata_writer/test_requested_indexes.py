"""Options of a write that ask for indexes, say to drop them, leave them to others, or count them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hoodie.config import Config, resolve
from hoodie.env import SystemEnv
from hoodie.errors import Conflict, HudiError, Invalid, Unsupported
from hoodie.locks import Held, held_lock, lock_provider_of
from hoodie.locks.waiting import Patience
from hoodie.metadata import load_index_definitions
from hoodie.metadata_writer import build_index, record_index, secondary_index
from hoodie.metadata_writer.indexes.expression_index import parse_expression_options
from hoodie.metadata_writer.indexes.secondary_index import SecondaryIndex
from hoodie.spec import INDEXING
from hoodie.state.handle import timeline_of
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import ROWS, Lake, row

INDEX = "hoodie.metadata.index."
RECORDS = {"hoodie.metadata.global.record.level.index.enable": "true"}
SECONDARY = {**RECORDS, INDEX + "secondary.column": "v"}
EXPRESSION = {INDEX + "expression.enable": "true", INDEX + "expression.column": "v"}
UPPER = {**EXPRESSION, INDEX + "expression.options": "expr=upper"}
COUNTED = {"hoodie.metadata.record.index.enable.validation.on.initialization": "true"}


def lake_of(version: int = 9, **options: str) -> Lake:
    lake = Lake(version, {"hoodie.metadata.enable": "true", **options})
    lake.upsert(row("a"), row("b", "x"), row("c", "c", part="q"))
    return lake


def entries(lake: Lake, name: str = "secondary_index_v") -> list[str]:
    return sorted(lake.metadata().records(name).column("key").to_pylist())


def known(lake: Lake) -> set[str]:
    return set(load_index_definitions(lake.storage, lake.handle().config))


def partitions(lake: Lake) -> set[str]:
    return set(lake.metadata().partitions)


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_write_makes_the_secondary_index_it_asks_for_and_later_ones_keep_it(version: int, kind: str) -> None:
    lake = lake_of(version, **{"hoodie.datasource.write.table.type": kind})
    lake.write("upsert", [row("a", "y", 2)], SECONDARY)
    assert entries(lake) == ["c$c", "x$b", "y$a"]
    assert "record_index" in partitions(lake)
    definition = lake.metadata().definitions["secondary_index_v"]
    assert (definition.kind, definition.source_fields) == ("secondary_index", ("v",))
    assert definition.version == lake.handle().profile.indexes.version
    lake.upsert(row("b", "z", 2))
    assert entries(lake) == ["c$c", "y$a", "z$b"]
    groups = {path for path in lake.files() if "/secondary_index_v/" in path}
    lake.write("upsert", [row("c", "w", 2, "q")], SECONDARY)
    assert entries(lake) == ["w$c", "y$a", "z$b"]
    assert groups <= lake.files().keys()
    lake.ensure_sound()


def test_the_first_write_of_a_table_may_ask_for_indexes() -> None:
    lake = lake_of(**SECONDARY, **UPPER)
    assert entries(lake) == ["a$a", "c$c", "x$b"]
    assert {"expr_index_v", "secondary_index_v", "record_index", "column_stats"} <= partitions(lake)
    lake.upsert(row("a", "y", 2), row("n", None, part="q"))
    assert sorted(one for one in entries(lake) if not one.endswith("$n")) == ["c$c", "x$b", "y$a"]
    assert len(entries(lake)) == 4
    lake.ensure_sound()


def test_one_index_of_a_column_is_enough_and_names_can_be_given() -> None:
    lake = lake_of(**RECORDS)
    lake.write("upsert", [row("a", "y", 2)], {**SECONDARY, "hoodie.index.name": "mine"})
    lake.write("upsert", [row("a", "z", 3)], {**SECONDARY, "hoodie.index.name": "other"})
    assert {one for one in partitions(lake) if one.startswith("secondary")} == {"secondary_index_mine"}
    more = {**SECONDARY, INDEX + "secondary.column": "ts", "hoodie.index.name": "secondary_index_by_ts"}
    lake.write("upsert", [row("a", "w", 4)], more)
    assert entries(lake, "secondary_index_mine") == ["c$c", "w$a", "x$b"]
    assert entries(lake, "secondary_index_by_ts") == ["1$b", "1$c", "4$a"]


@pytest.mark.parametrize("using", ["COLUMN_STATS", "bloom_filters"])
def test_a_write_makes_the_expression_index_it_asks_for(using: str) -> None:
    lake = lake_of()
    given = {INDEX + "expression.options": "expr='substring', pos=1, len=2", "hoodie.expression.index.type": using}
    lake.write("upsert", [row("a", "yes", 2)], {**EXPRESSION, **given, "hoodie.index.name": "begin"})
    definition = lake.metadata().definitions["expr_index_begin"]
    assert (definition.kind, definition.function, definition.source_fields) == (using.lower(), "substring", ("v",))
    assert definition.options == {"expr": "substring", "pos": "1", "len": "2"}
    lake.write("upsert", [row("a", "no", 3)], {**EXPRESSION, **given, "hoodie.index.name": "begin"})
    found = lake.metadata().records("expr_index_begin")
    assert found.num_rows >= 3
    lake.ensure_sound()


def test_options_of_expressions_are_read_as_hudi_reads_them_and_in_quotes() -> None:
    assert parse_expression_options("expr=from_unixtime,format=yyyy-MM-dd") == {
        "expr": "from_unixtime",
        "format": "yyyy-MM-dd",
    }
    assert parse_expression_options(" expr = 'regexp_replace' , pattern = 'a,b=c', replacement= ") == {
        "expr": "regexp_replace",
        "pattern": "a,b=c",
        "replacement": "",
    }
    assert parse_expression_options("expr=x=y") == {"expr": "x=y"}
    assert parse_expression_options("") == {}
    for text in ("upper", "expr=upper,format", "=upper", "expr='upper',,"):
        with pytest.raises(Invalid, match="no list of options"):
            parse_expression_options(text)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({INDEX + "secondary.column": "v"}, Invalid, "needs a record index"),
        ({**SECONDARY, "hoodie.metadata.global.record.level.index.enable": "false"}, Invalid, "needs a record index"),
        (
            {INDEX + "secondary.column": "v", "hoodie.metadata.record.level.index.enable": "true"},
            Invalid,
            "whole table",
        ),
        ({**SECONDARY, INDEX + "secondary.column": "nowhere"}, Unsupported, "nowhere"),
        (EXPRESSION, Invalid, "names no function"),
        ({**EXPRESSION, INDEX + "expression.options": "format=yyyy"}, Invalid, "names no function"),
        ({**EXPRESSION, INDEX + "expression.options": "expr=soundex"}, Unsupported, "soundex"),
        ({**EXPRESSION, INDEX + "expression.options": "expr=date_add"}, Invalid, "days"),
        ({**UPPER, INDEX + "expression.column": "nowhere"}, Invalid, "nowhere"),
        ({INDEX + "drop": "column_stats,files"}, Invalid, "metadata table itself"),
    ],
)
def test_what_the_table_cannot_have_is_said_before_anything_is_written(
    options: dict[str, str], error: type[HudiError], words: str
) -> None:
    lake = lake_of()
    before = lake.files()
    with pytest.raises(error, match=words):
        lake.write("upsert", [row("a", "y", 2)], options)
    assert lake.files() == before


def test_a_name_that_belongs_to_another_index_is_refused() -> None:
    lake = lake_of(**UPPER)
    other = {**UPPER, INDEX + "expression.options": "expr=lower"}
    with pytest.raises(Invalid, match="of something else") as caught:
        lake.write("upsert", [row("a", "y", 2)], other)
    assert "hoodie.index.name" in caught.value.remedy
    lake.write("upsert", [row("a", "y", 2)], {**other, "hoodie.index.name": "low"})
    assert {"expr_index_v", "expr_index_low"} <= partitions(lake)


def test_switches_keep_a_write_from_making_indexes_and_drop_none() -> None:
    lake = lake_of(**RECORDS)
    off = {INDEX + "secondary.enable": "false", INDEX + "expression.enable": "false"}
    asked = {**SECONDARY, **UPPER}
    lake.write("upsert", [row("a", "y", 2)], {**asked, **off})
    assert not {one for one in partitions(lake) if one.startswith(("secondary", "expr"))}
    lake.write("upsert", [row("a", "y", 3)], asked)
    lake.write("upsert", [row("a", "z", 4)], {**asked, **off})
    assert "expr_index_v" in partitions(lake)
    assert entries(lake) == ["c$c", "x$b", "z$a"]


def test_a_column_that_comes_with_the_write_is_indexed_by_the_next() -> None:
    lake = lake_of(**RECORDS)
    wide = Lake(9, {**lake.options, INDEX + "secondary.column": "n"}, lake.uri, pa.schema([*ROWS, ("n", pa.int64())]))
    wide.upsert(row("a", "y", 2, n=7))
    assert "secondary_index_n" not in partitions(wide)
    wide.upsert(row("b", "y", 2, n=8))
    assert {"7$a", "8$b"} <= set(entries(wide, "secondary_index_n"))
    assert len(entries(wide, "secondary_index_n")) == 3


def test_version_6_cannot_have_indexes_with_names() -> None:
    lake = lake_of(6)
    for options in (SECONDARY, UPPER):
        with pytest.raises(Invalid, match="version 6"):
            lake.write("upsert", [row("a", "y", 2)], options)


def test_a_write_drops_indexes_by_name_with_what_needs_them() -> None:
    lake = lake_of(**SECONDARY, **UPPER)
    lake.options = {key: value for key, value in lake.options.items() if not key.startswith("hoodie.metadata.")}
    lake.write("upsert", [row("a", "y", 2)], {INDEX + "drop": "expr_index_v"})
    assert "expr_index_v" not in known(lake) | partitions(lake)
    assert entries(lake) == ["c$c", "x$b", "y$a"]
    lake.write("upsert", [row("a", "z", 3)], {INDEX + "drop": "record_index,nothing"})
    assert not {"record_index", "secondary_index_v"} & (known(lake) | partitions(lake))
    assert lake.values()["a"] == "z"
    lake.ensure_sound()


def test_a_bare_name_means_every_index_of_that_name() -> None:
    lake = lake_of(**SECONDARY, **UPPER)
    lake.write("upsert", [row("a", "y", 2)], {INDEX + "drop": "v"})
    assert not {"expr_index_v", "secondary_index_v"} & (known(lake) | partitions(lake))
    assert "record_index" in partitions(lake)


def test_what_a_write_drops_it_does_not_make_however_often_it_is_said(version: int) -> None:
    lake = lake_of(version, **{INDEX + "column.stats.enable": "true"})
    for number in (2, 3):
        lake.write("upsert", [row("a", "y", number)], {INDEX + "drop": "column_stats"})
        assert partitions(lake) == {"files"}
    lake.upsert(row("a", "z", 4))
    assert "column_stats" in partitions(lake)
    lake.ensure_sound()


def test_a_write_drops_what_a_dead_build_left(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_of(**RECORDS)

    def dying(self: SecondaryIndex, context: object) -> object:
        raise Crash(str(self) + str(context))

    with monkeypatch.context() as patched:
        patched.setattr(SecondaryIndex, "initial", dying)
        with pytest.raises(Crash):
            build_index(lake.handle(), secondary_index("v", "v"))
    assert any(one.action == INDEXING for one in timeline_of(lake.handle()).pending())
    lake.write("upsert", [row("a", "y", 2)], {INDEX + "drop": "secondary_index_v"})
    assert not timeline_of(lake.handle()).pending()
    assert "secondary_index_v" not in known(lake)
    assert not lake.handle().config.metadata_partitions_inflight


def test_with_async_a_write_makes_the_list_of_files_only_and_keeps_what_others_build(version: int) -> None:
    later = {INDEX + "async": "true", **RECORDS, INDEX + "column.stats.enable": "true"}
    lake = lake_of(version, **later)
    assert partitions(lake) == {"files"}
    build_index(lake.handle(), record_index(), config=Config(later))
    lake.upsert(row("n", part="q"))
    assert partitions(lake) == {"files", "record_index"}
    found = lake.metadata().locate(["a", "b", "c", "n", "z"]).column("record_key").to_pylist()
    assert sorted(found) == ["a", "b", "c", "n"]
    lake.write("upsert", [row("a", "y", 2)], {"hoodie.metadata.global.record.level.index.enable": "false"})
    assert partitions(lake) == {"files"}


def test_with_async_other_columns_leave_the_statistics_as_they_are() -> None:
    lake = lake_of()
    had = lake.metadata().definitions["column_stats"].source_fields
    columns = {INDEX + "column.stats.column.list": "v", INDEX + "async": "true"}
    lake.write("upsert", [row("a", "y", 2)], {**columns, **SECONDARY})
    assert lake.metadata().definitions["column_stats"].source_fields == had
    assert partitions(lake) == {"files", "column_stats", "partition_stats"}


def test_a_build_waits_at_its_end_for_a_writer_that_is_still_running() -> None:
    lake = lake_of(**RECORDS)
    writer = held_lock(lake.storage, "a write")
    env = _Resting(after=3, then=lambda: writer.__exit__(None, None, None))
    handle = replace(lake.handle(), env=env, storage=_held_after_staging(lake, writer))
    build_index(handle, secondary_index("v", "v"))
    assert env.rests == 3
    assert entries(lake) == ["a$a", "c$c", "x$b"]


def test_a_build_gives_up_waiting_in_time_and_can_be_repeated() -> None:
    lake = lake_of(**RECORDS)
    writer = held_lock(lake.storage, "a write")
    handle = replace(lake.handle(), storage=_held_after_staging(lake, writer))
    with pytest.raises(Conflict):
        build_index(
            handle, secondary_index("v", "v"), config=resolve({"hoodie.metadata.index.check.timeout.seconds": 0})
        )
    writer.__exit__(None, None, None)
    lake.upsert(row("a", "y", 2))
    assert "secondary_index_v" not in partitions(lake)
    build_index(lake.handle(), secondary_index("v", "v"))
    assert entries(lake) == ["c$c", "x$b", "y$a"]


def test_a_counted_record_index_tells_of_keys_that_are_there_twice(version: int) -> None:
    lake = lake_of(version)
    lake.write("upsert", [row("a", "y", 2)], {**RECORDS, **COUNTED})
    assert "record_index" in partitions(lake)
    lake.write("insert", [row("a", "again", 3, part="q")], {INDEX + "drop": "record_index"})
    with pytest.raises(Invalid, match="3 keys for 4 rows"):
        lake.write("upsert", [row("b", "z", 2)], {**RECORDS, **COUNTED})
    assert "record_index" not in partitions(lake)
    with pytest.raises(Invalid, match="3 keys for 4 rows"):
        build_index(lake.handle(), record_index(), config=resolve(COUNTED))
    lake.write("delete", [row("a", part="q")])
    lake.write("upsert", [row("b", "z", 3)], {**RECORDS, **COUNTED})
    assert lake.values() == {"a": "y", "b": "z", "c": "c"}
    assert sorted(lake.metadata().locate(["a", "b", "c"]).column("record_key").to_pylist()) == ["a", "b", "c"]
    lake.ensure_sound()


class _Resting(SystemEnv):
    """The real world, in which something happens after so many rests, which take no time."""

    def __init__(self, after: int, then: Callable[[], object]) -> None:
        self.rests, self._after, self._then = 0, after, then

    def sleep(self, seconds: float) -> None:
        del seconds
        self.rests += 1
        if self.rests == self._after:
            self._then()


def _held_after_staging(lake: Lake, writer: AbstractContextManager[Held]) -> Any:
    """The lake's storage, which another writer holds as soon as a build asks for it the second time."""

    class Raced(CountingStorage):
        asked = 0

        def locked(self, what: str, scope: str, patience: Patience) -> AbstractContextManager[Held]:
            self.asked += 1
            if self.asked == 2:
                writer.__enter__()
            return lock_provider_of(lake.storage).acquire(what, scope, patience)

    return Raced(lake.storage)
