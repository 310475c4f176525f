"""The metadata table is made anew from all prefixes of all roots, or not at all."""

import itertools

import pyarrow as pa
import pytest

import hoodie
from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt, Unavailable
from hoodie.layout.federated import COPY, STRANGER
from hoodie.metadata import open_metadata_table
from hoodie.services.ingest import Request
from hoodie.services.save import save_rows
from hoodie.state.handle import load_handle, open_handle, timeline_of
from hoodie.storage import MemoryStorage, Storage
from hoodie.table import as_source
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import Awake
from hoodie.testing.two_stores import RIDES, layout_options, two_stores

pytestmark = pytest.mark.deep

_names = itertools.count()
ENGINE = LocalEngine(1)
OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.compact.inline": "false",
}


@pytest.fixture
def place():
    name = f"repair-{next(_names)}"
    uri, root = f"memory://{name}/table", f"memory://{name}/root"
    options = OPTIONS | {"hoodie.storage.path": root, "hoodie.storage.strategy": "bits:6"}
    table = hoodie.Table.create(uri, schema=rows(1).schema, options=options)
    table.upsert(rows(*range(60)))
    table.upsert(rows(*range(0, 60, 2), v=1))
    table.upsert(rows(1, v=8))
    table.services.rollback(table.timeline().completed_writes()[-1].requested)
    yield uri, MemoryStorage(f"{name}/root")
    MemoryStorage(f"{name}/table").forget()
    MemoryStorage(f"{name}/root").forget()


def rows(*ids, v=0):
    return pa.table({"id": list(ids), "p": [f"p{i % 12}" for i in ids], "v": [v for _ in ids]})


def listed(uri):
    handle = open_handle(uri, {})
    found = open_metadata_table(handle.storage, handle.config, timeline_of(handle)).files(None)
    return {one.path: one.size_bytes for files in found for one in files.everything}


def content(uri):
    found = hoodie.Table.open(uri).scan(columns=["id", "v"]).read_all().to_pydict()
    return dict(zip(found["id"], found["v"], strict=True))


def data_names(root):
    return sorted(f.path for f in root.list("") if not f.path.startswith(".hoodie_owners"))


def test_deleted_metadata_table_comes_back_equal(place):
    uri, root = place
    before, rows_before = listed(uri), content(uri)
    assert len(before) == 18
    MemoryStorage(uri.removeprefix("memory://")).delete_dir(".hoodie/metadata")
    with pytest.raises(Corrupt, match="doctor"):
        content(uri)
    hoodie.Table.open(uri).indexes.rebuild()
    assert listed(uri) == before
    assert content(uri) == rows_before
    assert data_names(root)


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("plan", ["compaction", "clustering"])
def test_metadata_table_comes_back_while_a_plan_is_pending(version, plan):
    """In version 6, too, where the plan's instant is older than all that makes the metadata table."""
    name = f"repair-{next(_names)}"
    uri = f"memory://{name}/table"
    options = OPTIONS | {"hoodie.storage.path": f"memory://{name}/root", "hoodie.write.table.version": str(version)}
    table = hoodie.Table.create(uri, schema=rows(1).schema, options=options)
    table.upsert(rows(*range(24)))
    if plan == "compaction":
        table.upsert(rows(1, v=1))
        assert table.services.schedule_compaction() is not None
    else:
        by_value = {"hoodie.clustering.plan.strategy.sort.columns": "v"}
        assert table.services.cluster(op="schedule", **by_value) is not None
        table.append(rows(100, v=1))
    before, rows_before = listed(uri), content(uri)
    MemoryStorage(f"{name}/table").delete_dir(".hoodie/metadata")
    table.indexes.rebuild()
    assert listed(uri) == before
    assert content(uri) == rows_before
    for number in range(200, 212):  # it compacts itself on the way, where nothing is pending
        table.append(rows(number))
    table.services.compact() if plan == "compaction" else table.services.cluster(op="execute")
    assert not table.timeline().pending()
    table.upsert(rows(2, v=3))
    recorded = listed(uri)
    assert content(uri) == rows_before | dict.fromkeys(range(200, 212), 0) | {2: 3}
    assert table.validate() == []
    table.indexes.rebuild()
    assert listed(uri) == recorded
    for folder in ("table", "root"):
        MemoryStorage(f"{name}/{folder}").forget()


