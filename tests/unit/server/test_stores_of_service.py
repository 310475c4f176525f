"""A service and the store of its views: what is kept is found by the next service, and a store that fails costs no
answer.
"""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hoodie.server.service as module
from hoodie.remote.known_timeline import told
from hoodie.server import Service
from hoodie.server.routes import VIEW
from hoodie.server.stores.store import Edit, StoreFailed
from hoodie.state.handle import timeline_of
from hoodie.storage import Storage, open_storage
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lake import Lake, row
from hoodie.testing.view_stores import KINDS


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(uri=str(tmp_path / "lake"), options={"hoodie.metadata.enable": "false"})
    made.upsert(row("a", part="p"), row("b", part="q"))
    return made


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[CountingStorage]:
    """The storages a service opens from now on."""
    opened: list[CountingStorage] = []

    def counting(*arguments: Any) -> Storage:
        opened.append(CountingStorage(open_storage(*arguments)))
        return opened[-1]

    monkeypatch.setattr(module, "open_table_storage", counting)
    return opened


def slices(service: Service, lake: Lake, partition: str = "p") -> list[Any]:
    known = told(timeline_of(lake.handle()))
    path = VIEW + "slices/partition/latest/"
    answer = service.answer("GET", path, {"basepath": lake.table.uri, "partition": partition, **known})
    assert answer.status == 200, answer.body
    return list(json.loads(answer.body))


def listed(storages: list[CountingStorage]) -> set[str]:
    return {call.path for storage in storages for call in storage.calls if call.op in ("list", "list_dir")}


def restarted(service: Service, tmp_path: Path, kind: str) -> Service:
    service.close()
    del service
    gc.collect()
    return Service([str(tmp_path)], stores=KINDS[kind](tmp_path))


def test_the_next_service_lists_no_folder_that_rocksdb_knows(
    tmp_path: Path, lake: Lake, counted: list[CountingStorage]
) -> None:
    service = Service([str(tmp_path)], stores=KINDS["rocksdb"](tmp_path))
    before = slices(service, lake)
    assert listed(counted) >= {"p"}
    lake.upsert(row("a", "new", ts=2, part="p"))
    service = restarted(service, tmp_path, "rocksdb")
    counted.clear()
    after = slices(service, lake)
    assert after != before
    assert after[0]["fileId"] == before[0]["fileId"]
    assert listed(counted) == {lake.handle().profile.timeline_dir}
    slices(service, lake, "q")
    assert "q" in listed(counted)


@pytest.mark.parametrize("change", [lambda lake: None, lambda lake: lake.table.services.compact()], ids=["no", "plan"])
def test_a_plan_that_was_pending_is_found_again(tmp_path: Path, change: Callable[[Lake], object]) -> None:
    lake = Lake(uri=str(tmp_path / "mor"), options={"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    lake.upsert(row("a", part="p"))
    lake.upsert(row("a", "new", ts=2, part="p"))
    lake.table.services.schedule_compaction()
    service = Service([str(tmp_path)], stores=KINDS["rocksdb"](tmp_path))
    slices(service, lake)
    change(lake)
    service = restarted(service, tmp_path, "rocksdb")
    assert slices(service, lake) == slices(Service([str(tmp_path)]), lake)


def test_what_was_kept_of_another_version_is_not_used(tmp_path: Path) -> None:
    lake = Lake(6, uri=str(tmp_path / "old"))
    lake.upsert(row("a", part="p"))
    service = Service([str(tmp_path)], stores=KINDS["rocksdb"](tmp_path))
    slices(service, lake)
    lake.table.services.upgrade()
    service = restarted(service, tmp_path, "rocksdb")
    assert slices(service, lake) == slices(Service([str(tmp_path)]), lake)


def test_parts_that_say_nothing_are_not_used(tmp_path: Path, lake: Lake) -> None:
    stores = KINDS["rocksdb"](tmp_path)
    nonsense = {"timeline": b'{"release": 1', "replaced": b"[]", "paths": b"0"}
    stores.open(lake.table.uri).changed(Edit(parts=nonsense))
    service = Service([str(tmp_path)], stores=stores)
    assert len(slices(service, lake)) == 1


@pytest.mark.parametrize("kind", ["spilled", "rocksdb"])
@pytest.mark.parametrize("fails", ["files", "changed"])
def test_a_store_that_fails_costs_no_answer(
    tmp_path: Path, lake: Lake, kind: str, fails: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service([str(tmp_path)], stores=KINDS[kind](tmp_path))
    before = slices(service, lake)
    store = service._tables[lake.table.uri].view.store  # type: ignore[union-attr]
    monkeypatch.setattr(type(store), fails, _fail)
    made = lake.upsert(row("a", "new", ts=2, part="p"))
    with caplog.at_level(logging.WARNING):
        (after,) = slices(service, lake)
        slices(service, lake, "q")
    assert (before[0]["fileId"], made.instant) == (after["fileId"], after["baseInstant"])
    assert [record.message.count("is kept in memory") for record in caplog.records] == [1]
    monkeypatch.undo()
    del store
    assert slices(restarted(service, tmp_path, kind), lake) == [after]


def _fail(*_: object) -> None:
    raise StoreFailed("No space left on device")


def test_a_refresh_forgets_what_is_kept(tmp_path: Path, lake: Lake) -> None:
    service = Service([str(tmp_path)], stores=KINDS["rocksdb"](tmp_path))
    slices(service, lake)
    stray = next((tmp_path / "lake" / "p").glob("*.parquet"))
    stray.rename(stray.with_name(stray.name.replace("_0-", "_1-", 1)))
    known = slices(service, lake)
    assert service.answer("POST", VIEW + "refresh/", {"basepath": lake.table.uri}).status == 200
    assert slices(service, lake) != known
