"""Dropping a table: in which order, with the lock held to the end, and what is left when somebody looks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from obstore.store import MemoryStore

from hoodie.errors import Conflict, Invalid, Unavailable
from hoodie.locks import NO_WAIT, held_lock
from hoodie.services.dropping import drop_table
from hoodie.spec import keys
from hoodie.storage import object as object_module
from hoodie.storage import open_storage
from hoodie.storage.lease import LEASE_PATH
from hoodie.testing.counting_storage import Call, CountingStorage
from hoodie.testing.lake import Awake, Lake, row

KINDS = ["local", "object"]


@pytest.fixture
def uri(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    store = MemoryStore()
    monkeypatch.setattr(object_module, "open_store", lambda location, options: store)
    return str(tmp_path / "t") if request.param == "local" else f"s3://bucket/{tmp_path.name}"


def full(uri: str, version: int = 9) -> Lake:
    lake = Lake(version, uri=uri)
    lake.upsert(row("a"), row("b", part="q"))
    return lake


@pytest.mark.parametrize("uri", KINDS, indirect=True)
def test_lock_is_held_until_the_table_is_gone_and_goes_with_it(uri: str) -> None:
    lake = full(uri)
    lock = LEASE_PATH if uri.startswith("s3") else f"{keys.LOCKS_DIR}/writer.flock"
    held: list[bool] = []

    def look(call: Call) -> None:
        held.append(lock in lake.files())
        with pytest.raises(Conflict), held_lock(open_storage(uri), "a first write"):
            pass

    class Watched(CountingStorage):
        def delete_dir(self, path: str) -> int:
            removed = super().delete_dir(path)
            look(self.calls[-1])
            return removed

    drop_table(Watched(lake.storage), Awake(), NO_WAIT)
    assert set(held) == {True}
    assert lake.files() == {}
    assert not Path(uri).exists()
    assert full(uri).values() == {"a": "a", "b": "a"}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("uri", ["local"], indirect=True)
def test_drop_that_dies_leaves_a_table_that_can_be_dropped(uri: str, version: int) -> None:
    for number in range(2, 100):
        lake = full(uri, version)
        table = lake.table
        try:
            drop_table(CountingStorage(lake.storage, fail_at=number), Awake(), NO_WAIT)
        except Unavailable:
            if lake.files():
                lake.table.drop()
        else:
            break
        assert lake.files() == {}
        with pytest.raises(Invalid, match="There is no table"):
            table.timeline()
    assert number > 6


@pytest.mark.parametrize("uri", KINDS, indirect=True)
def test_services_of_a_dropped_table_leave_nothing_that_reads_as_damage(uri: str) -> None:
    lake = full(uri)
    table = lake.table
    table.drop()
    for act in (
        table.services.clean,
        table.services.archive,
        table.indexes.rebuild,
        table.drop,
        table.validate,
        table.timeline,
    ):
        try:
            act()
        except Invalid as error:
            assert "There is no table" in str(error)
    assert not Path(uri).exists()
    assert set(lake.files()) <= {LEASE_PATH}
    with pytest.raises(Invalid, match="There is no table"):
        lake.table.timeline()
    assert full(uri).values() == {"a": "a", "b": "a"}


@pytest.mark.parametrize("uri", ["local"], indirect=True)
def test_empty_folder_of_a_table_is_no_table(uri: str) -> None:
    Path(uri, keys.LOCKS_DIR).mkdir(parents=True)
    with pytest.raises(Invalid, match="There is no table"):
        Lake(uri=uri).table.timeline()
    assert full(uri).values() == {"a": "a", "b": "a"}
