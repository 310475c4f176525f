"""Writers that die at any storage call while they keep indexes: the next one makes all of them true again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import pytest
from test_indexes_kept import ENGINE, KINDS, lake_of

from hoodie.config import resolve
from hoodie.env import SystemEnv
from hoodie.services.ingest import Request
from hoodie.services.save import write_table
from hoodie.storage import Storage
from hoodie.table import as_source
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.index_records import ensure_true
from hoodie.testing.lake import Lake, row, table_of

pytestmark = pytest.mark.deep

INDEX = "hoodie.metadata.index."
ASKED = {
    "hoodie.metadata.global.record.level.index.enable": "true",
    INDEX + "secondary.column": "v",
    INDEX + "expression.enable": "true",
    INDEX + "expression.column": "v",
    INDEX + "expression.options": "expr=upper",
}
_EVERY = 11
"""Of the calls that change something every so manyth is died at."""


@pytest.mark.sampled(3)
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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_indexes_are_made_and_dropped_after_a_writer_died_while_it_did_so(kind: str) -> None:
    first = {**ASKED, INDEX + "secondary.column": "", "hoodie.datasource.write.table.type": kind}
    world = Lake(9, {"hoodie.metadata.enable": "true", **first})
    world.upsert(row("a"), row("b", None), row("c", "c", part="q"))
    then = {**ASKED, INDEX + "drop": "expr_index_v"}
    counted = CountingStorage(_copied(world).storage)
    _upsert(counted, then)
    changing = [call.n for call in counted.calls if call.op not in ("read", "read_range", "head", "list", "list_dir")]
    for call in changing[:: 2 * _EVERY]:
        lake = _copied(world)
        with suppress(Crash):
            _upsert(CountingStorage(lake.storage, crash_at=call), then)
        ensure_true(lake)
        lake.write("upsert", [row("b", "again", 7), row("m", part="m")], then)
        ensure_true(lake)
        assert set(lake.table.indexes) >= {"record_index", "secondary_index_v"}, call
        assert "expr_index_v" not in lake.table.indexes, call
        lake.ensure_sound()


def _upsert(storage: Storage, options: Mapping[str, str] | None = None) -> None:
    rows = [row("a", "new", 9), row("c", "gone", 9, "q"), row("n", part="n")]
    config = resolve({"hoodie.index.bloom.num_entries": "50", **(options or {})})
    write_table(storage, Request("upsert", as_source(table_of(rows)), config, ENGINE), SystemEnv())


def _copied(lake: Lake) -> Lake:
    """The same table somewhere else."""
    other = Lake(lake.version, lake.options)
    for path, data in lake.files().items():
        other.storage.put(path, data)
    return other