@pytest.mark.parametrize("version", [6, 9])
def test_metadata_table_comes_back_whatever_a_dead_writer_left(version):
    options = {**RIDES, **layout_options("bits:2"), "hoodie.write.table.version": str(version)}
    first = MemoryStorage(f"repair-{next(_names)}", Awake())
    made = Request("upsert", as_source(rows(*range(12))), resolve(options), ENGINE)
    save_rows(two_stores(first), made, "append", Awake())
    pending = 0
    for at in itertools.count(1):
        storage = copied(first)
        try:
            opened(CountingStorage(storage, crash_at=at)).upsert(rows(*range(12), v=5))
        except Crash:
            left = values(storage)
        else:
            break
        pending += bool(opened(storage).timeline().pending())
        storage.delete_dir("table/.hoodie/metadata")
        opened(storage).indexes.rebuild()
        assert values(storage) == left, at
        opened(storage).upsert(rows(50, v=9))
        assert values(storage) == left | {50: 9}, at
        assert opened(storage).validate() == [], at
        storage.forget()
    assert pending > 5
    first.forget()


def copied(storage: MemoryStorage) -> MemoryStorage:
    made = MemoryStorage(f"repair-{next(_names)}", Awake())
    for file in storage.list(""):
        made.put(file.path, storage.read(file.path))
    return made


def opened(storage: Storage) -> hoodie.Table:
    return hoodie.Table(load_handle(two_stores(storage), Awake()), RIDES, ENGINE)


def values(storage: Storage) -> dict[int, int]:
    found = opened(storage).scan(columns=["id", "v"]).read_all().to_pydict()
    return dict(zip(found["id"], found["v"], strict=True))


def test_file_that_is_nowhere_stops_the_repair_until_it_is_accepted(place):
    uri, root = place
    before = listed(uri)
    lost = next(path for path in data_names(root) if ".log." in path)
    data = root.read(lost)
    root.delete(lost)
    table = hoodie.Table.open(uri)
    with pytest.raises(Unavailable, match=r"1 files that commits wrote .* --accept-missing"):
        table.indexes.rebuild()
    assert listed(uri) == before
    root.put(lost, data)
    table.indexes.rebuild()
    assert listed(uri) == before
    root.delete(lost)
    table.indexes.rebuild(accept_missing=True)
    assert set(before) - set(listed(uri)) == {lost.split("/", 2)[2]}


def test_root_that_is_not_mounted_stops_the_repair(place):
    uri, root = place
    before = listed(uri)
    files = {path: root.read(path) for path in (f.path for f in root.list(""))}
    root.delete_dir("")
    with pytest.raises(Unavailable, match="does not say whose"):
        hoodie.Table.open(uri).indexes.rebuild()
    for path, data in files.items():
        root.put(path, data)
    assert listed(uri) == before
    assert not hoodie.Table.open(uri).doctor().concerns


def test_orphans_are_found_under_any_prefix_and_strays_are_told_and_left(place):
    uri, root = place
    handle = open_handle(uri, {})
    first = handle.storage.layout
    instant = int(timeline_of(handle).completed_writes()[0].requested) + 1
    orphan = f"p1/00000000-0daf-438b-9d2f-1c0e5b6a7788-0_0-1-2_{instant}.parquet"
    at = first.place(orphan)
    root.put(at.key, b"orphan")
    copy = f"000000/table/{orphan}" if not at.key.startswith("000000") else f"111111/table/{orphan}"
    root.put(copy, b"copy")
    root.put("000000/table/p1/notes.txt", b"mine")
    root.put("000000/customers/p1/notes.txt", b"theirs")
    table = hoodie.Table.open(uri)
    concerns = {(one.kind, one.subject): one.message for one in table.doctor().concerns}
    assert concerns["stray", root.absolute(copy)] == COPY
    assert concerns["stray", root.absolute("000000/table/p1/notes.txt")] == STRANGER
    assert {kind for kind, _ in concerns} == {"orphan", "stray"}
    removed = table.services.orphans(0)
    assert removed.files == (orphan,)
    assert {copy, "000000/table/p1/notes.txt", "000000/customers/p1/notes.txt"} <= set(data_names(root))
