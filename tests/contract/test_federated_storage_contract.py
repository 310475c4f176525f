"""The storage contract, kept by a storage that spreads every file over several stores."""

import pickle
import uuid
from dataclasses import dataclass

import pytest

from hoodie.errors import Conflict, Invalid, Missing, Unavailable
from hoodie.layout import FederatedStorage, Layout, LayoutVersion
from hoodie.layout.access import Access
from hoodie.layout.layout import Location
from hoodie.layout.strategy import HashedPrefix
from hoodie.spec.hash_id import one_xxhash32
from hoodie.storage import LocalStorage, MemoryStorage, Storage
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.storage_contract import StorageContract

UUID = str(uuid.UUID(int=7))
FILE_ID = "075f3295-def8-4a42-a927-07fd2dd2976c-0"
HASHED = HashedPrefix(2)


@dataclass(frozen=True)
class Scattered(Layout):
    """Every file has a place by its whole path, so that the contract's own names are spread as well."""

    def place(self, path):
        number = one_xxhash32(path.encode()) % 3
        return Location(number, f"{HASHED.location('', path)}/t/{path}") if number < 2 else None


def scattered(stores: list[Storage]) -> FederatedStorage:
    roots = ("memory://one", "memory://two")
    version = LayoutVersion(1, "0", "bits:2", (0, 1), "t", "", HASHED)
    storage = FederatedStorage(stores[0], Access(), Scattered(roots, (version,), UUID), tuple(stores[1:]))
    storage.claim()
    return storage


class TestFederatedStorageInMemory(StorageContract):
    reaches_other_processes = False
    keeps_crc_away = False  # the checksum's name is spread as well here

    @pytest.fixture
    def storage(self):
        stores = [MemoryStorage(uuid.uuid4().hex) for _ in range(3)]
        yield scattered(stores)
        for store in stores:
            store.forget()


class TestFederatedStorageOnDisk(StorageContract):
    keeps_crc_away = False

    @pytest.fixture
    def storage(self, tmp_path) -> Storage:
        return scattered([LocalStorage(f"{tmp_path}/{name}") for name in ("table", "one", "two")])


@pytest.fixture
def stores():
    found = [CountingStorage(MemoryStorage(uuid.uuid4().hex)) for _ in range(3)]
    yield found
    for store in found:
        store.inner.forget()


@pytest.fixture
def storage(stores):
    version = LayoutVersion(1, "0", "bits:2", (0, 1), "orders", "", HASHED)
    made = FederatedStorage(
        stores[0], Access(), Layout(("memory://a", "memory://b"), (version,), UUID), tuple(stores[1:])
    )
    made.claim()
    return made


def base(number, instant="20240105000000000"):
    return f"{number:08d}-def8-4a42-a927-07fd2dd2976c-0_1-0-1_{instant}.parquet"


def test_files_are_spread_and_listed_by_logical_paths(storage, stores):
    paths = sorted(f"p{n % 3}/{base(n)}" for n in range(40))
    for path in paths:
        storage.put(path, path.encode())
    storage.put("p0/.hoodie_partition_metadata", b"")
    assert [file.path for file in stores[0].inner.list("")] == ["p0/.hoodie_partition_metadata"]
    assert all(len({f.path[:2] for f in store.inner.list("") if "orders/" in f.path}) == 4 for store in stores[1:])
    assert [file.path for file in storage.list("")] == ["p0/.hoodie_partition_metadata", *paths]
    assert [file.path for file in storage.data_files()] == ["p0/.hoodie_partition_metadata", *paths]
    inside = storage.list_dir("p1")
    assert [file.path for file in inside.files] == [path for path in paths if path.startswith("p1/")]
    assert storage.list_dir("").dirs == ("p0", "p1", "p2")
    assert [storage.read(path) for path in paths] == [path.encode() for path in paths]
    assert storage.physical(paths[0]).startswith(("memory://", "/"))
    assert storage.physical(paths[0]).endswith(f"/orders/{paths[0]}")
    assert storage.absolute(paths[0]) == stores[0].absolute(paths[0])


def test_a_pickled_copy_finds_all_files(storage, stores):
    storage.put(f"p/{base(1)}", b"x")
    assert pickle.loads(pickle.dumps(storage)).read(f"p/{base(1)}") == b"x"


