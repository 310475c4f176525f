"""Log files that a downgrade names anew: whoever dies in it, torn copies included, and whatever is done next, each file
keeps its bytes and every state of the past its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.errors import Corrupt, Invalid, Missing
from hoodie.services.upgrading.logs import run_renames
from hoodie.services.upgrading.upgrade import upgrade
from hoodie.spec.keys import LOG_RENAMES_FILE
from hoodie.state.handle import load_handle
from hoodie.state.log_renames import load_renames
from hoodie.storage import Storage, open_storage
from hoodie.table import Table
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import Lake, row

pytestmark = pytest.mark.deep

OLD, NEW = ("p/.f_20200101000000002.log.1_0-1-0", "p/.f_20200101000000001.log.1_0-1-0")
BYTES = bytes(range(256)) * 5
ENGINE = LocalEngine(1)
GOALS = ("give up", "finish", "write, then give up", "write, then finish")

Rows = dict[str, dict[str, str]]


def _storage(name: str) -> Storage:
    return open_storage(f"memory://renamed-{name}/table")


def _until(crash_at: int, act: Callable[[Storage], None], storage: Storage) -> None:
    """Does `act`, which dies at that call, if it makes so many; a file that is being written stays cut short."""
    with suppress(Crash):
        act(CountingStorage(storage, crash_at=crash_at, torn=True))


def _forward(storage: Storage) -> None:
    run_renames(storage, ENGINE, {OLD: NEW})


def _back(storage: Storage) -> None:
    run_renames(storage, ENGINE, {NEW: OLD})


def _is_whole(storage: Storage, path: str) -> bool:
    try:
        return storage.read(path) == BYTES
    except Missing:
        return False


@pytest.mark.parametrize("first", range(1, 5))
@pytest.mark.parametrize("second", range(1, 5))
def test_bytes_outlive_any_two_deaths_on_the_way_there_and_back(first: int, second: int) -> None:
    storage = _storage(f"{first}-{second}")
    with storage.open_output(OLD) as output:
        output.write(BYTES)
    _until(first, _forward, storage)
    assert _is_whole(storage, OLD) or _is_whole(storage, NEW)
    _until(second, _back, storage)
    assert _is_whole(storage, OLD) or _is_whole(storage, NEW)
    _forward(storage)
    assert _is_whole(storage, NEW)
    assert not _is_whole(storage, OLD)
    _back(storage)
    assert _is_whole(storage, OLD)
    assert not _is_whole(storage, NEW)


@pytest.mark.parametrize("damage", [b"", b"[]", b"{", b"\xff"])
def test_a_damaged_list_is_named(damage: bytes) -> None:
    storage = _storage("damaged")
    storage.put(LOG_RENAMES_FILE, damage)
    with pytest.raises(Corrupt, match=r"log-names\.upgrade"):
        load_renames(storage)


def _lake(version: int, metadata: str) -> Lake:
    """Log files in two older slices, one of them under a savepoint, and in the newest one."""
    quiet = {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": metadata, "hoodie.table.cdc.enabled": "true"}
    lake = Lake(version, {"hoodie.datasource.write.table.type": "MERGE_ON_READ", **quiet})
    lake.upsert(row("a"), row("b"))
    for number in range(5):
        lake.upsert(row("a", f"a{number}", number + 2))
        if number == 2:
            lake.table.savepoints.create()
            lake.table.services.compact()
    return lake


def _states(lake: Lake, table: Table) -> Rows:
    """The rows as of each write, and now, and what changed when."""
    times = [one.requested for one in table.timeline().completed_writes() if one.action == "deltacommit"]
    version = table.config.table_version
    lake = Lake(version, lake.options | {"hoodie.write.table.version": version}, lake.uri)
    told = table.scan(query="cdc", begin="000").read_all().to_pylist()
    changes = {f"change {n}": {"at": one["ts_ms"], "is": one["op"]} for n, one in enumerate(told)}
    return {time: dict(lake.values(as_of=time)) for time in times} | {"now": dict(lake.values())} | changes


def _points(version: int, metadata: str) -> Iterator[int]:
    """The calls of a downgrade that have to do with names of log files, and some after them."""
    lake = _lake(version, metadata)
    counted = CountingStorage(lake.storage)
    _change(counted, 6)
    names = [call.n for call in counted.calls if call.path == LOG_RENAMES_FILE and call.op == "put"]
    yield from range(names[0], names[-1] + 8)


def _change(storage: Storage, to: int) -> None:
    upgrade(load_handle(storage, SystemEnv()), resolve({}), ENGINE, to)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("turn", "goal"), list(enumerate(GOALS)))
@pytest.mark.parametrize(("version", "metadata"), [(8, "true"), (9, "false")])
def test_states_of_the_past_keep_their_rows_whatever_follows_a_dead_downgrade(
    version: int, metadata: str, turn: int, goal: str
) -> None:
    seen = 0
    for point in list(_points(version, metadata))[turn :: len(GOALS)]:
        lake = _lake(version, metadata)
        states = _states(lake, lake.table)
        with pytest.raises(Crash):
            _change(CountingStorage(lake.storage, crash_at=point, torn=True), 6)
        table = Table.open(lake.uri)
        assert _states(lake, table) == states, f"call {point}"
        kinds = {finding.kind for finding in table.validate()}
        assert kinds <= {"version", "orphan", "properties", "timeline"}, f"call {point}: {table.validate()}"
        if load_renames(lake.storage) and table.config.table_version == version:
            seen += 1
            assert "version" in kinds
            with pytest.raises(Invalid, match="downgrade died"):
                table.services.rollback(table.timeline().completed_writes()[-1].requested)
        if goal.startswith("write") and table.config.table_version == version:
            lake.upsert(row("z"))
            states = {**states, **_states(lake, Table.open(lake.uri))}
        _change(lake.storage, 6 if goal.endswith("finish") else version)
        table = Table.open(lake.uri)
        assert {**states, **_states(lake, table)} == states, f"call {point}"
        assert table.validate() == [], f"call {point}"
    assert seen > 0
