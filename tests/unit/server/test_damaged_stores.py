"""Views whose store is damaged on disk, while the service runs or before it starts: pages and figures are given all the
same, of the table concerned from a view that is loaded anew.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra `server`")

from prometheus_client.parser import text_string_to_metric_families

from hoodie.server import Service
from hoodie.server.metrics import Metrics
from hoodie.server.pages import PARTITION, TABLE, Pages
from hoodie.server.stores.rocks import FOLDER
from hoodie.server.stores.store import StoreFailed
from hoodie.server.turns import Turns
from hoodie.testing.lake import Lake, row
from hoodie.testing.page_reader import ensure_harmless
from hoodie.testing.view_stores import KINDS

Damage = Callable[[int, int], object]
DAMAGES: dict[str, Damage] = {
    "garbled": lambda file, size: os.pwrite(file, os.urandom(size), 0),
    "cut": lambda file, size: os.ftruncate(file, size // 2),
    "emptied": lambda file, size: os.ftruncate(file, 0),
}


@pytest.fixture
def lakes(tmp_path: Path) -> list[Lake]:
    made = [Lake(uri=str(tmp_path / name), options={"hoodie.metadata.enable": "false"}) for name in ("one", "two")]
    for lake in made:
        lake.upsert(*(row(f"k{number}", part=f"p{number}") for number in range(20)))
    return made


def loaded(tmp_path: Path, kind: str, lakes: list[Lake]) -> Service:
    service = Service([str(tmp_path)], stores=KINDS[kind](tmp_path))
    for lake in lakes:
        service.with_view(lake.uri, lambda view: view.loaded())
    return service


def damage_all(service: Service, tmp_path: Path, kind: str, damage: Damage) -> None:
    """Damages what lies on disk of the views of all tables, and has none of it in memory."""
    if kind == "rocksdb":
        for path in (tmp_path / "views" / FOLDER).glob("*.sst"):
            with path.open("r+b") as file:
                damage(file.fileno(), path.stat().st_size)
        return
    stores: Any = service._stores
    stores.close()
    for table in service._tables.values():
        file = table.view.store.file  # type: ignore[union-attr]
        damage(file._file.fileno(), file.size)


def figures(service: Service) -> dict[str, dict[str, float]]:
    """Values by name, and by the table they name."""
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(Metrics(service, Turns(1.0)).text().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[sample.labels.get("table", "")] = sample.value
    return found


def flush(service: Service) -> None:
    """Has what RocksDB keeps in its files, not in its log."""
    stores: Any = service._stores
    if hasattr(stores, "db"):
        stores.db.flush()


@pytest.mark.parametrize("kind", ["rocksdb", "spilled"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_pages_are_shown_of_a_view_that_is_damaged_while_the_service_runs(
    damage: str, kind: str, tmp_path: Path, lakes: list[Lake]
) -> None:
    service = loaded(tmp_path, kind, lakes)
    flush(service)
    pages = Pages(service)
    damage_all(service, tmp_path, kind, DAMAGES[damage])
    for path in (TABLE, PARTITION):
        found = pages.answer(path, {"basepath": lakes[0].uri, "partition": "p7"})
        assert found.status == 200, found.body
        ensure_harmless(found.body.decode())
    assert figures(service)["hoodie_view_store_failed"][lakes[0].uri] == 1


@pytest.mark.parametrize("damage", DAMAGES)
def test_figures_are_given_of_a_view_that_is_damaged(damage: str, tmp_path: Path, lakes: list[Lake]) -> None:
    service = loaded(tmp_path, "rocksdb", lakes)
    flush(service)
    damage_all(service, tmp_path, "rocksdb", DAMAGES[damage])
    assert figures(service)["hoodie_view_store_failed"] == {lake.uri: 1 for lake in lakes}
    assert Pages(service).answer(TABLE, {"basepath": lakes[1].uri}).status == 200
    assert figures(service)["hoodie_partitions"] == {"": 20}


@pytest.mark.parametrize("is_busy", [False, True])
def test_figures_of_other_tables_are_given_beside_one_whose_store_fails(
    is_busy: bool, tmp_path: Path, lakes: list[Lake], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while somebody makes the next view of it, who may wait for a storage that hangs."""
    service = loaded(tmp_path, "spilled", lakes)
    bad = service._tables[lakes[0].uri]
    kind, partitions = type(bad.view.store), type(bad.view.store).partitions  # type: ignore[union-attr]
    failing = bad.view.store  # type: ignore[union-attr]
    monkeypatch.setattr(kind, "partitions", lambda store: _fail() if store is failing else partitions(store))
    if is_busy:
        bad.lock = _Busy()  # type: ignore[assignment]
    found = figures(service)
    assert found["hoodie_view_store_failed"] == {lakes[0].uri: 1}
    assert found["hoodie_partitions"] == {"": 20}
    assert found["hoodie_tables"] == {"": 2 if is_busy else 1}


class _Busy:
    def acquire(self, *, blocking: bool = True) -> bool:
        assert not blocking, "it would wait for ever"
        return False


def _fail() -> tuple[str, ...]:
    raise StoreFailed("its file is gone")


def test_without_a_failure_no_table_is_named(tmp_path: Path, lakes: list[Lake]) -> None:
    assert "hoodie_view_store_failed" not in figures(loaded(tmp_path, "memory", lakes))


@pytest.mark.parametrize("damage", [*DAMAGES, "removed"])
@pytest.mark.parametrize("ending", ["sst", "log", "", "CURRENT", "MANIFEST"])
def test_pages_are_shown_of_a_view_that_was_damaged_before_the_service_started(
    damage: str, ending: str, tmp_path: Path, lakes: list[Lake]
) -> None:
    service = loaded(tmp_path, "rocksdb", lakes)
    if ending == "sst":
        flush(service)
    service.close()
    del service
    gc.collect()
    for path in (tmp_path / "views" / FOLDER).iterdir():
        if path.suffix == f".{ending}" or path.name.startswith(ending):
            if damage == "removed":
                path.unlink()
                continue
            with path.open("r+b") as file:
                DAMAGES[damage](file.fileno(), path.stat().st_size)
    service = Service([str(tmp_path)], stores=KINDS["rocksdb"](tmp_path))
    for path in (TABLE, PARTITION):
        found = Pages(service).answer(path, {"basepath": lakes[0].uri, "partition": "p7"})
        assert found.status == 200, found.body
        assert "p7" in ensure_harmless(found.body.decode()).text()
    assert figures(service)["hoodie_partitions"] == {"": 20}
