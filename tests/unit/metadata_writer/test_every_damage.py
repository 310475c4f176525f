"""Any file of a metadata table with every index is damaged or gone: rows are right, or the error names what mends it.

The law, for one damage at a time:

1. Every read gives the right rows, or `Corrupt` whose remedy is `hoodie doctor --fix`. No other error, no row too many.
2. Every action on the table does what it does without the damage, or fails in that same way and changes no row.
3. `validate` and the doctor say what they find and never fail; what a read cannot do, they report.
4. `doctor --fix` heals: no findings, the same indexes with the same definitions, all reads right.

`HOODIE_DAMAGE=all` tries every file with every damage and every action, else a sample by `HOODIE_DAMAGE_SEED`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt
from hoodie.metadata_writer import (
    MetadataOptions,
    build_index,
    compact_metadata,
)
from hoodie.testing.every_index import every_index
from hoodie.testing.lake import Lake, row

pytestmark = pytest.mark.deep

ALL = os.environ.get("HOODIE_DAMAGE") == "all"
SEED = os.environ.get("HOODIE_DAMAGE_SEED", "1")
SAMPLE = 3
LOCAL = LocalEngine(1)
ROOT = ".hoodie/metadata/"

Change = Callable[[bytes], bytes | None]
DAMAGES: dict[str, Change] = {
    "empty": lambda _: b"",
    "torn": lambda whole: whole[:-5],
    "cut": lambda whole: whole[: len(whole) // 2],
    "garbage": lambda _: b"garbage" * 9,
    "zeros": lambda whole: whole[: len(whole) // 3] + bytes(40) + whole[len(whole) // 3 + 40 :],
    "deleted": lambda _: None,
}
FOLDER = "folder deleted"

ACTIONS: dict[str, Callable[[Lake], object]] = {
    "upsert": lambda lake: lake.upsert(row("a", "w", 7), row("c", "w", 7, part="q"), row("n", "n")),
    "delete": lambda lake: lake.write("delete", [row("a", "z", 99)]),
    "compact": lambda lake: lake.table.services.compact(),
    "compact the metadata table": lambda lake: compact_metadata(lake.handle(), LOCAL, MetadataOptions(compact_after=1)),
    "clean": lambda lake: lake.table.services.clean(),
    "rollback": lambda lake: lake.table.services.rollback(lake.table.timeline().completed()[-1].requested),
}
QUERIES = ("id = 'a'", "v = 'z'", "upper(v) = 'Z'", "length(v) = 1", "v > 'y' and part = 'q'")
KEYS = ("a", "b")

Answers = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class World:
    """A table as files, with what it answers."""

    lake: Lake
    files: Mapping[str, bytes]
    answers: Answers

    def copy(self) -> Lake:
        made = Lake(self.lake.version, self.lake.options)
        for path, content in self.files.items():
            made.storage.put(path, content)
        return made


@cache
def world(version: int, partitioned: bool, compacted: bool) -> World:
    """Every index the version has, from rows before and after they were made; base files and log files in each."""
    index = "RECORD_LEVEL_INDEX" if partitioned else "RECORD_INDEX"
    options = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.compact.max.delta.commits": "99",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    lake = Lake(version, options)
    lake.upsert(row("a"), row("b", None), row("c", "c", part="q"))
    for one in every_index(version, partitioned=partitioned):
        build_index(lake.handle(), one, LOCAL)
    lake = Lake(version, {**lake.options, "hoodie.index.type": index}, lake.uri)
    lake.upsert(row("a", "m", 2), row("d", "0"), row("e", "e", part="q"))
    if compacted:
        assert ACTIONS["compact the metadata table"](lake)
    lake.upsert(row("a", "z", 3), row("f", "f"), row("c", "y", 3, part="q"))
    lake.write("delete", [row("b", None, 9)])
    return World(lake, lake.files(), right_answers(lake))


@cache
def after(one: World, action: str) -> Answers:
    """What the sound table answers after an action."""
    acted = one.copy()
    ACTIONS[action](acted)
    return right_answers(acted)


def reads(lake: Lake) -> dict[str, Callable[[], Any]]:
    """What is asked of a table: all rows, rows by each index, keys."""

    def lookup(key: str) -> Any:
        found = lake.table.lookup(key).read_all()
        return list(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))

    asked: dict[str, Callable[[], Any]] = {"all": lake.rows}
    asked |= {query: lambda query=query: lake.rows(filter=query) for query in QUERIES}
    return asked | {f"key {key}": lambda key=key: lookup(key) for key in KEYS}


def right_answers(lake: Lake) -> Answers:
    return {name: ask() for name, ask in reads(lake).items()}


def failure(act: Callable[[], object]) -> Corrupt | None:
    """The damage that was said; any other error is the test's."""
    try:
        act()
    except Corrupt as error:
        assert "hoodie doctor PATH --fix" in str(error), error
        assert error.facts.get("path"), error
        return error
    return None


