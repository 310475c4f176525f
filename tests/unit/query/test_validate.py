"""Findings: each thing that can be wrong with a table is found and named, and a good table has none."""

from __future__ import annotations

import pytest

from hoodie.query import validate_table
from hoodie.spec import State, keys
from hoodie.testing.hand_table import HandTable, at
from hoodie.testing.lake import Lake
from hoodie.testing.lake import row as lake_row


def row(key: str) -> dict[str, object]:
    return {"id": key, "part": "p0", "qty": 1}


def good(profile) -> HandTable:
    table = HandTable(profile)
    table.commit(at(1), {("p0", "a"): [row("k1"), row("k2")], ("p0", "b"): [row("k3")]})
    table.commit(at(3), {("p0", "a"): [row("k1")]})
    return table


def found(table: HandTable) -> list[tuple[str, str]]:
    return [(one.kind, one.path) for one in validate_table(table.handle)]


def test_a_good_table_has_no_findings(profile):
    assert found(good(profile)) == []


def test_cleaned_files_are_not_missing(profile):
    table = good(profile)
    table.clean(at(5), at(3), removed=[table.path_of(at(1), "p0", "a")])
    assert found(table) == []


def test_files_that_a_clean_took_which_counts_versions_are_not_missing_after_one_that_counts_commits(version):
    lake = Lake(version, {"hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"})
    for ts in range(3):
        lake.upsert(lake_row("b", ts=ts, part="q"))
    lake.upsert(lake_row("a"))
    lake.table.delete_partition("p")
    lake.table.services.clean(
        **{"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 2}
    )
    assert not [path for path in lake.base_files() if path.startswith("p/")]
    lake.upsert(lake_row("b", ts=3, part="q"))
    lake.upsert(lake_row("b", ts=4, part="q"))
    assert lake.table.services.clean(**{"hoodie.clean.commits.retained": 3})
    assert lake.table.validate() == []


def test_files_that_a_pending_clean_may_have_removed_are_not_missing(profile):
    table = good(profile)
    table.commit(at(5), {("p0", "a"): [row("k1")]})
    table.clean(at(6), at(3), removed=[table.path_of(at(1), "p0", "a")])
    table.storage.delete(table.path_of(at(3), "p0", "a"))
    assert found(table) == [("missing", table.path_of(at(3), "p0", "a"))]
    table.instant(at(7), "clean", state=State.INFLIGHT)
    assert found(table) == []
    table.storage.delete(table.path_of(at(5), "p0", "a"))
    assert found(table) == [("missing", table.path_of(at(5), "p0", "a"))]


@pytest.mark.parametrize("second", [1, 3])
def test_missing_file_is_found(profile, second):
    table = good(profile)
    path = table.path_of(at(second), "p0", "a")
    table.storage.delete(path)
    assert found(table) == [("missing", path)]


def test_file_of_another_size_is_found_and_unreadable_ones_too(profile):
    table = good(profile)
    path = table.path_of(at(1), "p0", "b")
    table.storage.put(path, table.storage.read(path)[:-8])
    assert found(table) == [("size", path), ("unreadable", path)]


def test_file_with_other_rows_is_found(profile):
    table = good(profile)
    path, other = table.path_of(at(1), "p0", "b"), table.path_of(at(1), "p0", "a")
    table.storage.put(path, table.storage.read(other))
    assert [kind for kind, _ in found(table)] == ["rows", "size"]


def test_files_that_no_commit_wrote_are_found(profile):
    table = good(profile)
    stray = table.path_of(at(2), "p0", "a")
    unlisted = table.path_of(at(1), "p0", "c")
    table.storage.put(stray, b"x")
    table.storage.put(unlisted, table.storage.read(table.path_of(at(1), "p0", "b")))
    assert found(table) == [("orphan", stray), ("unlisted", unlisted)]


def test_write_that_died_is_found_with_its_files(profile):
    table = good(profile)
    table.commit(at(5), {("p0", "a"): [row("k1")]}, state=State.INFLIGHT)
    path = table.path_of(at(5), "p0", "a")
    assert found(table) == [("pending", f"{at(5)}.commit"), ("uncommitted", path)]


def test_partition_that_readers_do_not_see_is_found(profile):
    table = good(profile)
    table.commit(at(5), {("p9", "z"): [row("k9")]})
    table.storage.delete(f"p9/{keys.PARTITION_METAFILE_PREFIX}")
    assert found(table) == [("partition", "p9")]


def test_damaged_commit_is_found(profile):
    table = good(profile)
    name = next(
        file.path for file in table.storage.list_dir(profile.timeline_dir).files if file.path.endswith(".commit")
    )
    table.storage.put(name, b"Obj\x01garbage")
    assert found(table) == [("unreadable", name)]


def test_damaged_properties_and_a_left_backup_are_found(profile):
    table = good(profile)
    text = table.storage.read(keys.PROPERTIES_FILE)
    table.storage.put(keys.PROPERTIES_BACKUP_FILE, text)
    table.storage.put(keys.PROPERTIES_FILE, text.replace(b"hoodie.table.name=hand", b"hoodie.table.name=foot"))
    assert found(table) == [("properties", keys.PROPERTIES_FILE), ("properties", keys.PROPERTIES_BACKUP_FILE)]


def test_states_that_do_not_fit_together_are_found(profile):
    table = good(profile)
    table.storage.delete(f"{profile.timeline_dir}/{at(3)}.commit.requested")
    table.instant(at(3), "deltacommit")
    kinds = validate_table(table.handle)
    assert {(one.kind, one.path) for one in kinds} >= {("timeline", f"{at(3)}.commit"), ("timeline", at(3))}


def test_completion_before_request_is_found(profile):
    if not profile.stores_completion_time:
        pytest.skip("names carry no completion time")
    table = good(profile)
    table.commit(at(5), {}, completed=at(4))
    assert found(table) == [("timeline", f"{at(5)}.commit")]
