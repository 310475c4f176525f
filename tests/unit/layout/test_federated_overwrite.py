"""A table with storage paths overwritten by one of another kind: the same layout, and no moment that loses both."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt, HudiError, Invalid, Unavailable, Unsupported
from hoodie.services.ingest import Request
from hoodie.services.save import SaveMode, save_rows
from hoodie.spec import keys
from hoodie.state.handle import load_handle
from hoodie.storage import MemoryStorage, Storage
from hoodie.table import Table, as_source
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import Awake
from hoodie.testing.two_stores import RIDES, ROOT_URL, layout_options, two_stores
from hoodie.timeline import is_table

pytestmark = pytest.mark.deep

_names = itertools.count()
ENGINE = LocalEngine(1)
LAID = {**RIDES, **layout_options()}
KINDS = {
    "partitions": {"hoodie.datasource.write.partitionpath.field": "v"},
    "keys": {"hoodie.datasource.write.recordkey.field": "id,v"},
    "version": {"hoodie.write.table.version": "6"},
    "type": {"hoodie.datasource.write.table.type": "COPY_ON_WRITE", "hoodie.datasource.write.recordkey.field": "v"},
    "name": {"hoodie.table.name": "other"},
}


def rows(v: int) -> pa.Table:
    return pa.table({"id": list(range(8)), "p": [f"p{i % 2}" for i in range(8)], "v": [v] * 8})


def saved(storage: Storage, mode: SaveMode, v: int, options: dict[str, Any]) -> object:
    operation = "bulk_insert" if mode == "overwrite" else "upsert"
    request = Request(operation, as_source(rows(v)), resolve(options), ENGINE)
    return save_rows(two_stores(storage), request, mode, Awake())


def opened(storage: Storage) -> Table:
    return Table(load_handle(two_stores(storage), Awake()), RIDES, ENGINE)


def values(storage: Storage) -> set[int]:
    found = opened(storage).scan(columns=["id", "v"]).read_all()
    assert sorted(found["id"].to_pylist()) == list(range(8))
    return set(found["v"].to_pylist())


def files(storage: Storage) -> dict[str, bytes]:
    return {file.path: storage.read(file.path) for file in storage.list("")}


@pytest.fixture
def storage():
    made = MemoryStorage(f"overwritten-{next(_names)}", Awake())
    saved(made, "append", 0, LAID)
    saved(made, "append", 0, RIDES)
    yield made
    made.forget()


@pytest.mark.parametrize("other", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("says", [RIDES, LAID], ids=["layout left out", "layout said again"])
def test_other_kind_takes_the_place_with_the_same_layout(storage, other, says):
    old = set(opened(storage).storage.roots[0].list(""))
    layout = opened(storage).storage.layout
    saved(storage, "overwrite", 7, {**says, **other})
    table = opened(storage)
    assert values(storage) == {7}
    assert table.storage.layout == layout
    assert table.config.raw[keys.TYPE].endswith("_FEDERATED")
    left = set(table.storage.roots[0].list(""))
    assert {one.path for one in left & old} == {".hoodie_owners/rides"}
    assert not [path for path in files(storage) if path.startswith("table/p") and "partition_metadata" not in path]
    assert table.config.is_metadata_table_ready
    assert table.validate() == []
    assert not [one for one in table.doctor().concerns if one.severity != "note"]
    saved(storage, "append", 8, {**RIDES, **other})
    assert opened(storage).validate() == []


def test_other_places_are_refused_with_the_way_to_them(storage):
    before = files(storage)
    with pytest.raises(Unsupported, match="hoodie relayout"):
        saved(storage, "overwrite", 7, {**RIDES, **KINDS["keys"], "hoodie.storage.path": "memory://two-stores/else"})
    with pytest.raises(Invalid, match="needs its metadata table"):
        saved(storage, "overwrite", 7, {**RIDES, **KINDS["keys"], "hoodie.metadata.enable": "false"})
    assert files(storage) == before
    plain = MemoryStorage(f"overwritten-{next(_names)}", Awake())
    saved(plain, "append", 0, RIDES)
    before = files(plain)
    with pytest.raises(Unsupported, match="hoodie relayout"):
        saved(plain, "overwrite", 7, {**LAID, **KINDS["keys"]})
    assert files(plain) == before


@pytest.mark.parametrize("name", ["partitions", "version"])
def test_crash_at_any_call_of_either_store_loses_neither_table(storage, name):
    """The old table until the switch, then an error that says so until a write finishes it, then the new one."""
    options = {**RIDES, **KINDS[name]}
    world = files(storage)

    def begun() -> MemoryStorage:
        made = MemoryStorage(f"overwritten-{next(_names)}", Awake())
        for path, data in world.items():
            made.put(path, data)
        return made

    counted = CountingStorage(begun())
    saved(counted, "overwrite", 7, options)
    seen = []
    for at in sorted({*range(1, len(counted.calls), 7), len(counted.calls)}):
        again = begun()
        with suppress(Crash):
            saved(CountingStorage(again, crash_at=at, torn=True), "overwrite", 7, options)
        try:
            state = "old" if values(again) == {0} else "new"
        except (Unavailable, Corrupt) as error:
            state = "switching" if "overwritten by one of another kind" in str(error) else "without metadata"
            assert state == "switching" or "hoodie doctor" in str(error), at
        seen.append(state)
        if state == "without metadata":
            opened(again).indexes.rebuild()
            assert values(again) == {7}, at
        saved(
            again,
            "append",
            9,
            {**(RIDES if state == "old" else options)},
        )
        found = set(opened(again).scan().read_all()["v"].to_pylist())
        assert found == ({9} if state == "old" or name == "version" else {7, 9}), (at, state)
        assert opened(again).validate() == [], at
        again.forget()
    assert seen[0] == "old"
    assert {"switching", "new"} <= set(seen)


def test_switch_is_not_finished_in_places_that_the_caller_does_not_allow(storage):
    counted = CountingStorage(storage)
    probe = MemoryStorage(f"overwritten-{next(_names)}", Awake())
    for path, data in files(storage).items():
        probe.put(path, data)
    counted = CountingStorage(probe)
    saved(counted, "overwrite", 7, {**RIDES, **KINDS["keys"]})
    gone = next(call.n for call in counted.calls if call.op == "delete" and call.path.endswith(keys.PROPERTIES_FILE))
    with pytest.raises(Crash):
        saved(CountingStorage(storage, crash_at=gone + 1), "overwrite", 7, {**RIDES, **KINDS["keys"]})
    assert not is_table(two_stores(storage))
    before = files(storage)
    home = two_stores(storage).outer
    request = Request("upsert", as_source(rows(9)), resolve(RIDES), ENGINE)
    with pytest.raises(HudiError):
        save_rows(home, request, "append", Awake())
    assert {k: v for k, v in files(storage).items() if k.startswith("root/")} == {
        k: v for k, v in before.items() if k.startswith("root/")
    }
    saved(storage, "append", 9, {**RIDES, **KINDS["keys"]})
    assert opened(storage).validate() == []
    assert ROOT_URL in opened(storage).config.raw[keys.STORAGE_PATH]
