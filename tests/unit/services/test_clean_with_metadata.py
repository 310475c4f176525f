"""Cleaning and archiving tables that keep a metadata table: it stays equal to the listing, whoever dies where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.metadata import open_metadata_table
from hoodie.services.archiving.archive import archive
from hoodie.services.cleaning.clean import clean
from hoodie.spec import CLEAN
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.storage import MemoryStorage, Storage
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import Lake, row
from hoodie.timeline import load_history
from hoodie.view import PartitionFiles, list_files

ENGINE = LocalEngine(1)
BY_HAND = {
    "hoodie.metadata.enable": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.metadata.compact.max.delta.commits": "4",
}
KEEP_2 = resolve({"hoodie.clean.commits.retained": 2})
FEW = resolve({"hoodie.clean.commits.retained": 2, "hoodie.keep.min.commits": 4, "hoodie.keep.max.commits": 5})


def lake_of(version: int, commits: int = 6) -> Lake:
    """Upserts to two partitions; one more partition was there and has been deleted."""
    lake = Lake(version, BY_HAND)
    lake.upsert(row("a"), row("b", part="q"), row("c", part="gone"))
    lake.write("delete_partition", [row("c", part="gone")])
    for turn in range(2, commits):
        lake.upsert(row("a", f"a{turn}", turn), row("b", f"b{turn}", turn, part="q"))
    return lake


def handle_of(lake: Lake, storage: Storage | None = None) -> TableHandle:
    return load_handle(storage or lake.storage, SystemEnv())


def sizes(files: tuple[PartitionFiles, ...]) -> dict[str, int]:
    return {one.path: one.size_bytes for part in files for one in part.everything}


def ensure_equal(lake: Lake) -> None:
    handle = handle_of(lake)
    table = open_metadata_table(handle.storage, handle.config, timeline_of(handle))
    assert table is not None
    assert sizes(table.files()) == sizes(list_files(handle.storage))
    assert {one.partition for one in table.files()} == {one.partition for one in list_files(handle.storage)}
    assert [one for one in lake.table.validate() if one.kind != "pending"] == []


def test_the_metadata_table_learns_what_was_cleaned(version: int) -> None:
    lake = lake_of(version)
    done = clean(handle_of(lake), KEEP_2, ENGINE)
    assert done is not None
    assert done.dropped_partitions == ("gone",)
    assert lake.values() == {"a": "a5", "b": "b5"}
    ensure_equal(lake)


def test_later_cleans_take_files_from_it_instead_of_listing(version: int) -> None:
    lake = lake_of(version)
    clean(handle_of(lake), KEEP_2, ENGINE)
    lake.upsert(row("a", "a9", 9))
    lake.upsert(row("a", "a10", 10))
    counted = CountingStorage(lake.storage)
    done = clean(handle_of(lake, counted), KEEP_2, ENGINE)
    assert done is not None
    assert done.files
    assert not {call.path for call in counted.calls if call.op == "list_dir"} & {"", "p", "q"}
    ensure_equal(lake)


def test_archiving_waits_for_the_metadata_table_and_goes_on_after_its_compaction(version: int) -> None:
    lake = Lake(version, BY_HAND | {"hoodie.metadata.compact.max.delta.commits": "50"})
    for turn in range(12):
        lake.upsert(row("a", f"a{turn}", turn))
    assert archive(handle_of(lake), FEW, ENGINE) is None, "it was never compacted"
    compacting = replace(lake, options={**lake.options, "hoodie.metadata.compact.max.delta.commits": "4"})
    compacting.upsert(row("a", "last", 99))
    handle = handle_of(lake)
    done = archive(handle, FEW, ENGINE)
    assert done is not None
    assert done.instants
    assert len(load_history(handle.storage, handle.profile)) == done.instants
    assert lake.values() == {"a": "last"}
    ensure_equal(lake)
    lake.upsert(row("b", "b", 100))
    ensure_equal(lake)


@pytest.mark.sampled(3)
@pytest.mark.own_folder("stops calls of one storage; tests/state does so with those of both")
def test_dying_in_a_clean_leaves_both_as_the_next_clean_makes_them_equal(version: int) -> None:
    lake = lake_of(version)
    before = lake.files()

    def fresh() -> Lake:
        storage = lake.storage
        assert isinstance(storage, MemoryStorage)
        storage.delete_dir("")
        for path, data in before.items():
            storage.put(path, data)
        return lake

    counted = CountingStorage(fresh().storage)
    clean(handle_of(lake, counted), KEEP_2, ENGINE)
    rows = lake.values()
    for call in range(1, counted.count + 1):
        fresh()
        with pytest.raises(Crash):
            clean(handle_of(lake, CountingStorage(lake.storage, crash_at=call)), KEEP_2, ENGINE)
        assert lake.values() == rows, call
        clean(handle_of(lake), KEEP_2, ENGINE)
        assert lake.values() == rows, call
        ensure_equal(lake)
        cleans = [one for one in timeline_of(handle_of(lake)).instants if one.action == CLEAN]
        assert [one.is_completed for one in cleans] == [True], call
