"""Laws of the past on random histories: a state of the past is given as it was or refused, whatever was cleaned and
archived since.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.state.handle import TableHandle
from hoodie.table import Table
from hoodie.testing.counting_storage import Call, CountingStorage, Crash
from hoodie.testing.lake import Awake, Lake, row

pytestmark = pytest.mark.deep

SEEDS = int(os.environ.get("HOODIE_PAST_SEEDS", "2"))
STEPS = 12
CLEANS = {
    "versions": {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1},
    "commits": {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": 3},
}


@dataclass
class History:
    """A lake and what it was after each of its writes, by requested time."""

    lake: Lake
    chance: random.Random
    states: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    clocks: dict[str, str] = field(default_factory=dict)

    def step(self) -> None:
        keys = [f"k{n}" for n in range(12)]
        chosen = self.chance.sample(keys, self.chance.randint(1, 4))
        rows = [row(key, f"v{self.chance.randint(0, 999)}", ts=1, part=f"p{int(key[1:]) % 2}") for key in chosen]
        match self.chance.choice(["upsert", "upsert", "upsert", "delete", "overwrite", "compact", "clean", "clean"]):
            case "upsert":
                self.lake.write("upsert", rows)
            case "delete" if self.states:
                self.lake.write("delete", rows[:1])
            case "overwrite" if self.chance.random() < 0.5:
                self.lake.write("insert_overwrite", rows)
            case "compact" if self.is_logged:
                self.lake.table.services.compact()
            case "clean" if self.states:
                policy = self.chance.choice(sorted(CLEANS))
                self.lake.table.services.clean(**CLEANS[policy])
            case _:
                self.lake.write("upsert", rows)
        table = self.lake.table
        last = table.timeline().completed_writes()[-1]
        self.states[last.requested] = self.lake.rows(COLUMNS)
        self.clocks[last.requested] = last.requested if table.version == 6 else str(last.completed)

    @property
    def is_logged(self) -> bool:
        return bool(self.states) and self.lake.table.config.table_type == "MERGE_ON_READ"


COLUMNS = ("id", "v", "_hoodie_commit_time")


def histories(version: int, kind: str, seed: int) -> Iterator[History]:
    """The history after each step."""
    options = {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "true",
        "hoodie.keep.min.commits": 4,
        "hoodie.keep.max.commits": 5,
        "hoodie.clean.commits.retained": 3,
        "hoodie.metadata.enable": "false",
        "hoodie.table.ordering.fields": None,
    }
    history = History(Lake(version, options), random.Random(seed))
    for _ in range(STEPS):
        history.step()
        yield history


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_state_of_the_past_is_given_whole_or_refused(version, kind, seed):
    given = 0
    for history in histories(version, kind, seed):
        for time, state in history.states.items():
            try:
                found = history.lake.rows(COLUMNS, as_of=time)
            except Invalid as error:
                assert "cleaned" in str(error)
                continue
            assert found == state, (seed, time)
            given += 1
    assert given


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_an_incremental_query_gives_the_rows_of_its_range_as_of_its_end(version, kind, seed, caplog):
    compared = 0
    for history in histories(version, kind, seed):
        times = sorted(history.states)
        for _ in range(3):
            begin, end = sorted(history.chance.sample(["0", *times], 2))
            asked = {"begin": history.clocks.get(begin, "0"), "end": history.clocks[end]}
            caplog.clear()
            found = history.lake.rows(COLUMNS, query="incremental", **asked)
            try:
                state = history.lake.rows(COLUMNS, as_of=end)
            except Invalid:
                assert not found or set(found) <= {one for rows in history.states.values() for one in rows}
                continue
            assert found == [one for one in state if begin < one[2] <= end], (seed, begin, end)
            assert not caplog.records
            compared += 1
    assert compared


@pytest.mark.parametrize("version", [6, 8, 9])
def test_what_a_clean_that_died_may_have_taken_is_refused_though_the_metadata_table_still_names_it(
    version: int,
) -> None:
    lake = Lake(version, {"hoodie.clean.automatic": "false"})
    for n in range(3):
        lake.upsert(row("a", str(n), n))
    first, *_, newest = lake.table.timeline().completed_writes()
    assert lake.rows(as_of=first.requested) == [("a", "0")]
    keep_one = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    handle, dying = lake.handle(), CountingStorage(lake.storage)
    table = Table(TableHandle(dying, handle.config, handle.profile, Awake()), lake.options, LocalEngine(1))

    def strike(call: Call) -> None:
        if _is_data(call):
            lake.storage.delete(call.path)
            raise Crash

    with dying.told(strike), pytest.raises(Crash):
        table.services.clean(**keep_one)
    assert lake.table.timeline().pending()[-1].action == "clean"
    with pytest.raises(Invalid, match="cleaned up"):
        lake.rows(as_of=first.requested)
    assert lake.rows(as_of=newest.requested) == lake.rows() == [("a", "2")]


def _is_data(call: Call) -> bool:
    return call.op == "delete" and call.path.endswith(".parquet")