def test_listing_the_whole_table_asks_each_prefix_once(storage, stores):
    for n in range(30):
        storage.put(f"p{n}/{base(n)}", b"")
    before = [len(store.calls) for store in stores]
    storage.data_files()
    asked = [[call.op for call in store.calls[n:]] for store, n in zip(stores, before, strict=True)]
    assert [ops.count("list") for ops in asked[1:]] == [4, 4]


def test_file_that_lies_elsewhere_is_not_shown(storage, stores):
    path = f"p/{base(1)}"
    storage.put(path, b"")
    at = storage.layout.place(path)
    stores[0].put(path, b"at the table path")
    stores[2 - at.root].put(at.key, b"in the other root")
    stores[1 + at.root].put(f"11/orders/{path}" if at.key[:2] != "11" else f"00/orders/{path}", b"under another prefix")
    assert [(file.path, file.size_bytes) for file in storage.list("")] == [(path, 0)]
    assert [file.path for file in storage.list_dir("p").files] == [path]


def test_deleting_a_folder_leaves_what_is_not_the_tables(storage, stores):
    storage.put(f"p/{base(1)}", b"")
    canaries = {
        "00/orders/p/notes.txt",
        f"00/customers/p/{base(1)}",
        f"zz/orders/p/{base(1)}",
        f"p/{base(1)}",
        "canary",
        ".hoodie_owners/customers",
    }
    for store in stores[1:]:
        for path in canaries:
            store.put(path, b"")
    storage.put("p/.hoodie_partition_metadata", b"")
    assert storage.delete_dir("p") == 2
    assert storage.delete_dir("") == 0
    for store in stores[1:]:
        left = {file.path for file in store.inner.list("")}
        assert left == canaries | {".hoodie_owners/orders"}


@pytest.mark.parametrize("change", ["put", "create", "delete", "open_output"])
def test_nothing_is_changed_in_a_root_of_another_table(storage, stores, change):
    path = f"p/{base(1)}"
    for store in stores[1:]:
        store.put(".hoodie_owners/orders", b'{"uuid": "other", "table": "memory://theirs"}')
    calls = {"put": (path, b""), "create": (path, b""), "delete": (path,), "open_output": (path,)}
    with pytest.raises(Conflict, match="belongs to the table at memory://theirs"):
        getattr(storage, change)(*calls[change])
    with pytest.raises(Missing):
        storage.read(path)
    for store in stores[1:]:
        store.delete(".hoodie_owners/orders")
    with pytest.raises(Unavailable, match="does not say whose"):
        getattr(storage, change)(*calls[change])
    with pytest.raises(Unavailable, match="does not say whose"):
        storage.data_files()


def test_second_table_of_one_name_is_refused(storage, stores):
    theirs = FederatedStorage(stores[0], Access(), storage.layout, storage.roots)
    theirs.claim()
    layout = storage.layout
    other = Layout(layout.roots, layout.versions, str(uuid.UUID(int=8)))
    with pytest.raises(Conflict, match="belongs to the table at"):
        FederatedStorage(MemoryStorage("elsewhere"), Access(), other, storage.roots).claim(is_new=True)
    FederatedStorage(stores[0], Access(), other, storage.roots).claim(is_new=True)  # its creation died before
    with pytest.raises(Conflict):
        theirs.claim()


@pytest.mark.parametrize(
    "ask", [lambda one: list(one.list("")), lambda one: one.list_dir("p"), lambda one: one.data_files()]
)
def test_root_that_does_not_answer_is_an_error_and_never_fewer_files(stores, ask):
    failing = CountingStorage(stores[2].inner, fail_at=3, failure=Unavailable("one prefix says 503"))
    version = LayoutVersion(1, "0", "bits:2", (0, 1), "orders", "", HASHED)
    layout = Layout(("memory://a", "memory://b"), (version,), UUID)
    FederatedStorage(stores[0], Access(), layout, tuple(stores[1:])).claim()
    storage = FederatedStorage(stores[0], Access(), layout, (stores[1], failing))
    with pytest.raises(Unavailable, match="503"):
        ask(storage)


def test_paths_never_leave_their_stores(storage):
    for path in ("../x", f"../{base(1)}", f"p/../../{base(1)}", f"/{base(1)}", f"p//{base(1)}"):
        with pytest.raises(Invalid):
            storage.put(path, b"")


def test_repr_shows_no_options():
    storage = FederatedStorage(MemoryStorage("m"), Access(options={"aws_secret_access_key": "hush"}))
    assert "hush" not in repr(storage)
    assert "hush" not in repr(storage.access)
