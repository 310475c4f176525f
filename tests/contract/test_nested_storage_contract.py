"""A folder of a storage keeps the storage contract, and keeps its paths below itself."""

import uuid

import pytest

from hoodie.errors import Invalid
from hoodie.storage import LocalStorage, MemoryStorage, NestedStorage, Storage
from hoodie.testing.storage_contract import StorageContract


class TestNestedLocalStorage(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path) -> Storage:
        return NestedStorage(LocalStorage(str(tmp_path / "base")), ".hoodie/metadata")


class TestNestedMemoryStorage(StorageContract):
    reaches_other_processes = False

    @pytest.fixture
    def storage(self):
        outer = MemoryStorage(uuid.uuid4().hex)
        yield NestedStorage(outer, "a/b")
        outer.forget()


def test_paths_lead_below_the_folder_and_nowhere_else(tmp_path):
    outer = LocalStorage(str(tmp_path))
    nested = NestedStorage(outer, "in/side")
    nested.put("x/y", b"1")
    outer.put("in/side2/z", b"2")
    assert outer.read("in/side/x/y") == b"1"
    assert [file.path for file in nested.list("")] == ["x/y"]
    assert nested.list_dir("").dirs == ("x",)
    with pytest.raises(Invalid):
        nested.read("../side2/z")
    with pytest.raises(Invalid):
        NestedStorage(outer, "..")