def ensure_right(lake: Lake, *right: Answers) -> bool:
    """Whether every read was answered. Those that were agree with one of the states the table may be in."""
    found: dict[str, Any] = {}
    for name, ask in reads(lake).items():
        failure(lambda name=name, ask=ask: found.__setitem__(name, ask()))
    assert any(all(one[name] == said for name, said in found.items()) for one in right), found
    return len(found) == len(right[0])


def ensure_healed(one: World, lake: Lake, *right: Answers) -> None:
    """What `hoodie doctor --fix` does mends it."""
    before = one.lake.handle().config.metadata_partitions
    lake.table.indexes.rebuild()
    assert lake.table.validate() == []
    assert ensure_right(lake, *right)
    assert lake.handle().config.metadata_partitions == before
    assert lake.table.indexes == one.lake.table.indexes


def cases(one: World) -> list[tuple[str, str, str]]:
    """Path, damage, action: all, or a sample."""
    files = [path for path in one.files if path.startswith(ROOT)]
    folders = sorted({path.rpartition("/")[0] for path in files if path.endswith(".hoodie_partition_metadata")})
    damages = [(path, name) for path in files for name in DAMAGES] + [(path, FOLDER) for path in folders]
    found = [(path, name, action) for path, name in damages for action in ACTIONS]
    return found if ALL else random.Random(SEED).sample(found, SAMPLE)


def damaged(one: World, path: str, damage: str) -> Lake:
    lake = one.copy()
    if damage == FOLDER:
        lake.storage.delete_dir(path)
    elif (content := DAMAGES[damage](one.files[path])) is None:
        lake.storage.delete(path)
    else:
        lake.storage.put(path, content)
    return lake


WORLDS = [(version, partitioned, compacted) for version in (6, 8, 9) for partitioned in (0, 1) for compacted in (0, 1)]
TRIED = [one for one in WORLDS if one[:2] != (6, 1)] if ALL else [(6, 0, 1), (9, 0, 0), (9, 1, 1)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("version", "partitioned", "compacted"), TRIED)
def test_no_damage_of_the_metadata_table_changes_rows(version: int, partitioned: bool, compacted: bool) -> None:
    one = world(version, partitioned, compacted)
    for path, damage, action in cases(one):
        note = f"{path}: {damage}, then {action}"
        try:
            lake = damaged(one, path, damage)
            is_answered = ensure_right(lake, one.answers)
            findings = lake.table.validate()
            assert is_answered or findings
            remedies = {one.remedy for one in lake.table.doctor().concerns if one.severity == "error"}
            assert all("--fix" in remedy for remedy in remedies)
            failed = failure(lambda lake=lake, action=action: ACTIONS[action](lake))
            right = [after(one, action)] if failed is None else [one.answers, after(one, action)]
            ensure_right(lake, *right)
            ensure_healed(one, lake, *right)
        except BaseException as error:
            error.add_note(note)
            raise
