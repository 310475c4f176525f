"""Providers of locks keep their promises: within a process, on file systems, on object stores."""

from __future__ import annotations

import ast
import os
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hoodie
from hoodie.env import SystemEnv
from hoodie.errors import Conflict, Fenced, Unsupported
from hoodie.locks import lock_provider_of
from hoodie.locks.dynamodb import DynamoDBLocks
from hoodie.locks.file_system import FileSystemLocks
from hoodie.locks.in_process import InProcessLocks
from hoodie.locks.lock_file import LockFiles
from hoodie.locks.storage_based import StorageBasedLocks
from hoodie.locks.waiting import Patience, place_in_line, waiting_threads
from hoodie.storage import LocalStorage, MemoryStorage, NestedStorage, Storage, open_storage
from hoodie.storage.lock_holder import encode_holder, this_holder
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lock_contract import Elsewhere, LockProviderContract
from hoodie.testing.s3_server import s3_bucket, s3_server  # noqa: F401


class TestInProcessLocks(LockProviderContract):
    @pytest.fixture
    def storage(self) -> Iterator[Storage]:
        storage = MemoryStorage(uuid.uuid4().hex)
        yield storage
        storage.forget()

    def test_it_is_that_of_tables_in_memory(self, storage: Storage) -> None:
        assert isinstance(lock_provider_of(storage), InProcessLocks)


