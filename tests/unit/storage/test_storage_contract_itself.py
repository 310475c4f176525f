"""The contract's races must be able to fail: a storage that looks first and writes then is caught."""

import time
import uuid
from dataclasses import dataclass

import pytest

from hoodie.errors import Conflict, Missing
from hoodie.storage import MemoryStorage
from hoodie.testing.storage_contract import StorageContract


def _look_then_write(storage, path: str, data: bytes) -> None:
    try:
        storage.head(path)
    except Missing:
        time.sleep(0.005)
        storage.put(path, data)
    else:
        raise Conflict(path)


@dataclass(frozen=True, slots=True)
class CarelessMemory(MemoryStorage):
    def create(self, path: str, data: bytes) -> None:
        _look_then_write(self, path, data)


def test_a_careless_create_fails_the_race_of_threads() -> None:
    storage = CarelessMemory(uuid.uuid4().hex)
    with pytest.raises(AssertionError):
        StorageContract().test_of_many_threads_creating_one_file_exactly_one_wins(storage, False)
