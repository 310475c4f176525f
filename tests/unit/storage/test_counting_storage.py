"""The shim that tests of crashes rest on."""

import pickle
import uuid

import pytest

from hoodie.errors import Conflict, Unavailable
from hoodie.locks import held_lock
from hoodie.storage import MemoryStorage
from hoodie.testing.counting_storage import Call, CountingStorage, Crash


@pytest.fixture
def inner():
    storage = MemoryStorage(uuid.uuid4().hex)
    yield storage
    storage.forget()


def test_every_call_is_counted_with_its_path(inner) -> None:
    told: list[Call] = []
    storage = CountingStorage(inner, on_call=told.append)
    storage.create("a", b"1")
    with held_lock(storage, "a write"):
        storage.read("a")
    with storage.open_output("f") as output:
        output.write(b"1")
        output.write(b"2")
    storage.open_output("g").abort()
    list(storage.list(""))
    expected = [
        *[("create", "a"), ("exclusive", ""), ("read", "a"), ("release", "")],
        *[("open_output", "f"), ("write", "f"), ("write", "f"), ("close", "f")],
        *[("open_output", "g"), ("abort", "g"), ("list", "")],
    ]
    assert [(call.op, call.path) for call in storage.calls] == expected
    assert [call.n for call in storage.calls] == list(range(1, 12))
    assert told == storage.calls
    assert storage.count == 11


def test_failing_at_a_call_has_no_effect_and_after_a_call_has(inner) -> None:
    before = CountingStorage(inner, fail_at=1)
    with pytest.raises(Unavailable):
        before.create("a", b"")
    before.create("a", b"")
    after = CountingStorage(inner, fail_after=1, failure=Conflict("lost"))
    with pytest.raises(Conflict, match="lost"):
        after.create("b", b"")
    assert [info.path for info in inner.list("")] == ["a", "b"]


def test_after_a_crash_nothing_works_and_no_handler_swallows_it(inner) -> None:
    storage = CountingStorage(inner, crash_at=2)
    storage.put("a", b"")

    def careless() -> None:
        try:
            storage.put("b", b"")
        except Exception:
            pytest.fail("a crash was handled")
        finally:
            storage.delete("a")

    with pytest.raises(Crash):
        careless()
    assert [info.path for info in inner.list("")] == ["a"]


def test_a_crash_releases_what_it_held(inner) -> None:
    storage = CountingStorage(inner, crash_at=2)
    with pytest.raises(Crash), held_lock(storage, "a write"):
        storage.put("a", b"")
    with held_lock(inner, "the next write"):
        pass


def test_a_failing_entry_holds_nothing(inner) -> None:
    storage = CountingStorage(inner, fail_at=1)
    with pytest.raises(Unavailable), held_lock(storage, "a write"):
        pass
    lost = CountingStorage(inner, fail_after=1)
    with pytest.raises(Unavailable), held_lock(lost, "a write"):
        pass
    with held_lock(inner, "the next write"):
        pass


def test_a_pickled_copy_goes_on_counting_by_itself(inner) -> None:
    storage = CountingStorage(inner, fail_at=3)
    storage.put("a", b"")
    copy = pickle.loads(pickle.dumps(storage))
    copy.put("b", b"")
    with pytest.raises(Unavailable):
        copy.put("c", b"")
    assert (storage.count, copy.count) == (1, 3)
    storage.put("d", b"")


def half_written(storage: CountingStorage) -> None:
    with storage.open_output("d/f") as output:
        output.write(b"01234567")
        storage.put("d/small", b"all")
        output.write(b"89abcdef")


@pytest.mark.parametrize(
    ("at", "left"),
    [
        (1, {"d/f": b""}),
        (2, {"d/f": b"0123"}),
        (3, {"d/f": b"01234567"}),
        (4, {"d/f": b"0123456789ab", "d/small": b"all"}),
        (5, {"d/f": b"01234567", "d/small": b"all"}),
    ],
)
def test_a_torn_crash_leaves_part_of_a_data_file_and_never_of_a_small_one(inner, at: int, left: dict) -> None:
    with pytest.raises(Crash):
        half_written(CountingStorage(inner, crash_at=at, torn=True))
    assert {info.path: inner.read(info.path) for info in inner.list("")} == left


def test_a_torn_crash_touches_no_data_file_that_was_closed(inner) -> None:
    storage = CountingStorage(inner, crash_at=6, torn=True)
    with storage.open_output("f") as output:
        output.write(b"1")
    storage.open_output("g").abort()
    with pytest.raises(Crash):
        storage.read("f")
    assert [info.path for info in inner.list("")] == ["f"]


def test_on_a_full_disk_nothing_is_written_but_all_is_read_and_deleted(inner) -> None:
    inner.put("a", b"1")
    storage = CountingStorage(inner, full_from=1)
    for write in (storage.create, storage.put):
        with pytest.raises(Unavailable, match="no space is left.*Free space") as caught:
            write("b", b"")
        assert caught.value.facts["errno"] == "ENOSPC"
    with pytest.raises(Unavailable):
        storage.open_output("b")
    assert storage.read("a") == b"1"
    assert storage.delete("a")


def test_a_data_file_that_meets_a_full_disk_can_be_dropped(inner) -> None:
    storage = CountingStorage(inner, full_from=3)
    output = storage.open_output("f")
    output.write(b"1")
    with pytest.raises(Unavailable):
        output.write(b"2")
    with pytest.raises(Unavailable):
        output.close()
    output.abort()
    assert list(inner.list("")) == []


def test_without_permission_nothing_is_deleted_either(inner) -> None:
    inner.put("d/a", b"1")
    storage = CountingStorage(inner, denied_from=1)
    for change in (lambda: storage.put("b", b""), lambda: storage.delete("d/a"), lambda: storage.delete_dir("d")):
        with pytest.raises(Unavailable, match="permission is denied.*Give this process access"):
            change()
    assert storage.read("d/a") == b"1"


def test_a_stale_listing_hides_what_came_since_and_shows_what_was_replaced(inner) -> None:
    for path in ("d/a", "d/b"):
        inner.put(path, b"1")
    storage = CountingStorage(inner, stale_from=2)
    storage.put("d/early", b"2")
    storage.put("d/a", b"2")
    storage.create("d/late", b"2")
    with storage.open_output("e/late") as output:
        output.write(b"2")
    assert [info.path for info in storage.list("")] == ["d/a", "d/b", "d/early"]
    assert [info.path for info in storage.list_dir("d").files] == ["d/a", "d/b", "d/early"]
    assert storage.list_dir("").dirs == ("d",)
    assert storage.read("d/late") == b"2"
    assert storage.delete_dir("e") == 0
    assert inner.read("e/late") == b"2"
