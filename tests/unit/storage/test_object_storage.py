"""What an answer of an object store means: lost answers, refusals, versions, leases. The store is in memory."""

import json
import os
import pickle
import threading
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import obstore
import pytest
from obstore import exceptions as foreign
from obstore.store import MemoryStore

from hoodie.env import SystemEnv
from hoodie.errors import CommitUnknown, Conflict, Corrupt, Fenced, Invalid, Missing, Unavailable, Unsupported
from hoodie.locks import held_lock
from hoodie.storage import NestedStorage, open_storage
from hoodie.storage import object as object_module
from hoodie.storage.fence import deleting_own, ensure_held
from hoodie.storage.lease import LEASE_PATH, Lease, encode_lease, held_lease, parse_lease
from hoodie.storage.object import ObjectStorage, object_failure


class NoSleep(SystemEnv):
    """The real clock, moved by hand; sleeping takes no time."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def sleep(self, seconds: float) -> None:
        pass


@pytest.fixture
def store(monkeypatch) -> MemoryStore:
    store = MemoryStore()
    monkeypatch.setattr(object_module, "open_store", lambda location, options: store)
    return store


@pytest.fixture
def env() -> NoSleep:
    return NoSleep()


@pytest.fixture
def storage(store, env) -> ObjectStorage:
    return ObjectStorage("s3://bucket/base", {"aws_secret_access_key": "topsecret"}, env)


@pytest.fixture
def puts(monkeypatch):
    """A script of what successive PUTs do: `done` or not, then the error they answer with."""
    script: list[tuple[bool, Exception | None]] = []
    real = obstore.put
    log: list[str] = []

    def put(store, path, data, **options):
        log.append(path)
        is_done, error = script.pop(0) if script else (True, None)
        if is_done:
            try:
                result = real(store, path, data, **options)
            except Exception as refused:
                raise error or refused from None
        if error is not None:
            raise error
        return result

    monkeypatch.setattr(object_module.obstore, "put", put)
    return SimpleNamespace(script=script, log=log)


LOST = foreign.GenericError("Generic S3 error: HTTP error: error sending request")
EXISTS = foreign.AlreadyExistsError("412")


# create


@pytest.mark.parametrize("data", [b"", b"content"])
def test_a_create_whose_answer_was_lost_but_was_done_succeeds(storage, puts, data) -> None:
    puts.script[:] = [(True, LOST)]
    storage.create("x", data)
    assert storage.read("x") == data
    assert len(puts.log) == 1


@pytest.mark.parametrize("data", [b"", b"content"])
def test_a_create_repeated_by_the_client_after_its_own_success_succeeds(storage, puts, data) -> None:
    puts.script[:] = [(True, EXISTS)]
    storage.create("x", data)
    assert storage.read("x") == data


@pytest.mark.parametrize("answer", [EXISTS, LOST])
@pytest.mark.parametrize("data", [b"", b"same"])
def test_the_same_bytes_by_another_are_not_taken_for_ours(storage, puts, answer, data) -> None:
    storage.create("x", data)
    puts.script[:] = [(False, answer)]
    with pytest.raises(Conflict):
        storage.create("x", data)


def test_a_create_whose_request_never_arrived_is_repeated(storage, puts) -> None:
    puts.script[:] = [(False, LOST), (False, EXISTS), (True, None)]
    storage.create("x", b"1")
    assert storage.read("x") == b"1"
    assert len(puts.log) == 3


def test_a_create_that_never_arrives_is_unavailable(storage, puts) -> None:
    puts.script[:] = [(False, LOST)] * 10
    with pytest.raises(Unavailable, match="the file is not there") as caught:
        storage.create("x", b"1")
    assert "topsecret" not in str(caught.value)
    assert len(puts.log) == 4


def test_a_create_that_cannot_be_asked_about_is_unknown(storage, puts, monkeypatch) -> None:
    puts.script[:] = [(True, LOST)]
    real = obstore.get

    def get(*args, **kwargs):
        raise LOST

    monkeypatch.setattr(object_module.obstore, "get", get)
    with pytest.raises(CommitUnknown, match="was lost"):
        storage.create("x", b"1")
    monkeypatch.setattr(object_module.obstore, "get", real)
    assert storage.read("x") == b"1"


def test_a_refused_create_that_cannot_be_asked_about_is_a_conflict(storage, puts, monkeypatch) -> None:
    puts.script[:] = [(False, EXISTS)]
    monkeypatch.setattr(object_module.obstore, "get", _raising(foreign.PermissionDeniedError("403")))
    with pytest.raises(Conflict):
        storage.create("x", b"1")


@pytest.mark.parametrize(("status", "tries"), [("400 Bad Request", 1), ("409 Conflict", 4), ("503 Slow Down", 4)])
def test_only_an_answer_that_may_have_done_something_is_asked_about(storage, puts, status, tries) -> None:
    error = foreign.GenericError(f"Error performing PUT - Server returned non-2xx status code: {status}: x")
    puts.script[:] = [(False, error)] * 10
    with pytest.raises(Unavailable):
        storage.create("x", b"1")
    assert len(puts.log) == tries


def test_a_backslash_is_refused_where_the_store_would_change_it(store) -> None:
    with pytest.raises(Invalid, match="backslash"):
        ObjectStorage("az://c/t").create("a\\b", b"")


def test_a_denied_create_is_unavailable_at_once(storage, puts) -> None:
    puts.script[:] = [(False, foreign.PermissionDeniedError("403 Forbidden"))]
    with pytest.raises(Unavailable, match="denies permission"):
        storage.create("x", b"1")
    assert len(puts.log) == 1


# translation


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError("not found"), Missing),
        (FileNotFoundError("<Code>NoSuchBucket</Code>"), Unavailable),
        (foreign.AlreadyExistsError("x"), Conflict),
        (foreign.PreconditionError("x"), Conflict),
        (foreign.NotModifiedError("x"), Conflict),
        (foreign.PermissionDeniedError("x"), Unavailable),
        (foreign.UnauthenticatedError("x"), Unavailable),
        (foreign.NotSupportedError("x"), Unsupported),
        (NotImplementedError("x"), Unsupported),
        (foreign.InvalidPathError("x"), Invalid),
        (ValueError("Could not parse path: x"), Invalid),
        (foreign.UnknownConfigurationKeyError("x"), Invalid),
        (foreign.GenericError("x"), Unavailable),
        (foreign.JoinError("x"), Unavailable),
        (foreign.BaseError("x"), Unavailable),
        (OSError("x"), Unavailable),
    ],
)
def test_errors_of_obstore_become_ours(error, kind) -> None:
    failure = object_failure(error, "read", "s3://b/p", ())
    assert type(failure) is kind
    assert "s3://b/p" in str(failure)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("RequestTimeTooSkewed", "clock"),
        ("SignatureDoesNotMatch", "secret key"),
        ("InvalidAccessKeyId", "access key"),
        ("ExpiredToken", "expired"),
        ("AccessDenied", "denies permission"),
    ],
)
def test_a_refusal_names_its_true_cause(code, said) -> None:
    text = f"status 403 Forbidden: <?xml version='1.0'?><Error><Code>{code}</Code></Error>"
    failure = object_failure(foreign.PermissionDeniedError(text), "read", "s3://b/p", ())
    assert said in str(failure)
    assert code in str(failure)
    assert ("denies permission" in str(failure)) == (code == "AccessDenied")


def test_a_bad_request_shows_the_code_of_the_store() -> None:
    error = foreign.GenericError("status 400 Bad Request: <?xml?><Error><Code>EntityTooSmall</Code></Error>")
    assert "EntityTooSmall" in str(object_failure(error, "write", "s3://b/p", ()))


class Cut:
    """An answer whose body ends early, by an error or without a word."""

    def __init__(self, found: object, *, silent: bool) -> None:
        self._found, self._silent = found, silent

    def __getattr__(self, name: str) -> object:
        return getattr(self._found, name)

    def bytes(self) -> bytes:
        if self._silent:
            return bytes(self._found.bytes())[:2]
        raise foreign.GenericError("error decoding response body")


@pytest.fixture(params=["error", "silent"])
def cuts(request, monkeypatch) -> list[bool]:
    """Whether the bodies of the next reads are cut."""
    script: list[bool] = []
    real = obstore.get

    def get(store, path, **options):
        found = real(store, path, **options)
        return Cut(found, silent=request.param == "silent") if script and script.pop(0) else found

    monkeypatch.setattr(obstore, "get", get)
    return script


READS = {
    "read": lambda storage: storage.read("x"),
    "read_range": lambda storage: storage.read_range("x", 0, 100),
    "read_version": lambda storage: storage.read_version("x")[0],
    "open_input": lambda storage: storage.open_input("x").read(),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_body_that_is_cut_is_read_again(storage, cuts, read) -> None:
    storage.put("x", b"content")
    cuts[:] = [True, True]
    assert read(storage) == b"content"
    assert cuts == []


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_body_that_is_cut_each_time_is_unavailable(storage, cuts, read) -> None:
    storage.put("x", b"content")
    cuts[:] = [True] * 20
    with pytest.raises(Unavailable, match="cut short"):
        read(storage)


def test_no_error_of_obstore_is_unknown_here() -> None:
    known = {
        *("BaseError", "GenericError", "NotFoundError", "InvalidPathError", "JoinError", "NotSupportedError"),
        *("AlreadyExistsError", "PreconditionError", "NotModifiedError", "PermissionDeniedError"),
        *("UnauthenticatedError", "UnknownConfigurationKeyError"),
    }
    named = {name for name in dir(foreign) if name.endswith("Error")}
    assert named <= known, "obstore has grown an error: decide in object_failure what it means"


def test_mistakes_of_ours_pass_untranslated(storage, monkeypatch) -> None:
    monkeypatch.setattr(object_module.obstore, "head", _raising(TypeError("bug")))
    with pytest.raises(TypeError, match="bug"):
        storage.head("x")


def test_messages_hold_no_secret(storage, monkeypatch) -> None:
    monkeypatch.setattr(object_module.obstore, "get", _raising(foreign.GenericError("bad key topsecret given")))
    with pytest.raises(Unavailable) as caught:
        storage.read("x")
    shown = f"{caught.value} {caught.value!r} {caught.value.facts} {caught.value.__cause__} {storage!r}"
    assert "topsecret" not in shown
    assert "***" in shown


def test_a_name_the_store_does_not_take_is_invalid(storage) -> None:
    with pytest.raises(Invalid, match="does not take the name"):
        storage.create("line\nbreak", b"")


def test_an_unreachable_store_is_unavailable_and_soon() -> None:
    options = {
        "aws_access_key_id": "AKIAKEY",
        "aws_secret_access_key": "topsecret",
        "aws_endpoint": "http://127.0.0.1:9",
        "max_retries": "1",
    }
    storage = open_storage("s3://bucket/t", options)
    for act in (
        lambda: storage.read("x"),
        lambda: storage.head("x"),
        lambda: storage.list_dir(""),
        lambda: list(storage.list("")),
        lambda: storage.put("x", b""),
        lambda: storage.delete("x"),
        lambda: storage.open_input("x"),
        lambda: storage.read_range("x", 0, 1),
    ):
        with pytest.raises(Unavailable, match="network") as caught:
            act()
        assert "topsecret" not in str(caught.value)
    with pytest.raises(CommitUnknown):
        storage.create("x", b"")


# folders


def test_a_file_that_was_removed_by_another_does_not_stop_delete_dir(storage, store, monkeypatch) -> None:
    for name in "abc":
        storage.put(f"d/{name}", b"")
    real = obstore.delete

    def delete(store, paths):
        if not isinstance(paths, str):
            real(store, "d/b")
            raise FileNotFoundError("d/b")
        if paths == "d/b":
            raise FileNotFoundError("d/b")
        real(store, paths)

    monkeypatch.setattr(object_module.obstore, "delete", delete)
    assert storage.delete_dir("d") == 3
    assert list(storage.list("")) == []


# processes


def test_a_forked_child_is_refused_instead_of_hanging(storage) -> None:
    storage.put("x", b"")
    child = os.fork()
    if child == 0:
        try:
            storage.read("x")
        except Unsupported:
            os._exit(7)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_pickles_hold_no_client(storage) -> None:
    copy = pickle.loads(pickle.dumps(storage))
    assert (copy, copy.options) == (storage, storage.options)


# lease


def lease_of(storage: ObjectStorage) -> Lease:
    return parse_lease(storage.read(LEASE_PATH), LEASE_PATH)


def test_a_lease_is_written_as_hudi_writes_it(storage, env) -> None:
    with held_lock(storage, "a write"):
        fields = json.loads(storage.read(LEASE_PATH))
        assert list(fields) == ["validUntil", "expired", "owner", "holder"]  # Hudi passes over what it does not know
        assert fields["holder"]["operation"] == "a write"
        assert fields["expired"] is False
        assert abs(fields["validUntil"] - env.now().timestamp() * 1000 - 300_000) < 5_000
        assert len(fields["owner"]) == 36
    assert lease_of(storage).expired is True
    assert lease_of(storage).holder is None
    assert lease_of(storage).owner == fields["owner"]


def test_a_lease_of_a_hudi_writer_excludes_until_it_has_passed(storage, env) -> None:
    until = int(env.now().timestamp() * 1000) + 60_000
    storage.put(LEASE_PATH, b'{"owner":"hudi-1","validUntil":%d,"expired":false,"extra":1}' % until)
    with pytest.raises(Conflict, match="hudi-1"), held_lock(storage, "a write"):
        pass
    env.ahead = timedelta(seconds=60)
    with pytest.raises(Conflict), held_lock(storage, "a write"):  # within the clock difference
        pass
    env.ahead = timedelta(seconds=61)
    with held_lock(storage, "a write"):
        assert lease_of(storage).owner != "hudi-1"


def test_an_expired_lease_is_free_at_once(storage) -> None:
    storage.put(LEASE_PATH, encode_lease(Lease(2**60, True, "gone")))
    with held_lock(storage, "a write"):
        pass


def test_of_two_that_replace_a_free_lease_one_wins(storage, monkeypatch) -> None:
    storage.put(LEASE_PATH, encode_lease(Lease(0, True, "gone")))
    real = ObjectStorage.replace_version

    def late(self, path, data, version):
        monkeypatch.setattr(ObjectStorage, "replace_version", real)
        held = held_lock(self, "the other's write")
        held.__enter__()
        try:
            return real(self, path, data, version)
        finally:
            held.__exit__(None, None, None)

    monkeypatch.setattr(ObjectStorage, "replace_version", late)
    with pytest.raises(Conflict), held_lock(storage, "a write"):
        pass


def test_a_lease_of_a_scope_is_its_own_and_is_deleted(storage, env) -> None:
    own = ".hoodie/.locks/plan_1.json"
    with held_lease(storage, "a plan", env, scope="plan_1"), held_lease(storage, "a write", env):
        assert parse_lease(storage.read(own), own).is_held(0)
        with pytest.raises(Conflict), held_lease(storage, "the same plan", env, scope="plan_1"):
            pytest.fail("two hold it")
    with pytest.raises(Missing):
        storage.head(own)
    assert lease_of(storage).expired


def test_a_lease_is_extended_while_it_is_held(storage, env) -> None:
    with held_lease(storage, "a write", env, renew_seconds=0.02):
        first = lease_of(storage)
        deadline = time.monotonic() + 10
        while lease_of(storage).valid_until_ms == first.valid_until_ms and time.monotonic() < deadline:
            time.sleep(0.01)
        assert lease_of(storage).valid_until_ms > first.valid_until_ms
        assert lease_of(storage).owner == first.owner
    assert lease_of(storage).expired is True
    assert not [thread for thread in threading.enumerate() if thread.name == "lease"]


def test_a_lease_taken_by_another_is_not_given_back(storage, env, caplog) -> None:
    with held_lease(storage, "a write", env, renew_seconds=0.02):
        storage.put(LEASE_PATH, encode_lease(Lease(2**60, False, "thief")))
        deadline = time.monotonic() + 10
        while "taken by another" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.01)
    assert lease_of(storage) == Lease(2**60, False, "thief")


def test_a_lease_whose_replacement_was_repeated_by_the_client_is_held(storage, puts) -> None:
    storage.put(LEASE_PATH, encode_lease(Lease(0, True, "gone")))
    puts.script[:] = [(True, foreign.PreconditionError("412"))]
    with held_lock(storage, "a write"):
        assert lease_of(storage).expired is False
    assert lease_of(storage).expired is True


def test_a_lease_is_given_back_though_answers_are_lost_and_requests_do_not_arrive(storage, puts) -> None:
    with held_lock(storage, "a write"):
        puts.script[:] = [(False, LOST), (True, LOST)]
    assert lease_of(storage).expired is True


@pytest.mark.parametrize("answers", [[(True, LOST)], [(True, EXISTS)]])
@pytest.mark.parametrize("before", [None, Lease(0, True, "gone")])
def test_a_lease_that_was_taken_though_the_answer_was_lost_is_held(storage, puts, before, answers) -> None:
    if before is not None:
        storage.put(LEASE_PATH, encode_lease(before))
    puts.script[:] = answers
    with held_lock(storage, "a write"):
        assert not lease_of(storage).expired
    assert lease_of(storage).expired


def test_a_lease_that_could_not_be_given_back_does_not_stop_its_own_process(storage, puts) -> None:
    with held_lock(storage, "a write"):
        puts.script[:] = [(False, LOST)] * 9
    puts.script[:] = []
    assert not lease_of(storage).expired
    with held_lock(storage, "the next write"):
        pass
    assert lease_of(storage).expired


def test_a_lease_that_could_not_be_given_back_is_given_back_as_soon_as_the_store_answers(storage, puts) -> None:
    with held_lock(storage, "a write"):
        puts.script[:] = [(False, LOST)] * 9
    puts.script[:] = []
    assert not lease_of(storage).expired
    ensure_given_back_soon(storage)


def test_a_lease_that_was_taken_by_a_request_without_an_answer_is_given_back_soon(storage, puts, monkeypatch) -> None:
    puts.script[:] = [(True, LOST)]
    real = obstore.get
    monkeypatch.setattr(object_module.obstore, "get", lambda *args, **kwargs: _fail_once_there(real, *args, **kwargs))
    with pytest.raises(CommitUnknown), held_lock(storage, "a write"):
        pytest.fail("nobody knows whether it is held")
    monkeypatch.setattr(object_module.obstore, "get", real)
    assert not lease_of(storage).expired
    ensure_given_back_soon(storage)


def ensure_given_back_soon(storage) -> None:
    deadline = time.monotonic() + 20
    while not lease_of(storage).expired:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _fail_once_there(real, *args, **kwargs):
    real(*args, **kwargs)
    raise LOST


def test_a_lease_whose_extension_got_no_answer_is_still_ours(storage, puts, env) -> None:
    with held_lease(storage, "a write", env, renew_seconds=0.02):
        puts.script[:] = [(True, LOST), (True, None)]
        deadline = time.monotonic() + 10
        while puts.script and time.monotonic() < deadline:
            time.sleep(0.01)
    assert lease_of(storage).expired


def test_a_child_that_leaves_the_block_of_its_parent_gives_nothing_back(storage, monkeypatch) -> None:
    with held_lock(storage, "a write"):
        lock = held_lock(storage, "of the child", "plan")
        lock.__enter__()
        monkeypatch.setattr(os, "getpid", lambda: -1)
        lock.__exit__(None, None, None)
        monkeypatch.undo()
    assert [info.path for info in storage.list("")] == [".hoodie/.locks/plan.json", LEASE_PATH]


def test_a_table_that_is_deleted_under_its_lease_keeps_it_until_it_is_given_back(storage) -> None:
    with held_lock(storage, "drop") as held:
        storage.put("p/x", b"")
        assert held.fenced(storage).delete_dir("") == 1
        with pytest.raises(Conflict), held_lock(storage, "another"):
            pass
    assert list(storage.list("")) == []


@pytest.mark.parametrize("how", ["taken", "passed"])
def test_a_holder_that_has_lost_its_lease_makes_no_instant(storage, env, caplog, how) -> None:
    with held_lease(storage, "a write", env, renew_seconds=0.02 if how == "taken" else 30) as lease:
        fenced = storage.with_fence(lease)
        fenced.create("before", b"")
        if how == "taken":
            storage.put(LEASE_PATH, encode_lease(Lease(2**60, False, "thief")))
            deadline = time.monotonic() + 10
            while "taken by another" not in caplog.text and time.monotonic() < deadline:
                time.sleep(0.01)
        else:
            env.ahead = timedelta(seconds=301)
        for change in (fenced.create, fenced.put, NestedStorage(fenced, "inner").create):
            with pytest.raises(Fenced):
                change("after", b"")
        for change in (fenced.delete, fenced.delete_dir):
            with pytest.raises(Fenced):
                change("before")
        with deleting_own(fenced):
            assert fenced.delete("before")
    assert [info.path for info in storage.list("")] == [LEASE_PATH]


def test_a_lost_lease_fences_its_own_holder_and_no_other(storage, env) -> None:
    with held_lease(storage, "a write", env) as lost:
        stalled = storage.with_fence(lost)
        lost.version = None  # which `keep` does when another has taken it
        env.ahead = timedelta(seconds=301)
        with held_lease(storage, "the next write", env) as lease, held_lease(storage, "a plan", env, scope="plan"):
            alive = storage.with_fence(lease)
            alive.create("x", b"")
            with pytest.raises(Fenced):
                stalled.delete("x")
            with pytest.raises(Fenced):
                ensure_held(NestedStorage(stalled.with_fence(lease), "inner"))
            ensure_held(pickle.loads(pickle.dumps(stalled)))  # who sends it somewhere asks before
            assert alive.delete("x")
        storage.put(LEASE_PATH, encode_lease(Lease(0, True, "gone")))
    assert stalled.with_fence(lease).fences == (lease,)
    stalled.create("y", b"")  # its block is over: who has this value works under no lock


def test_a_lease_that_is_lost_while_its_keeper_waits_is_not_extended(storage, env) -> None:
    before = set(threading.enumerate())
    with held_lease(storage, "a write", env, renew_seconds=0.1) as lease:
        lease.version = None
        (keeper,) = set(threading.enumerate()) - before
        keeper.join(10)
        assert not keeper.is_alive()
    assert not lease_of(storage).expired


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'{"validUntil":"x","expired":false,"owner":"o"}'])
def test_what_is_no_lease_is_corrupt_and_names_the_remedy(storage, data) -> None:
    storage.put(LEASE_PATH, data)
    with pytest.raises(Corrupt, match="nobody writes"), held_lock(storage, "a write"):
        pass


def _raising(error: Exception):
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    return fail
