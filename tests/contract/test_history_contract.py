"""Both forms of the archived history keep the same promises."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from hoodie.spec import V6, V8, V9
from hoodie.storage import MemoryStorage, Storage
from hoodie.testing.history_contract import HistoryContract


class InMemory(HistoryContract):
    @pytest.fixture
    def storage(self) -> Iterator[Storage]:
        storage = MemoryStorage(uuid.uuid4().hex)
        yield storage
        storage.forget()


class TestLogHistory(InMemory):
    profile = V6


class TestParquetHistoryOfVersion8(InMemory):
    profile = V8


class TestParquetHistoryOfVersion9(InMemory):
    profile = V9