class TestFileSystemLocks(LockProviderContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return LocalStorage(str(tmp_path / "base of it" / "table"))

    def test_it_is_that_of_local_tables_and_of_what_lies_in_them(self, storage: Storage) -> None:
        assert isinstance(lock_provider_of(storage), FileSystemLocks)
        assert lock_provider_of(NestedStorage(storage, ".hoodie/metadata")) == lock_provider_of(storage)


class TestCountedLocks(LockProviderContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return CountingStorage(LocalStorage(str(tmp_path)))


class TestStorageBasedLocks(LockProviderContract):
    @pytest.fixture
    def storage(self, s3_server: Any, s3_bucket: str) -> Storage:  # noqa: F811
        return open_storage(f"s3a://{s3_bucket}/some/base", s3_server.options)

    def test_it_is_that_of_object_stores(self, storage: Storage) -> None:
        assert isinstance(lock_provider_of(storage), StorageBasedLocks)


class TestLockFiles(LockProviderContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return Elsewhere(LocalStorage(str(tmp_path / "table")), LockFiles(str(tmp_path / "locks")))

    def test_a_file_that_somebody_removed_fences_its_holder_and_that_of_another_is_left(self, tmp_path: Path) -> None:
        locks = LockFiles(str(tmp_path / "locks"))
        with locks.acquire("a write") as held:
            fenced = held.fenced(LocalStorage(str(tmp_path / "table")))
            fenced.create("before", b"")
            (tmp_path / "locks" / "lock").unlink()
            with pytest.raises(Fenced, match="gone or another's"):
                fenced.create("after", b"")
            (tmp_path / "locks" / "lock").write_text("of Hudi")
            with pytest.raises(Conflict, match="hoodie.write.lock.filesystem.expire"), locks.acquire("more"):
                pytest.fail("two hold it")
        assert (tmp_path / "locks" / "lock").read_text() == "of Hudi"

    def test_the_dead_and_the_expired_are_followed(self, tmp_path: Path) -> None:
        file = tmp_path / "lock"
        with subprocess.Popen(["true"]) as ended:
            pass
        dead = replace(this_holder("a write"), process=ended.pid)
        file.write_bytes(encode_holder(dead))
        with LockFiles(str(tmp_path)).acquire("a write"):
            pass
        assert list(tmp_path.iterdir()) == []
        file.write_text("of Hudi")
        os.utime(file, (time.time() - 5, time.time() - 5))
        with pytest.raises(Conflict), LockFiles(str(tmp_path), 60_000).acquire("a write"):
            pytest.fail("two hold it")
        with LockFiles(str(tmp_path), 300).acquire("a write"):
            time.sleep(0.5)
            with pytest.raises(Conflict), LockFiles(str(tmp_path), 300).acquire("another write"):
                pytest.fail("it was kept young")


class TestDynamoDBLocks(LockProviderContract):
    @pytest.fixture
    def locks(self, s3_server: Any, monkeypatch: pytest.MonkeyPatch) -> DynamoDBLocks:  # noqa: F811
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret)
        return DynamoDBLocks("locks", uuid.uuid4().hex, "us-east-1", s3_server.endpoint)

    @pytest.fixture
    def storage(self, locks: DynamoDBLocks, tmp_path: Path) -> Storage:
        return Elsewhere(LocalStorage(str(tmp_path)), locks)

    def test_an_item_is_what_the_lock_client_of_aws_makes(self, locks: DynamoDBLocks) -> None:
        client = locks._client()
        where = {"TableName": "locks", "Key": {"key": {"S": locks.key}}}
        with locks.acquire("a write"):
            item = client.get_item(**where)["Item"]
            assert set(item) == {"key", "ownerName", "leaseDuration", "recordVersionNumber", "data"}
            assert item["leaseDuration"] == {"S": "60000"}
        assert "Item" not in client.get_item(**where)

    def test_a_holder_that_died_is_followed_after_its_lease_and_no_earlier(self, locks: DynamoDBLocks) -> None:
        dead = {"key": {"S": locks.key}, "ownerName": {"S": "spark-1"}, "recordVersionNumber": {"S": "1"}}
        with locks.acquire("makes the table"):
            pass
        locks._client().put_item(TableName="locks", Item={**dead, "leaseDuration": {"S": "400"}})
        began = time.monotonic()
        with pytest.raises(Conflict, match="spark-1"), locks.acquire("a write"):
            pytest.fail("two hold it")
        with locks.acquire("a write", "", Patience(SystemEnv(), 30_000)):
            assert time.monotonic() - began > 0.4

    def test_who_is_robbed_is_fenced(self, locks: DynamoDBLocks, tmp_path: Path) -> None:
        short = replace(locks, lease_ms=150)
        with short.acquire("a write") as held:
            fenced = held.fenced(LocalStorage(str(tmp_path)))
            fenced.create("before", b"")
            item = short._client().get_item(TableName="locks", Key={"key": {"S": locks.key}})["Item"]
            short._client().put_item(TableName="locks", Item={**item, "recordVersionNumber": {"S": "another"}})
            time.sleep(0.3)
            with pytest.raises(Fenced):
                fenced.create("after", b"")


def test_who_takes_a_lock_works_under_it() -> None:
    """The rule: what `held_lock` yields is used, so that the storage below them is the fenced one."""
    sources = Path(hoodie.__file__).parent
    for file in sorted(sources.rglob("*.py")):
        if file.is_relative_to(sources / "testing"):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            for item in node.items if isinstance(node, ast.With) else ():
                called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
                if isinstance(called, ast.Name) and called.id in ("held_lock", "held_table"):
                    assert item.optional_vars is not None, f"{file}:{node.lineno}"


def test_a_storage_without_locks_is_refused() -> None:
    class Bare:
        uri = "bare://x"

    with pytest.raises(Unsupported, match="keeps writers of bare://x apart"):
        lock_provider_of(Bare())  # type: ignore[arg-type]


def test_a_wait_of_more_than_threads_can_wait_is_a_long_one() -> None:
    """Lock options may ask for it: tries of 24 days, over and over."""
    behind = threading.Event()

    def follow() -> None:
        with place_in_line("a table", Patience(SystemEnv(), 10**18)):
            behind.set()

    with place_in_line("a table", Patience(SystemEnv(), 1)):
        follower = threading.Thread(target=follow)
        follower.start()
        while waiting_threads() < 2 and follower.is_alive():
            time.sleep(0.01)
        assert not behind.wait(0.05)
    follower.join(10)
    assert behind.is_set()
