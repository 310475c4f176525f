"""Writing history, both forms: what counts when, what a dead writer left, what is merged and what is kept."""

from __future__ import annotations

import pytest

from hoodie.errors import Corrupt
from hoodie.spec import COMMIT, V9, HistoryFile, Instant, State, encode_container, encode_manifest
from hoodie.storage import MemoryStorage
from hoodie.testing.hand_table import at
from hoodie.timeline import (
    HistoryLimits,
    HistoryRow,
    MergeLimits,
    append_archive,
    append_history,
    compact_history,
    list_archives,
    load_history,
    merge_archives,
    settle_merge,
)
from hoodie.timeline.lsm_manifest import load_manifest, publish

FOLDER = V9.history_dir
ARCHIVED = ".hoodie/archived"
PLAN = f"{ARCHIVED}/mergeArchivePlan"


def row(second: int, size: int = 10) -> HistoryRow:
    return HistoryRow(Instant(at(second), COMMIT, State.COMPLETED, at(second, 500)), b"x" * size)


def append(storage: MemoryStorage, *seconds: int) -> HistoryFile:
    return append_history(storage, FOLDER, at(seconds[0]), at(seconds[-1]), [[row(n)] for n in seconds])


def known(storage: MemoryStorage) -> list[str]:
    return [one.requested for one in load_history(storage, V9)]


def test_each_run_adds_a_file_and_a_manifest(storage: MemoryStorage) -> None:
    first, second = append(storage, 1, 2), append(storage, 3)
    manifest = load_manifest(storage, FOLDER)
    assert manifest.version == 2
    assert manifest.files == (first, second)
    assert storage.read(f"{FOLDER}/_version_") == b"2"
    assert storage.head(f"{FOLDER}/{first.name}").size_bytes == first.size_bytes
    assert known(storage) == [at(1), at(2), at(3)]


def test_what_no_manifest_names_does_not_count_and_is_overwritten(storage: MemoryStorage) -> None:
    append(storage, 1)
    storage.put(f"{FOLDER}/{at(2)}_{at(3)}_0.parquet", b"torn")
    storage.put(f"{FOLDER}/manifest_2", encode_manifest((HistoryFile("no-such.parquet", 1),)))
    assert known(storage) == [at(1)]
    append(storage, 2, 3)
    assert known(storage) == [at(1), at(2), at(3)]
    assert load_manifest(storage, FOLDER).version == 2


def test_without_a_version_file_the_greatest_manifest_is_gone_on_from(storage: MemoryStorage) -> None:
    append(storage, 1)
    append(storage, 2)
    storage.delete(f"{FOLDER}/_version_")
    append(storage, 3)
    assert known(storage) == [at(1), at(2), at(3)]
    assert storage.read(f"{FOLDER}/_version_") == b"3"


def test_merging_keeps_every_row_and_the_manifests_of_late_readers(storage: MemoryStorage) -> None:
    for second in range(1, 7):
        append(storage, second)
    assert compact_history(storage, FOLDER, HistoryLimits(batch_files=3)) == 1
    manifest = load_manifest(storage, FOLDER)
    assert [file.name for file in manifest.files][-1] == f"{at(1)}_{at(3)}_1.parquet"
    assert known(storage) == [at(n) for n in range(1, 7)]
    assert manifest.versions[-4:] == (4, 5, 6, 7)
    assert manifest.versions[0] == 4
    for second in range(7, 30):
        append(storage, second)
        compact_history(storage, FOLDER, HistoryLimits(batch_files=3))
    assert known(storage) == [at(n) for n in range(1, 30)]
    sizes = load_manifest(storage, FOLDER)
    assert len(sizes.files) < 9


def test_large_files_are_not_merged_again(storage: MemoryStorage) -> None:
    large = append_history(storage, FOLDER, at(1), at(1), [[HistoryRow(row(1).instant, bytes(range(256)) * 40)]])
    for second in (2, 3):
        append(storage, second)
    limits = HistoryLimits(batch_files=3, target_bytes=large.size_bytes - 1)
    assert compact_history(storage, FOLDER, limits) == 1
    names = [file.name for file in load_manifest(storage, FOLDER).files]
    assert names == [large.name, f"{at(2)}_{at(3)}_1.parquet"]
    assert known(storage) == [at(1), at(2), at(3)]


