"""A snapshot lists what the storage listed when it was made, without asking again; where it has nothing, it asks."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import Unavailable
from hoodie.storage import MemoryStorage, NestedStorage, Snapshot, snapshot_of
from hoodie.testing.counting_storage import CountingStorage

_NAMES = count()

PATHS = st.lists(
    st.lists(st.sampled_from(["a", "b", "a.b", "a-b"]), min_size=1, max_size=4).map("/".join), max_size=12, unique=True
)


def storage_with(paths: list[str]) -> CountingStorage:
    storage = MemoryStorage(f"snapshot-{next(_NAMES)}")
    for path in paths:
        storage.put(f"h/{path}", path.encode())
    storage.put("elsewhere/a", b"")
    storage.put("hers/a", b"")
    return CountingStorage(storage)


@given(PATHS)
def test_every_folder_is_listed_as_the_storage_lists_it(paths: list[str]) -> None:
    storage = storage_with(paths)
    folders = {"", *(path.rpartition("/")[0] for path in paths), "a", "a/b", "none"}
    seen = snapshot_of(storage, "h")
    assert len(storage.calls) == 1
    got = {folder: seen.list_dir(f"h/{folder}".rstrip("/")) for folder in folders}
    inside = {folder: seen.inside("h/a").list_dir(folder) for folder in folders}
    assert len(storage.calls) == 1
    assert got == {folder: storage.inner.list_dir(f"h/{folder}".rstrip("/")) for folder in folders}
    assert inside == {folder: NestedStorage(storage.inner, "h/a").list_dir(folder) for folder in folders}
    for path in [*paths, "none"]:
        assert seen.may_have(f"h/{path}") == (path in paths)


def test_it_says_what_was_there_then_and_asks_for_what_lies_elsewhere() -> None:
    storage = storage_with(["a/b"])
    seen = snapshot_of(storage, "h")
    storage.put("h/a/c", b"")
    assert [file.path for file in seen.list_dir("h/a").files] == ["h/a/b"]
    assert [file.path for folder in ("elsewhere", "hers") for file in seen.list_dir(folder).files] == [
        "elsewhere/a",
        "hers/a",
    ]
    assert [call.op for call in storage.calls] == ["list", "put", "list_dir", "list_dir"]


@pytest.mark.parametrize("files", [999, 1000])
def test_more_than_a_page_is_not_kept_and_asked_for(files: int) -> None:
    storage = storage_with([f"a/{number:04}" for number in range(files)])
    seen = snapshot_of(storage, "h")
    assert seen.is_whole == (files == 999)
    assert len(seen.list_dir("h/a").files) == files
    assert len(seen.inside("h/a").list_dir("").files) == files
    assert seen.may_have("h/a/none") == (files > 999)
    assert len(storage.calls) == (1 if files == 999 else 3)


def test_without_a_look_everything_is_asked_for() -> None:
    storage = storage_with(["a/b"])
    seen = Snapshot(storage, "")
    assert [file.path for file in seen.list_dir("h/a").files] == ["h/a/b"]
    assert len(storage.calls) == 1


def test_what_may_not_be_listed_leaves_it_to_those_who_need_a_folder() -> None:
    storage = storage_with(["a/b"])
    failing = CountingStorage(storage.inner, fail_at=1, failure=Unavailable("permission is denied"))
    seen = snapshot_of(failing, "h")
    assert not seen.is_whole
    assert seen.list_dir("h/a") == storage.inner.list_dir("h/a")
