"""Stores of views: one contract for all, and what each of them promises beside it."""

from __future__ import annotations

import gc
import logging
import os
import random
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoodie.config import resolve
from hoodie.errors import Invalid, Unavailable
from hoodie.server.stores.choice import ROCKS_PATH, SPILL_FOLDER, TYPE, stores_of
from hoodie.server.stores.memory import MemoryStore, MemoryStores
from hoodie.server.stores.packed import FileChange, pack
from hoodie.server.stores.rocks import FOLDER, RocksStores
from hoodie.server.stores.spill import SpillStore, SpillStores
from hoodie.server.stores.store import Edit, NotNewest, StoreFailed, Stores, ViewStore
from hoodie.testing.view_store_contract import ViewStoreContract, base, shown

SOME = {"p": pack([(base("a"), 1), (base("b"), 2)]), "q": pack([(base("c"), 3)])}


class TestMemoryStore(ViewStoreContract):
    @pytest.fixture
    def stores(self) -> Stores:  # type: ignore[override]
        return MemoryStores()


class TestSpillStore(ViewStoreContract):
    @pytest.fixture(params=[0, 1 << 20], ids=["nothing in memory", "all in memory"])
    def stores(self, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stores]:
        made = SpillStores(str(tmp_path), request.param)
        yield made
        made.close()


class TestRocksStore(ViewStoreContract):
    @pytest.fixture
    def stores(self, tmp_path: Path) -> Iterator[Stores]:
        made = RocksStores(str(tmp_path), 1 << 20)
        yield made
        made.close()


def filled(stores: Stores) -> ViewStore:
    return stores.open("/t").changed(Edit(loaded=SOME, parts={"timeline": b"then"}))


def test_spilled_files_have_no_name(tmp_path: Path) -> None:
    store = filled(SpillStores(str(tmp_path), 0))
    assert list(tmp_path.iterdir()) == []
    assert set(shown(store)) == {"p", "q"}


def test_memory_of_spilled_views_is_bounded_for_all_tables(tmp_path: Path) -> None:
    stores = SpillStores(str(tmp_path), 10_000)
    files = [(base(f"{number:030}"), 1) for number in range(50)]
    for table in "abc":
        stores.open(table).changed(Edit(loaded={f"p{number}": pack(files) for number in range(9)}))
    cache = stores._cache
    assert 5_000 < cache.size == sum(map(len, cache.found.values())) <= 10_000


def test_what_no_longer_counts_in_a_spilled_file_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoodie.server.stores.spill.MIN_GARBAGE_BYTES", 1000)
    store: ViewStore = filled(SpillStores(str(tmp_path), 0))
    first, before = store, shown(store)
    for turn in range(50):
        store = store.changed(Edit(changes={"p": FileChange({base("a"): turn})}))
        assert isinstance(store, SpillStore)
        assert store.file is not None
        assert store.file.size < 3000
    assert shown(store) == before | {"p": {base("a"): 49, base("b"): 2}}
    assert shown(first) == before