def test_rows_are_written_in_portions_of_bounded_size(storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoodie.timeline.lsm_writer.ROW_GROUP_BYTES", 3000)
    append_history(storage, FOLDER, at(1), at(9), [[row(n, 1000)] for n in range(1, 10)])
    assert known(storage) == [at(n) for n in range(1, 10)]


def test_publishing_a_file_again_names_it_once(storage: MemoryStorage) -> None:
    file = append(storage, 1)
    assert publish(storage, FOLDER, load_manifest(storage, FOLDER), file).files == (file,)


# --- version 6


def archives(storage: MemoryStorage) -> list[str]:
    return [file.path.rpartition("/")[2] for file in list_archives(storage, ARCHIVED)]


def test_archives_are_numbered_on(storage: MemoryStorage) -> None:
    for _ in range(3):
        append_archive(storage, ARCHIVED, "{}", [[b"a", b"b"], [b"c"]])
    assert archives(storage) == [f".commits_.archive.{n}_1-0-1" for n in (1, 2, 3)]


def test_small_neighbours_are_merged_and_larger_ones_stop_it(storage: MemoryStorage) -> None:
    for _ in range(3):
        append_archive(storage, ARCHIVED, "{}", [[b"a"]])
    before = b"".join(storage.read(file.path) for file in list_archives(storage, ARCHIVED))
    assert merge_archives(storage, ARCHIVED, MergeLimits(batch_files=4)) is None
    assert merge_archives(storage, ARCHIVED, MergeLimits(batch_files=3, small_bytes=10)) is None
    merged = merge_archives(storage, ARCHIVED, MergeLimits(batch_files=3))
    assert merged is not None
    assert archives(storage) == [".commits_.archive.4_1-0-1"]
    assert storage.read(merged) == before


def left_merge(storage: MemoryStorage) -> list[str]:
    """Three archives, and a merge of the first two whose writer died; paths of the archives."""
    paths = [append_archive(storage, ARCHIVED, "{}", [[b"a"]]) for _ in range(3)]
    plan = {"candidate": [path.rpartition("/")[2] for path in paths[:2]], "mergedArchiveFileName": "/x/" + name(4)}
    storage.put(PLAN, encode_container("HoodieMergeArchiveFilePlan", plan, "0.15"))
    storage.put(f"{ARCHIVED}/{name(4)}", b"".join(storage.read(path) for path in paths[:2]))
    return paths


def name(number: int) -> str:
    return f".commits_.archive.{number}_1-0-1"


def test_a_merge_that_died_before_removing_anything_is_taken_back(storage: MemoryStorage) -> None:
    left_merge(storage)
    settle_merge(storage, ARCHIVED)
    assert archives(storage) == [name(1), name(2), name(3)]
    assert not list(storage.list(PLAN))


def test_a_merge_that_died_later_is_finished(storage: MemoryStorage) -> None:
    storage.delete(left_merge(storage)[0])
    settle_merge(storage, ARCHIVED)
    assert archives(storage) == [name(3), name(4)]


def test_a_plan_that_names_something_else_is_damage(storage: MemoryStorage) -> None:
    plan = {"candidate": ["../../data.parquet"], "mergedArchiveFileName": name(4)}
    storage.put(PLAN, encode_container("HoodieMergeArchiveFilePlan", plan, "0.15"))
    with pytest.raises(Corrupt, match="no archive"):
        settle_merge(storage, ARCHIVED)


def test_an_empty_plan_is_forgotten(storage: MemoryStorage) -> None:
    storage.put(PLAN, b"")
    settle_merge(storage, ARCHIVED)
    settle_merge(storage, ARCHIVED)
    assert not list(storage.list(ARCHIVED))
