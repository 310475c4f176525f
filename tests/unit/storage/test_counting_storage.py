"""The shim that tests of crashes rest on."""

import pickle
import uuid

import pytest

from hoodie.errors import Conflict, Unavailable
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
    with storage.exclusive("a write"):
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
    with pytest.raises(Crash), storage.exclusive("a write"):
        storage.put("a", b"")
    with inner.exclusive("the next write"):
        pass


def test_a_failing_entry_holds_nothing(inner) -> None:
    storage = CountingStorage(inner, fail_at=1)
    with pytest.raises(Unavailable), storage.exclusive("a write"):
        pass
    lost = CountingStorage(inner, fail_after=1)
    with pytest.raises(Unavailable), lost.exclusive("a write"):
        pass
    with inner.exclusive("the next write"):
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
