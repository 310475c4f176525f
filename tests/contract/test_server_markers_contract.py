"""Markers by a timeline server keep their promises, whether it answers or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("uvicorn", reason="needs the extra `server`")

from hoodie import Table
from hoodie.remote import ServerAddress
from hoodie.remote.server_markers import ServerMarkers
from hoodie.server import Service
from hoodie.server.marker_folder import Batching
from hoodie.server.marker_service import MarkerService
from hoodie.storage import LocalStorage, Storage
from hoodie.testing.markers_contract import MarkersContract
from hoodie.testing.running_server import running_server
from hoodie.timeline import Markers


class TestServerMarkers(MarkersContract):
    """By a server over HTTP."""

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[Storage]:
        options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
        Table.create(str(tmp_path / "t"), schema=pa.schema([("id", pa.string())]), options=options)
        service = MarkerService([str(tmp_path)], batching=Batching(2, 0))
        with running_server(Service([str(tmp_path)]), service) as port:
            self.address = ServerAddress("127.0.0.1", port)
            yield LocalStorage(str(tmp_path / "t"))
        service.close()

    def make_markers(self, storage: Storage, instant: str) -> Markers:
        return ServerMarkers(storage, instant, self.address)


class TestServerMarkersWithoutServer(MarkersContract):
    """Where nobody listens."""

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return LocalStorage(str(tmp_path / "table"))

    def make_markers(self, storage: Storage, instant: str) -> Markers:
        return ServerMarkers(storage, instant, ServerAddress("127.0.0.1", 9))
