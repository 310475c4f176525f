"""Writers that die at any storage call while they keep indexes: the next one makes all of them true again."""

from __future__ import annotations

from contextlib import suppress

import pytest
from test_indexes_kept import ENGINE, KINDS, ensure_true, lake_of

from hoodie.config import resolve
from hoodie.env import SystemEnv
from hoodie.services import Request, write_table
from hoodie.storage import Storage
from hoodie.table import as_source
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import Lake, row, table_of

_EVERY = 11
"""Of the calls that change something every so manyth is died at."""


@pytest.mark.parametrize("kind", KINDS)
def test_indexes_are_true_after_a_writer_died_and_the_next_one_wrote(version: int, kind: str) -> None:
    world = lake_of(version, kind)
    counted = CountingStorage(_copied(world).storage)
    _upsert(counted)
    changing = [call.n for call in counted.calls if call.op not in ("read", "read_range", "head", "list", "list_dir")]
    for call in changing[::_EVERY]:
        lake = _copied(world)
        with suppress(Crash):  # file names differ from run to run, and so may the number of calls
            _upsert(CountingStorage(lake.storage, crash_at=call))
        lake.upsert(row("b", "again", 7), row("m", part="m"))
        ensure_true(lake)


def _upsert(storage: Storage) -> None:
    rows = [row("a", "new", 9), row("c", "gone", 9, "q"), row("n", part="n")]
    write_table(storage, Request("upsert", as_source(table_of(rows)), resolve({}), ENGINE), SystemEnv())


def _copied(lake: Lake) -> Lake:
    """The same table somewhere else."""
    other = Lake(lake.version, lake.options)
    for path, data in lake.files().items():
        other.storage.put(path, data)
    return other
