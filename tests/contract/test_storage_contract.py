"""The storage contract, kept by every storage; and kept through the counting shim.

To put a real object store or another emulator to the test, name it in HOODIE_TEST_OBJECT_STORE, for instance
`{"uri": "gs://bucket/where", "options": {"google_service_account": "key.json"}}`; each test works below a new prefix.
"""

import json
import os
import uuid

import pytest

from hoodie.storage import LocalStorage, MemoryStorage, Storage, open_storage
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.s3_server import s3_bucket, s3_server  # noqa: F401
from hoodie.testing.storage_contract import StorageContract


class TestMemoryStorage(StorageContract):
    reaches_other_processes = False

    @pytest.fixture
    def storage(self):
        storage = MemoryStorage(uuid.uuid4().hex)
        yield storage
        storage.forget()


class TestLocalStorage(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path) -> Storage:
        return LocalStorage(str(tmp_path / "base of it" / "table"))


class TestLocalStorageBehindALink(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path) -> Storage:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        return open_storage(f"file://{tmp_path}/link")


class TestLocalStorageThroughTheShim(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path) -> Storage:
        return CountingStorage(LocalStorage(str(tmp_path)))


class TestS3Storage(StorageContract):
    keeps_crc_away = False

    @pytest.fixture
    def storage(self, s3_server, s3_bucket) -> Storage:  # noqa: F811
        return open_storage(f"s3a://{s3_bucket}/some/base", s3_server.options)


class TestS3StorageOfAWholeBucket(StorageContract):
    keeps_crc_away = False

    @pytest.fixture
    def storage(self, s3_server, s3_bucket) -> Storage:  # noqa: F811
        return open_storage(f"s3://{s3_bucket}", s3_server.options)


class TestTheObjectStoreNamedInTheEnvironment(StorageContract):
    keeps_crc_away = False
    refused_characters = "\\" if '"az' in os.environ.get("HOODIE_TEST_OBJECT_STORE", "") else ""

    @pytest.fixture
    def storage(self) -> Storage:
        given = os.environ.get("HOODIE_TEST_OBJECT_STORE")
        if not given:
            pytest.skip("HOODIE_TEST_OBJECT_STORE is not set")
        named = json.loads(given)
        return open_storage(f"{named['uri']}/{uuid.uuid4().hex}", named["options"])
