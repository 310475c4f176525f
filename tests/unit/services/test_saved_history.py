"""Cleans, archives, savepoints and restores one after the other: what was committed stays, what is gone is said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.spec.keys import LOG_RENAMES_FILE
from hoodie.state.handle import load_handle
from hoodie.table import Table
from hoodie.testing.counting_storage import Call, CountingStorage, Crash
from hoodie.testing.lake import Awake, Lake, row

FEW = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}

versions = pytest.mark.parametrize("version", [6, 8, 9])


def _dies_at_second_delete() -> Callable[[Call], None]:
    deleted: list[str] = []

    def watch(call: Call) -> None:
        if call.op == "delete" and call.path.endswith(".parquet"):
            deleted.append(call.path)
        if len(deleted) > 1:
            raise Crash(str(call))

    return watch


@versions
@pytest.mark.parametrize("metadata", ["true", "false"])
def test_a_restore_that_leaves_only_saved_commits_keeps_archived_rows(version: int, metadata: str) -> None:
    lake = Lake(version, {**QUIET, "hoodie.metadata.enable": metadata})
    for number in range(6):
        lake.upsert(row(f"k{number}", part=f"p{number}"))
    point = lake.table.savepoints.create()
    before = lake.values()
    for number in range(6, 8):
        lake.upsert(row(f"k{number}", part=f"p{number}"))
    lake.table.services.clean(**FEW)
    if metadata == "true":  # it keeps commits that its own history needs
        lake.table.services.archive(**FEW)
    else:
        assert lake.table.services.archive(**FEW).instants > 0
    lake.table.services.restore(point.instant)
    assert lake.values() == before
    lake.table.savepoints.delete(point.instant)
    assert lake.values() == before
    assert lake.table.savepoints.create().instant == point.instant
    assert lake.values() == before
    lake.upsert(row("new"))
    assert lake.values() == {**before, "new": "a"}


@versions
def test_states_that_a_dead_clean_may_have_begun_to_delete_are_refused(version: int) -> None:
    lake = Lake(version, {**QUIET, "hoodie.metadata.enable": "false"})
    times = [lake.upsert(row("k", str(number), number)).instant for number in range(5)]
    clean = {"hoodie.clean.commits.retained": "1"}
    dying = CountingStorage(lake.storage, on_call=_dies_at_second_delete())
    with pytest.raises(Crash):
        Table(load_handle(dying, Awake()), lake.options, LocalEngine(1)).services.clean(**clean)
    with pytest.raises(Invalid, match="cleaned up"):
        lake.values(as_of=times[0])
    assert lake.values(as_of=times[-1]) == lake.values() == {"k": "4"}
    lake.table.services.clean(**clean)
    with pytest.raises(Invalid, match="cleaned up"):
        lake.values(as_of=times[0])


def test_a_restore_waits_until_a_dead_downgrade_is_settled() -> None:
    lake = Lake(9, {**QUIET, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    lake.upsert(row("a"))
    first = lake.table.savepoints.create()
    for number in range(4):
        lake.upsert(row("a", str(number), number + 2))
    before = lake.values()
    dying = CountingStorage(lake.storage, on_call=_dies_when_log_names_are_listed())
    with pytest.raises(Crash):
        Table(load_handle(dying, Awake()), lake.options, LocalEngine(1)).services.upgrade(6)
    assert lake.values() == before
    with pytest.raises(Invalid, match="downgrade died") as refused:
        lake.table.services.restore(first.instant)
    assert "--to 9" in str(refused.value.remedy)
    lake.table.services.upgrade(9)
    assert lake.values() == before
    lake.table.services.restore(first.instant)
    assert lake.values() == {"a": "a"}


def _dies_when_log_names_are_listed() -> Callable[[Call], None]:
    listed: list[Call] = []

    def watch(call: Call) -> None:
        if listed:
            raise Crash(str(call))
        if call.op == "put" and call.path == LOG_RENAMES_FILE:
            listed.append(call)

    return watch
