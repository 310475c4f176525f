"""Golden tables are taken back, and to another version: rows are those that time travel gave before."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.table import Table
from hoodie.testing.golden import GoldenTable, golden_tables

pytestmark = pytest.mark.sampled(4)

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FULL = os.environ.get("HOODIE_GOLDEN_DIR")
NAMES = {
    "0.15.0/cow_archived",
    "0.15.0/cow_clustering_sort",
    "0.15.0/cow_insert_overwrite",
    "0.15.0/mor_bucket_simple",
    "0.15.0/mor_clustering",
    "0.15.0/mor_compaction_pending",
    "0.15.0/mor_failed_rolled_back",
    "0.15.0/mor_inline_compaction",
    "0.15.0/mor_log_compaction",
    "0.15.0/mor_part",
    "1.2.0/cow_alter_table",
    "1.2.0/cow_archived",
    "1.2.0/cow_clustering_pending",
    "1.2.0/cow_delete_partition",
    "1.2.0/cow_upgraded_6_8_9",
    "1.2.0/mor_compaction_pending",
    "1.2.0/mor_delete_all",
    "1.2.0/mor_downgraded_9_to_6",
    "1.2.0/mor_part",
    "1.2.0/mor_table_version_8",
}
TABLES = tuple(
    table for table in golden_tables((ROOT / FULL).resolve() if FULL else HERE / "tables") if table.name in NAMES
)

every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


def rows_of(table: Table, as_of: str | None = None) -> list[dict[str, object]]:
    """All rows but for the file they are in, which a compaction changes."""
    found: pa.Table = table.scan(as_of=as_of).read_all()
    return sorted(found.drop_columns(["_hoodie_file_name"]).to_pylist(), key=repr)


def states_of(table: Table, times: list[str | None]) -> dict[str | None, list[dict[str, object]]]:
    """The rows as of each time that was not cleaned away; None is now."""
    found = {}
    for time in times:
        try:
            found[time] = rows_of(table, time)
        except Invalid as refused:
            assert "cleaned" in str(refused)
    return found


def writes_of(table: Table) -> list[str]:
    return [one.requested for one in table.timeline().completed_writes()]


@every_table
def test_newest_write_can_be_rolled_back(table: GoldenTable, tmp_path: Path) -> None:
    opened = Table.open(str(table.unpack(tmp_path)))
    *_, before, last = writes_of(opened)
    expected = states_of(opened, [before])
    try:
        opened.services.rollback(last)
    except Invalid as refused:
        assert "came after" in str(refused)  # a pending plan rests on it
        return
    assert expected in ({}, {before: rows_of(opened)})
    assert last not in writes_of(opened)
    assert [finding for finding in opened.validate() if finding.kind != "pending"] == []


@every_table
def test_every_commit_can_be_restored(table: GoldenTable, tmp_path: Path) -> None:
    writes = writes_of(Table.open(str(table.unpack(tmp_path / "first"))))
    for number, to in enumerate(writes[:-1]):
        opened = Table.open(str(table.unpack(tmp_path / str(number))))
        try:
            expected = rows_of(opened, to)
            opened.services.restore(to)
        except Invalid as refused:
            assert "older than" in str(refused) or "cleaned" in str(refused), to
            continue
        assert rows_of(opened) == expected, to
        assert opened.validate() == [], to


@every_table
@pytest.mark.parametrize("version", [6, 8, 9])
def test_rows_are_the_same_in_every_version(table: GoldenTable, version: int, tmp_path: Path) -> None:
    opened = Table.open(str(table.unpack(tmp_path)))
    if opened.config.table_version == version:
        pytest.skip("it has that version")
    writes = writes_of(opened)
    expected = states_of(opened, [*writes, None])
    opened.services.upgrade(version)
    assert opened.config.table_version == version
    assert states_of(opened, [*writes, None]) == expected
    assert opened.validate() == []
