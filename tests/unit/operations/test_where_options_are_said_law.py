"""The law of options: where one is said does not matter. Said to the table when it is opened, to the call, or in the
call's `options`, it has the same effect on writes and on the services that run after them or by themselves.

1. All options are said, each with its default for a value: whoever reads one in the course of a call reads what was
   said, and no default of its own. The metadata table's own upkeep alone reads others: it has options of its own.
2. Options that change what is stored leave the same files, byte for byte, wherever they are said.
"""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

import hoodie.engine
from hoodie.config import Config, all_keys, lookup
from hoodie.engine import LocalEngine
from hoodie.state.handle import load_handle
from hoodie.storage import MemoryStorage
from hoodie.table import Table
from hoodie.testing.env import FakeEnv
from hoodie.testing.lake import row, table_of

BASE: Final = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.write.lock.wait_time_ms": "0",
    "hoodie.write.lock.client.num_retries": "0",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}
MADE: Final = {
    "COPY_ON_WRITE": {
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    },
    "MERGE_ON_READ": {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "2",
        "hoodie.merge.small.file.group.candidates.limit": "0",
    },
}
OF_CREATION: Final = {"hoodie.table.name": "said", "hoodie.datasource.write.operation": "upsert"}
PLACES: Final = ("table", "call", "options of the call")
_turns: Final = itertools.count()


class Still(FakeEnv):
    """A world in which nothing takes time: what commits say of it is the same in every run."""

    def monotonic(self) -> float:
        return 0.0


Call = Callable[[Table, Mapping[str, Any]], object]


def upsert(step: int) -> Call:
    rows = [row(f"k{number}", f"v{step}", step, f"p{number % 2}") for number in range(step, step + 4)]
    return lambda table, given: table.upsert(table_of(rows), **given)


UPSERTS: Final[tuple[Call, ...]] = tuple(upsert(step) for step in range(4))
OTHERS: Final[tuple[Call, ...]] = (
    lambda table, given: table.delete(table_of([row("k3", "v", 9, "p1")]), **given),
    lambda table, given: table.insert(table_of([row("n", "v", 9, "p1")]), **given),
    lambda table, given: table.bulk_insert(table_of([row("b", "v", 9, "p2")]), **given),
    lambda table, given: table.insert_overwrite(table_of([row("o", "v", 9, "p2")]), **given),
    lambda table, given: table.delete_partition("p2", **given),
)
SERVICES: Final[tuple[Call, ...]] = tuple(
    lambda table, given, name=name: table.services.run(name, **given)  # type: ignore[misc]
    for name in ("cluster", "clean", "archive", "ttl", "metadata")
)

OF_KIND: Final[Mapping[str, tuple[Call, ...]]] = {
    "COPY_ON_WRITE": (lambda table, given: table.services.schedule_base_file_compaction(**given),),
    "MERGE_ON_READ": (
        lambda table, given: table.update(table_of([row("k4", "w", 9, "p0")]), **given),
        lambda table, given: table.services.schedule_compaction(**given),
        lambda table, given: table.services.compact(**given),
        lambda table, given: table.services.compact_logs(**given),
    ),
}


def left_by(kind: str, said: Mapping[str, Any], place: str, calls: tuple[Call, ...]) -> dict[str, bytes]:
    """Every file of a table after calls with options that are `said` at a place."""
    env, name = Still(), f"said-{next(_turns):06}"
    storage = MemoryStorage(name, env)
    opened: dict[str, Any] = {**BASE, **MADE[kind]}
    made = {**opened, **OF_CREATION, "hoodie.datasource.write.table.type": kind}
    Table.create(storage.uri, schema=table_of([]).schema, options=made, env=env)
    given: dict[str, Any] = {}
    if place == "table":
        opened |= said
    else:
        given = dict(said) if place == "call" else {"options": dict(said)}
    table = Table(load_handle(storage, env), opened, LocalEngine(1))
    for call in calls:
        call(table, given)
    return {info.path: without_chance(storage.read(info.path), name) for info in storage.list("")}


def without_chance(content: bytes, name: str) -> bytes:
    """The bytes of a file without the table's name in memory and the random marker that ends an Avro file."""
    return content.replace(content[-16:], b"").replace(name.encode(), b"")


def defaults() -> dict[str, str]:
    """Every option that has an effect and a default, and that the tables here do not need otherwise."""
    needed = {*BASE, *OF_CREATION, *itertools.chain.from_iterable(MADE.values()), "hoodie.datasource.write.table.type"}
    return {
        entry.key: entry.default
        for entry in all_keys()
        if entry.kind == "implemented" and entry.alias_of is None and not entry.is_family and entry.scope != "read"
        if entry.default and entry.key not in needed and not entry.is_for_storage
    }


@pytest.mark.parametrize("place", PLACES[:2])
@pytest.mark.parametrize("kind", MADE)
def test_whoever_reads_an_option_reads_what_was_said(kind: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = defaults()
    assert len(said) > 150
    missed: set[tuple[str, str]] = set()
    read: set[str] = set()

    def watch(method: str) -> None:
        ask = getattr(Config, method)

        def watched(self: Config, key: str) -> Any:
            name = lookup(key).canonical
            read.add(name)
            if name in said and name not in self.explicit:
                callers = [f"{frame.filename.rpartition('/')[2]}:{frame.name}" for frame in traceback.extract_stack()]
                if not {"metadata_upkeep.py:keep_metadata", "table.py:create"} & set(callers):
                    missed.add((name, " > ".join(callers[-6:-1])))
            return ask(self, key)

        monkeypatch.setattr(Config, method, watched)

    watch("optional")
    watch("is_set")
    left_by(kind, said, place, (*UPSERTS, *OF_KIND[kind], *OTHERS, *SERVICES))
    assert sorted(missed) == []
    assert len(read & said.keys()) > 100


EFFECTS: Final = (
    ("MERGE_ON_READ", "hoodie.metadata.index.column.stats.column.list", "v"),
    ("MERGE_ON_READ", "hoodie.metadata.global.record.level.index.enable", "true"),
    ("MERGE_ON_READ", "hoodie.metadata.index.bloom.filter.enable", "true"),
    ("MERGE_ON_READ", "hoodie.metadata.compact.max.delta.commits", "2"),
    ("MERGE_ON_READ", "hoodie.logfile.data.block.format", "avro"),
    ("MERGE_ON_READ", "hoodie.compact.inline.max.delta.commits", "1"),
    ("COPY_ON_WRITE", "hoodie.parquet.compression.codec", "uncompressed"),
    ("COPY_ON_WRITE", "hoodie.clean.commits.retained", "2"),
    ("COPY_ON_WRITE", "hoodie.clean.automatic", "false"),
    ("COPY_ON_WRITE", "hoodie.parquet.small.file.limit", "0"),
    ("COPY_ON_WRITE", "hoodie.metadata.enable", "false"),
)


@pytest.mark.deep
@pytest.mark.parametrize(("kind", "key", "value"), EFFECTS)
def test_options_leave_the_same_files_wherever_they_are_said(
    kind: str, key: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left(said: Mapping[str, Any], place: str) -> dict[str, bytes]:
        monkeypatch.setattr(hoodie.engine, "_stages", itertools.count(1))
        return left_by(kind, said, place, UPSERTS)

    by_table, *others = (left({key: value}, place) for place in PLACES)
    for found in others:
        assert sorted(path for path in by_table | found if by_table.get(path) != found.get(path)) == []
    plain = left({}, "table")
    assert plain == left({}, "call"), "the same writes leave the same bytes"
    assert plain != by_table, "it has an effect"
