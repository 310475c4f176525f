"""The view over hand-made tables: what a reader sees now and at an earlier time, on every version of the format."""

from __future__ import annotations

import pytest

from hoodie.fileview import FolderView
from hoodie.spec import NAMED_BY_SLICE, FormatProfile, State, encode_container, parse_base_file_name
from hoodie.storage import MemoryStorage
from hoodie.testing.hand_table import HandTable, at, new_name
from hoodie.view import View, list_files, list_partitions


def view_of_table(table: HandTable, partitions: list[str] | None = None) -> View:
    return FolderView(table.storage, table.timeline()).load(partitions)


def seen(view: View, as_of: str | None = None) -> dict[tuple[str, str], str]:
    return {part.group_id: part.base_instant for part in view.slices_at(as_of)}


ROW = {"id": "1", "part": "p0", "qty": 1}


def test_latest_slice_of_every_group_is_seen_and_earlier_ones_in_the_past(profile):
    table = HandTable(profile)
    table.commit(at(1), {("p0", "a"): [ROW], ("p1", "b"): [ROW]})
    table.commit(at(2), {("p0", "a"): [ROW]})
    view = view_of_table(table)
    assert view.partitions == ("p0", "p1")
    assert seen(view) == {("p0", "a"): at(2), ("p1", "b"): at(1)}
    assert seen(view, at(1)) == {("p0", "a"): at(1), ("p1", "b"): at(1)}
    assert seen(view, at(0)) == {}
    assert [part.base_instant for part in view.all_slices()] == [at(2), at(1), at(1)]


def test_replaced_groups_are_seen_only_before_they_were_replaced(profile):
    table = HandTable(profile)
    table.commit(at(1), {("p0", "a"): [ROW]})
    table.commit(at(3), {("p0", "c"): [ROW]}, replaces={"p0": ("a",)})
    view = view_of_table(table)
    assert seen(view) == {("p0", "c"): at(3)}
    assert seen(view, at(2)) == {("p0", "a"): at(1)}
    assert view.is_replaced(("p0", "a"))
    assert not view.is_replaced(("p0", "a"), at(2))


def test_a_replacecommit_that_is_not_complete_replaces_nothing(profile):
    table = HandTable(profile)
    table.commit(at(1), {("p0", "a"): [ROW]})
    table.commit(at(3), {("p0", "c"): [ROW]}, replaces={"p0": ("a",)}, state=State.INFLIGHT)
    assert seen(view_of_table(table)) == {("p0", "a"): at(1)}


def test_only_given_partitions_are_listed(profile):
    table = HandTable(profile)
    table.commit(at(1), {("p0", "a"): [ROW], ("p1", "b"): [ROW]})
    view = view_of_table(table, partitions=["p1", "nowhere"])
    assert view.partitions == ("nowhere", "p1")
    assert seen(view) == {("p1", "b"): at(1)}
    assert view_of_table(table).slices_at(partitions=["p0"])[0].file_id == "a"


def test_groups_of_one_file_id_in_two_partitions_are_two_groups(profile):
    table = HandTable(profile)
    table.commit(at(1), {("p0", "a"): [ROW], ("p1", "a"): [ROW]})
    table.commit(at(2), {}, replaces={"p0": ("a",)})
    assert seen(view_of_table(table)) == {("p1", "a"): at(1)}


def compaction_plan(profile: FormatProfile, partition: str, file_id: str) -> bytes:
    operation = {"partitionPath": partition, "fileId": file_id, "baseInstantTime": at(1), "deltaFilePaths": []}
    return encode_container("HoodieCompactionPlan", {"operations": [operation], "version": 2}, profile.avro_generation)


def log_path(profile: FormatProfile, base_instant: str, written: str) -> str:
    instant = base_instant if profile.log_naming == NAMED_BY_SLICE else written
    return f"p0/.a_{instant}.log.1_0-1-1"


def test_slice_of_a_pending_compaction_is_read_together_with_the_one_before(profile):
    table = HandTable(profile, choices={"table_type": "MERGE_ON_READ"})
    table.commit(at(1), {("p0", "a"): [ROW]})
    table.instant(at(2), "deltacommit")
    table.storage.put(log_path(profile, at(1), at(2)), b"x")
    plan = {State.REQUESTED: compaction_plan(profile, "p0", "a")}
    table.instant(at(3), "compaction", state=State.INFLIGHT, content=plan)
    table.instant(at(4), "deltacommit")
    table.storage.put(log_path(profile, at(3), at(4)), b"y")
    table.storage.put(table.path_of(at(3), "p0", "a"), b"unfinished")
    (found,) = view_of_table(table).slices_at()
    assert found.base_instant == at(1)
    assert found.base is not None
    assert found.base.name.instant == at(1)
    assert len(found.logs) == 2
    (base_only,) = view_of_table(table).base_slices_at()
    assert (base_only.base_instant, base_only.logs) == (at(1), ())


def test_log_files_written_later_are_not_in_the_past_where_names_tell(profile):
    if profile.log_naming == NAMED_BY_SLICE:
        pytest.skip("names carry the base instant: the log reader decides by block")
    table = HandTable(profile, choices={"table_type": "MERGE_ON_READ"})
    table.commit(at(1), {("p0", "a"): [ROW]})
    table.instant(at(2), "deltacommit")
    table.storage.put(log_path(profile, at(1), at(2)), b"x")
    view = view_of_table(table)
    assert len(view.slices_at()[0].logs) == 1
    assert len(view.slices_at(at(1))[0].logs) == 0


def test_partitions_are_folders_with_a_metafile_at_any_depth():
    storage = MemoryStorage(new_name())
    for path in (
        "2024/01/.hoodie_partition_metadata",
        "2024/02/.hoodie_partition_metadata.parquet",
        "2024/03/.hoodie_partition_metadata_tmp",
        ".hoodie/metadata/files/.hoodie_partition_metadata",
        "2024/01/inside/.hoodie_partition_metadata",
        ".hidden/.hoodie_partition_metadata",
    ):
        storage.put(path, b"")
    assert list_partitions(storage) == (".hidden", "2024/01", "2024/02")


def test_metafile_in_the_base_folder_makes_the_table_unpartitioned():
    storage = MemoryStorage(new_name())
    storage.put(".hoodie_partition_metadata", b"")
    storage.put("sub/.hoodie_partition_metadata", b"")
    assert list_partitions(storage) == ("",)


def test_strange_files_in_a_partition_are_left_out():
    storage = MemoryStorage(new_name())
    base = "a-0_0-1-1_20240101000000000.parquet"
    for name in (
        ".hoodie_partition_metadata",
        base,
        f".{base}.crc",
        "readme.txt",
        ".a-0_20240101000000000.log.1_0-1-1",
        ".a-0_20240101000000000.log.1_0-1-1.cdc",
        "_SUCCESS",
    ):
        storage.put(f"p/{name}", b"")
    (found,) = list_files(storage)
    assert [one.name for one in found.bases] == [parse_base_file_name(base)]
    assert [one.path for one in found.logs] == ["p/.a-0_20240101000000000.log.1_0-1-1"]