@pytest.mark.parametrize("harm", ["cut", "changed", "full"])
def test_a_spilled_file_that_is_harmed_is_said(tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(SpillStores(str(tmp_path), 0))
    assert isinstance(store, SpillStore)
    assert store.file is not None
    number = store.file._file.fileno()
    if harm == "full":
        monkeypatch.setattr(os, "pwrite", _no_space)
        with pytest.raises(StoreFailed, match="No space left"):
            store.changed(Edit(loaded=SOME))
        assert set(shown(store)) == {"p", "q"}
        return
    os.truncate(number, 40) if harm == "cut" else os.pwrite(number, b"x", 40)
    with pytest.raises(StoreFailed, match="damaged"):
        shown(store)


def _no_space(*_: object) -> int:
    raise OSError(28, "No space left on device")


def test_rocksdb_has_after_a_start_what_it_had(tmp_path: Path) -> None:
    stores = RocksStores(str(tmp_path), 1 << 20)
    before = shown(filled(stores))
    stores.close()
    gc.collect()
    store = RocksStores(str(tmp_path), 1 << 20).open("/t")
    assert shown(store) == before
    assert store.parts() == {"timeline": b"then"}
    assert stat.S_IMODE((tmp_path / FOLDER).stat().st_mode) == 0o700


def test_emptying_takes_parts_away_too(tmp_path: Path) -> None:
    store = filled(RocksStores(str(tmp_path), 1 << 20))
    assert store.changed(Edit(is_emptied=True, parts={"paths": b"1"})).parts() == {"paths": b"1"}


def test_only_the_newest_value_is_changed(tmp_path: Path) -> None:
    store = filled(RocksStores(str(tmp_path), 1 << 20))
    now = store.changed(Edit(dropped=["p"]))
    with pytest.raises(NotNewest):
        store.changed(Edit(dropped=["q"]))
    assert set(shown(now)) == {"q"}


@pytest.mark.parametrize("seed", range(12))
def test_whoever_kills_rocksdb_leaves_what_it_had_after_some_edit(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    stores = RocksStores(str(tmp_path / "then"), 1 << 20)
    store: ViewStore = stores.open("/t")
    states = [({}, {})]
    for turn in range(20):
        edit = Edit(
            loaded={f"p{turn}": SOME["p"]}, changes={f"p{turn - 1}": FileChange({base("n"): turn})} if turn else {}
        )
        store = store.changed(Edit(loaded=edit.loaded, changes=edit.changes, parts={"turn": b"%d" % turn}))
        states.append((shown(store), dict(store.parts())))
    shutil.copytree(tmp_path / "then", tmp_path / "now")
    for path in (tmp_path / "now" / FOLDER).glob("*.log"):
        data = path.read_bytes()
        path.write_bytes(data[: chance.randrange(len(data) + 1)])
    found = RocksStores(str(tmp_path / "now"), 1 << 20).open("/t")
    assert (shown(found), dict(found.parts())) in states


@pytest.mark.parametrize(
    "harm", ["damaged", "of another format", "of somebody else", "distrusted", "with a folder in it"]
)
def test_what_rocksdb_cannot_use_is_made_anew(tmp_path: Path, harm: str, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / FOLDER
    kept = tmp_path / "kept"
    kept.write_text("not ours")
    if harm == "of somebody else":
        folder.mkdir()
        (folder / "CURRENT").write_text("what is this")
    else:
        stores = RocksStores(str(tmp_path), 1 << 20)
        filled(stores)
        if harm == "of another format":
            stores.db.put(b"hoodie view store", b"0")
        if harm == "distrusted":
            stores.distrust()
        stores.close()
        del stores
        gc.collect()
    if harm == "damaged":
        for path in folder.glob("MANIFEST*"):
            path.write_bytes(path.read_bytes()[:20] + b"?" * 40)
    if harm == "with a folder in it":
        (folder / "link").symlink_to(tmp_path)
    with caplog.at_level(logging.WARNING):
        store = RocksStores(str(tmp_path), 1 << 20).open("/t")
    assert shown(store) == {}
    assert len(caplog.records) == 1
    assert "made anew" in caplog.text
    assert shown(store.changed(Edit(loaded=SOME))).keys() == SOME.keys()
    assert kept.read_text() == "not ours"


def test_a_link_is_not_followed_and_another_service_not_disturbed(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / FOLDER).symlink_to(real)
    with pytest.raises(Invalid, match="link"):
        RocksStores(str(tmp_path / "base"), 1 << 20)
    assert list(real.iterdir()) == []
    store = filled(RocksStores(str(real), 1 << 20))
    with pytest.raises(Unavailable, match="another process"):
        RocksStores(str(real), 1 << 20)
    assert set(shown(store)) == {"p", "q"}


def test_the_keys_of_hudi_choose(tmp_path: Path) -> None:
    def chosen(kind: str) -> ViewStore:
        options = {TYPE: kind, SPILL_FOLDER: str(tmp_path), ROCKS_PATH: str(tmp_path / "rocks")}
        return stores_of(resolve(options)).open("/t")

    assert isinstance(stores_of(resolve({})).open("/t"), MemoryStore)
    assert isinstance(chosen("REMOTE_FIRST"), MemoryStore)
    assert isinstance(chosen("SPILLABLE_DISK"), SpillStore)
    assert chosen("EMBEDDED_KV_STORE").outlives
    with pytest.raises(Invalid, match="There is no folder"):
        stores_of(resolve({TYPE: "SPILLABLE_DISK", SPILL_FOLDER: str(tmp_path / "none")}))


def test_a_scan_of_rocksdb_that_meets_damage_does_not_just_end(tmp_path: Path) -> None:
    stores = RocksStores(str(tmp_path), 1 << 20)
    files = pack((base(f"{number:030}"), number) for number in range(20_000))
    store = stores.open("/t").changed(Edit(loaded={"p": files}))
    stores.db.flush()
    (table,) = (tmp_path / FOLDER).glob("*.sst")
    data = table.read_bytes()
    table.write_bytes(data[: len(data) // 2] + b"?" * 100 + data[len(data) // 2 + 100 :])
    with pytest.raises(StoreFailed, match="checksum"):
        store.files("p")


def test_a_value_that_is_not_the_newest_reads_on_whoever_writes(tmp_path: Path) -> None:
    stores = RocksStores(str(tmp_path), 1 << 20)
    first = filled(stores)
    before = shown(first)
    again = stores.open("/t")
    again.changed(Edit(is_emptied=True))
    assert shown(first) == shown(again) == before
