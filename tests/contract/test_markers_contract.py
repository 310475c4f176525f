"""Markers keep their promises, wherever they lie."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoodie.storage import LocalStorage, MemoryStorage, Storage
from hoodie.testing.markers_contract import MarkersContract
from hoodie.timeline import DirectMarkers, Markers
from hoodie.timeline.marker_lists import ListedMarkers


class TestDirectMarkersInMemory(MarkersContract):
    @pytest.fixture
    def storage(self) -> Iterator[Storage]:
        storage = MemoryStorage(uuid.uuid4().hex)
        yield storage
        storage.forget()

    def make_markers(self, storage: Storage, instant: str) -> Markers:
        return DirectMarkers(storage, instant)


class TestDirectMarkersOnDisk(MarkersContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return LocalStorage(str(tmp_path / "table"))

    def make_markers(self, storage: Storage, instant: str) -> Markers:
        return DirectMarkers(storage, instant)


class TestListedMarkersInMemory(MarkersContract):
    @pytest.fixture
    def storage(self) -> Iterator[Storage]:
        storage = MemoryStorage(uuid.uuid4().hex)
        yield storage
        storage.forget()

    def make_markers(self, storage: Storage, instant: str) -> Markers:
        return ListedMarkers(storage, instant)


class TestListedMarkersOnDisk(MarkersContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return LocalStorage(str(tmp_path / "table"))

    def make_markers(self, storage: Storage, instant: str) -> Markers:
        return ListedMarkers(storage, instant)
