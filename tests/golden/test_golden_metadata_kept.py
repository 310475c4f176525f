"""Metadata tables of the real Hudi, kept on by us: written to, compacted and cleaned, they list what is there and lose
no record of their indexes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie import Table
from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.metadata import MetadataTable, open_metadata_table
from hoodie.services.metadata_upkeep import keep_metadata
from hoodie.state.handle import open_handle, timeline_of
from hoodie.testing.golden import GoldenTable, golden_tables
from hoodie.view import PartitionFiles, list_files

HERE = Path(__file__).parent
NAMES = (
    "0.15.0/cow_colstats_bloom_mdt",
    "0.15.0/cow_record_index",
    "0.15.0/mor_part",
    "0.15.0/mor_rollback_completed",
    "1.2.0/cow_mdt_compacted",
    "1.2.0/cow_secondary_index",
    "1.2.0/cow_table_version_6",
    "1.2.0/cow_table_version_8",
    "1.2.0/mor_downgraded_9_to_6",
    "1.2.0/mor_part",
)
TABLES = [table for table in golden_tables(HERE / "tables") if table.name in NAMES]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_metadata_table_of_hudi_goes_on_with_us(
    table: GoldenTable, unpacked: Callable[[GoldenTable], Path], tmp_path: Path
) -> None:
    path = str(shutil.copytree(unpacked(table), tmp_path / "table"))
    rows = Table.open(path).scan().read_all()
    some = rows.slice(0, 3).select([name for name in rows.column_names if not name.startswith("_hoodie")])
    Table.open(path).write("upsert", some)
    before = ensure_true(path)
    options = resolve({"hoodie.metadata.compact.max.delta.commits": "1"})
    assert keep_metadata(open_handle(path, {}), options, LocalEngine()) is not None
    assert ensure_true(path) == before
    Table.open(path).write("upsert", some)
    ensure_true(path)
    assert Table.open(path).scan().read_all().num_rows == rows.num_rows


def ensure_true(path: str) -> dict[str, int]:
    """Numbers of records in each partition of a metadata table that agrees with the storage."""
    handle = open_handle(path, {})
    known = open_metadata_table(handle.storage, handle.config, timeline_of(handle))
    assert known is not None
    there, listed = sizes(list_files(handle.storage)), sizes(known.files())
    assert {name: there[name] for name in listed if name.endswith(".parquet")} == {
        name: size for name, size in listed.items() if name.endswith(".parquet")
    }
    assert [finding for finding in Table.open(path).validate() if "metadata table" in finding.message] == []
    return counts(known)


def counts(known: MetadataTable) -> dict[str, int]:
    """Records that are no tombstones, by partition."""
    found = {}
    for partition in known.partitions:
        records = known.records(partition)
        found[partition] = sum(not is_gone(one) for one in records.to_pylist())
    return found


def is_gone(record: dict[str, object]) -> bool:
    return any(isinstance(value, dict) and bool(value.get("isDeleted")) for value in record.values())


def sizes(files: tuple[PartitionFiles, ...]) -> dict[str, int]:
    return {one.path: one.size_bytes for part in files for one in part.everything}
