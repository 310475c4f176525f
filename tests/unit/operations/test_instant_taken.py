"""A writer without our exclusion (another program) began an instant of the same millisecond: it keeps its own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.errors import Conflict
from hoodie.spec import profile_for
from hoodie.storage import open_storage
from hoodie.table import Table, as_source, write
from hoodie.timeline import create_requested, instant_path, load_timeline

OPTIONS = {
    "hoodie.table.name": "lake",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.index.bloom.num_entries": "100",
}
TAKEN = "20990101000000000"


def test_the_other_writers_instant_stays(tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "table")
    rows = pa.table({"id": [1], "x": [1]})
    write(as_source(rows), path, {**OPTIONS, "hoodie.write.table.version": str(version)}, "append")
    storage, profile = open_storage(path), profile_for(version)

    def contested(*_: object) -> str:
        create_requested(storage, profile, TAKEN, "commit")
        return TAKEN

    monkeypatch.setattr("hoodie.services.ingest.new_instant_time", contested)
    with pytest.raises(Conflict):
        Table.open(path, options=OPTIONS).upsert(pa.table({"id": [2], "x": [2]}))
    (pending,) = load_timeline(storage, profile).pending()
    assert pending.requested == TAKEN
    assert storage.head(instant_path(profile, pending)).size_bytes == 0
    assert Table.open(path).scan(columns=["id"]).read_all().to_pydict() == {"id": [1]}
