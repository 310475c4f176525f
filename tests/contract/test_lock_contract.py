"""Providers of locks keep their promises: within a process, on file systems, on object stores."""

from __future__ import annotations

import ast
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hoodie
from hoodie.errors import Unsupported
from hoodie.locks import lock_provider_of
from hoodie.locks.file_system import FileSystemLocks
from hoodie.locks.in_process import InProcessLocks
from hoodie.locks.storage_based import StorageBasedLocks
from hoodie.storage import LocalStorage, MemoryStorage, NestedStorage, Storage, open_storage
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lock_contract import LockProviderContract
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
