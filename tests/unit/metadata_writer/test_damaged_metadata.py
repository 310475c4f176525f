"""A metadata table of which a file, but for a log file, is damaged: readers give right rows or say what mends it."""

from __future__ import annotations

import pytest

from hoodie.errors import HudiError
from hoodie.testing.lake import Lake, row

ROOT = ".hoodie/metadata/"


@pytest.mark.parametrize("content", [b"", b"garbage" * 9], ids=["empty", "garbage"])
def test_a_damaged_metadata_table_gives_right_rows_or_names_the_doctor(version: int, content: bytes) -> None:
    options = {"hoodie.metadata.enable": "true", "hoodie.metadata.global.record.level.index.enable": "true"}
    world = Lake(version, options)
    world.upsert(row("a"), row("b", part="q"))
    world.upsert(row("a", "x", 2))
    want = world.values()
    damaged = [path for path in world.files() if path.startswith(ROOT) and ".log." not in path]
    assert len(damaged) > 8
    for path in damaged:
        whole = world.storage.read(path)
        world.storage.put(path, content)
        for filter in (None, "id = 'a'"):
            try:
                found = world.values(**({} if filter is None else {"filter": filter}))
                assert found == {key: one for key, one in want.items() if filter is None or key == "a"}, path
            except HudiError as error:
                assert "doctor" in str(error), (path, str(error))
        world.storage.put(path, whole)
    world.storage.put(next(path for path in damaged if path.endswith("hoodie.properties")), content)
    world.table.rebuild_metadata()
    assert world.values() == want
    assert world.table.validate() == []
