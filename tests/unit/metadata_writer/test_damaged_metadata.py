"""A metadata table of which a file is damaged: readers give right rows or say what mends it; writers make no copies."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt, HudiError
from hoodie.metadata_writer import MetadataOptions, compact_metadata
from hoodie.testing.lake import Lake, row

LOCAL = LocalEngine(2)
ROOT = ".hoodie/metadata/"
Damage = Callable[[bytes], bytes]
DAMAGES: dict[str, Damage] = {
    "empty": lambda _: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "garbage": lambda _: b"garbage" * 9,
}
every_damage = pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)


def indexed_lake(version: int) -> Lake:
    """Two partitions and three commits, with a record index of one file group."""
    index = "hoodie.metadata.global.record.level.index"
    lake = Lake(
        version,
        {
            "hoodie.metadata.enable": "true",
            "hoodie.index.type": "RECORD_INDEX",
            f"{index}.enable": "true",
            f"{index}.min.filegroup.count": "1",
            f"{index}.max.filegroup.count": "1",
        },
    )
    lake.upsert(row("a"), row("b", part="q"))
    lake.upsert(row("a", "x", 2))
    lake.upsert(row("c"))
    return lake


@every_damage
def test_a_damaged_metadata_table_gives_right_rows_or_names_the_doctor(version: int, damage: Damage) -> None:
    world = indexed_lake(version)
    want = world.values()
    damaged = [path for path in world.files() if path.startswith(ROOT)]
    assert len(damaged) > 20
    for path in damaged:
        whole = world.storage.read(path)
        world.storage.put(path, damage(whole))
        for filter in (None, "id = 'a'"):
            try:
                found = world.values(**({} if filter is None else {"filter": filter}))
                assert found == {key: one for key, one in want.items() if filter is None or key == "a"}, path
            except HudiError as error:
                assert "doctor" in str(error), (path, str(error))
        world.storage.put(path, whole)
    world.storage.put(next(path for path in damaged if path.endswith("hoodie.properties")), b"")
    world.table.rebuild_metadata()
    assert world.values() == want
    assert world.table.validate() == []


@every_damage
def test_an_upsert_by_a_damaged_record_index_makes_no_copies(version: int, damage: Damage) -> None:
    world = indexed_lake(version)
    before = world.files()
    logs = [path for path in before if "record_index/" in path and ".log." in path]
    newest = max(logs)
    world.storage.put(newest, damage(before[newest]))
    with pytest.raises(Corrupt, match="doctor"):
        world.upsert(row("a", "z", 3), row("c", "z", 3))
    world.table.rebuild_metadata()
    world.upsert(row("a", "z", 3), row("c", "z", 3))
    assert world.values() == {"a": "z", "b": "a", "c": "z"}
    assert world.table.validate() == []


def test_a_compaction_of_the_metadata_table_takes_in_no_damaged_log_file(version: int) -> None:
    world = indexed_lake(version)
    damaged = max(path for path in world.files() if "metadata/record_index/" in path and ".log." in path)
    world.storage.put(damaged, b"")
    with pytest.raises(Corrupt, match="doctor"):
        compact_metadata(world.handle(), LOCAL, MetadataOptions(compact_after=1))
    world.write("insert", [row("d")])  # finishes what is pending, or makes the metadata table anew
    assert world.values() == {"a": "x", "b": "a", "c": "a", "d": "a"}
    assert world.table.validate() == []
