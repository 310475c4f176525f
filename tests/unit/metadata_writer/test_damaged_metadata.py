"""A metadata table of which a file is damaged: readers give right rows or say what mends it; writers make no copies."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt, HudiError
from hoodie.metadata_writer import (
    MetadataOptions,
    bloom_filters_index,
    build_index,
    compact_metadata,
    secondary_index,
)
from hoodie.testing.lake import Lake, row

pytestmark = [pytest.mark.deep, pytest.mark.sampled(4)]

LOCAL = LocalEngine(2)
ROOT = ".hoodie/metadata/"
Damage = Callable[[bytes], bytes | None]
DAMAGES: dict[str, Damage] = {
    "empty": lambda _: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "garbage": lambda _: b"garbage" * 9,
    "deleted": lambda _: None,
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


def put(world: Lake, path: str, content: bytes | None) -> None:
    """The file has the content, or is gone."""
    if content is None:
        world.storage.delete(path)
    else:
        world.storage.put(path, content)


@every_damage
def test_a_damaged_metadata_table_gives_right_rows_or_names_the_doctor(version: int, damage: Damage) -> None:
    world = indexed_lake(version)
    want = world.values()
    damaged = [path for path in world.files() if path.startswith(ROOT)]
    assert len(damaged) > 20
    for path in damaged:
        whole = world.storage.read(path)
        put(world, path, damage(whole))
        for filter in (None, "id = 'a'"):
            try:
                found = world.values(**({} if filter is None else {"filter": filter}))
                assert found == {key: one for key, one in want.items() if filter is None or key == "a"}, path
            except HudiError as error:
                assert "doctor" in str(error), (path, str(error))
        world.storage.put(path, whole)
    world.storage.put(next(path for path in damaged if path.endswith("hoodie.properties")), b"")
    world.table.indexes.rebuild()
    assert world.values() == want
    assert world.table.validate() == []


@every_damage
def test_an_upsert_by_a_damaged_record_index_makes_no_copies(version: int, damage: Damage) -> None:
    world = indexed_lake(version)
    before = world.files()
    logs = [path for path in before if "record_index/" in path and ".log." in path]
    newest = max(logs)
    put(world, newest, damage(before[newest]))
    with pytest.raises(Corrupt, match="doctor"):
        world.upsert(row("a", "z", 3), row("c", "z", 3))
    world.table.indexes.rebuild()
    world.upsert(row("a", "z", 3), row("c", "z", 3))
    assert world.values() == {"a": "z", "b": "a", "c": "z"}
    assert world.table.validate() == []


@pytest.mark.parametrize(
    ("kind", "damage"), [(".log.", "empty"), (".log.", "deleted"), (".hfile", "cut"), (".hfile", "deleted")]
)
def test_a_compaction_of_the_metadata_table_takes_in_no_damaged_file(version: int, kind: str, damage: str) -> None:
    world = indexed_lake(version)
    if kind == ".hfile":
        compact_metadata(world.handle(), LOCAL, MetadataOptions(compact_after=1))
        world.upsert(row("n"))
    damaged = max(path for path in world.files() if "metadata/record_index/" in path and kind in path)
    put(world, damaged, DAMAGES[damage](world.files()[damaged]))
    with pytest.raises(Corrupt, match="doctor"):
        compact_metadata(world.handle(), LOCAL, MetadataOptions(compact_after=1))
    world.write("insert", [row("d")])  # finishes what is pending, or makes the metadata table anew
    assert {**world.values(), "n": "a"} == {"a": "x", "b": "a", "c": "a", "d": "a", "n": "a"}
    assert world.table.validate() == []


def test_cut_properties_of_the_metadata_table_make_no_copies(version: int) -> None:
    world = indexed_lake(version)
    path = f"{ROOT}.hoodie/hoodie.properties"
    whole = world.storage.read(path)
    for length in (*range(0, len(whole) - 40, 90), *range(len(whole) - 40, len(whole), 3)):
        world.storage.put(path, whole[:length])
        try:
            assert world.values(filter="id = 'a'") == {"a": "x"}, length
        except Corrupt as error:
            assert "doctor" in str(error), length
    world.storage.put(path, whole[:-5])
    world.upsert(row("a", "z", 3), row("c", "z", 3))
    assert world.values() == {"a": "z", "b": "a", "c": "z"}
    assert world.table.validate() == []


def test_a_compaction_of_the_metadata_table_that_lost_its_end_is_done_again(version: int) -> None:
    world = indexed_lake(version)
    done = compact_metadata(world.handle(), LOCAL, MetadataOptions(compact_after=1))
    assert done is not None
    world.upsert(row("a", "z", 3))
    ends = [path for path in world.files() if path.startswith(f"{ROOT}.hoodie/") and path.endswith(".commit")]
    world.storage.delete(*ends)
    assert world.values(filter="id = 'b'") == {"b": "a"}
    compact_metadata(world.handle(), LOCAL, MetadataOptions(compact_after=1))
    assert world.values() == {"a": "z", "b": "a", "c": "a"}
    assert world.table.validate() == []


@pytest.mark.parametrize("version", [8, 9])
def test_a_partitioned_record_index_without_its_folder_makes_no_copies(version: int) -> None:
    options = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.level.index.enable": "true",
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
    }
    world = Lake(version, options)
    world.upsert(row("a"), row("b", part="q"))
    world.storage.delete_dir(f"{ROOT}record_index")
    with pytest.raises(Corrupt, match="doctor"):
        world.upsert(row("a", "z", 3))
    assert [one.path for one in world.table.validate()] == [f"{ROOT}record_index"]
    world.table.indexes.rebuild()
    world.upsert(row("a", "z", 3))
    assert world.values() == {"a": "z", "b": "a"}
    assert world.metadata().definitions["record_index"].is_partitioned


def test_a_file_group_that_is_gone_renumbers_no_others(version: int) -> None:
    groups = "hoodie.metadata.global.record.level.index"
    world = Lake(
        version, {"hoodie.metadata.enable": "true", f"{groups}.enable": "true", f"{groups}.min.filegroup.count": "3"}
    )
    world.upsert(*(row(f"k{number}") for number in range(9)))
    for path in world.files():
        if "record-index-0001-" in path:
            world.storage.delete(path)
    with pytest.raises(Corrupt, match="doctor"):
        world.metadata().locate(["k1"])


def test_a_damaged_metadata_table_that_a_service_drops_comes_back_with_all_its_indexes(version: int) -> None:
    """In version 6 with those that options name: Hudi 0.15 fails where properties remember more."""
    world = indexed_lake(version)
    build_index(world.handle(), bloom_filters_index(), LOCAL)
    before = world.handle().config.metadata_partitions
    world.storage.put(f"{ROOT}.hoodie/hoodie.properties", b"")
    world.table.services.rollback(world.table.timeline().completed_writes()[-1].requested)
    assert world.handle().config.metadata_partitions == ()
    assert world.values() == {"a": "x", "b": "a"}
    plain = Lake(version, {"hoodie.metadata.enable": "true"}, world.uri)  # nobody says again what there was
    plain.upsert(row("d"))
    assert plain.handle().config.metadata_partitions == (("files",) if version == 6 else before)
    assert plain.handle().config.metadata_partitions_inflight == ()
    assert plain.values() == {"a": "x", "b": "a", "d": "a"}
    assert plain.table.validate() == []


@pytest.mark.parametrize("damage", [b"", b"{", b"{}"])
@pytest.mark.parametrize("partitioned", [False, True], ids=["global", "partitioned"])
def test_damaged_definitions_of_indexes_lose_what_only_they_know_and_nothing_else(
    damage: bytes, partitioned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    kind = "record.level" if partitioned else "global.record.level"
    lake = Lake(9, {"hoodie.metadata.enable": "true", f"hoodie.metadata.{kind}.index.enable": "true"})
    lake.upsert(row("a"), row("b", part="q"))
    if not partitioned:
        build_index(lake.handle(), secondary_index("by_v", "v"), LOCAL)
    lake.storage.put(".hoodie/.index_defs/index.json", damage)
    with pytest.raises(Corrupt, match="doctor PATH --fix"):
        lake.upsert(row("c"))
    plain = Lake(9, {"hoodie.metadata.enable": "true"}, lake.uri)  # nobody says again what there was
    plain.table.indexes.rebuild()
    assert ("secondary_index_by_v" in caplog.text) is not partitioned
    assert "secondary_index_by_v" not in plain.table.indexes
    definition = plain.table.indexes["record_index"]
    assert definition is not None
    assert definition.is_partitioned is partitioned
    lake.upsert(row("a", "x", 2), row("b", "x", 2, part="q"), row("c"))
    assert lake.values() == {"a": "x", "b": "x", "c": "a"}
    assert lake.table.validate() == []
