"""Several copies of a key in one base file: what Hudi makes of them, which is not what we do (docs/compat.md)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from peers import Readers, continue_table, read_rows, table_options, write_rows

from hoodie import Table


def _rows(*pairs: tuple[str, str], ts: int = 1) -> pa.Table:
    keys, texts = zip(*pairs, strict=True)
    return pa.table({"id": list(keys), "ts": pa.array([ts] * len(keys), pa.int64()), "v": list(texts)})


def _held(rows: pa.Table) -> list[tuple[str, str]]:
    return sorted(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))


COPIES = _rows(("a", "1"), ("a", "2"), ("b", "1"), ("b", "2"))
OURS = [("a", "new"), ("a", "new")]
FIRST_ONLY = [("a", "2"), ("a", "new"), ("b", "2")]


def test_in_copy_on_write_tables_hudi_1_2_rewrites_the_first_copy_and_hudi_0_15_all(
    readers: Readers, tmp_path: Path
) -> None:
    for version, hudi, left in ((6, readers.hudi_015, OURS), (9, readers.hudi_12, FIRST_ONLY)):
        table = tmp_path / str(version)
        write_rows(table, "bulk_insert", COPIES, table_options(version, "id"))
        hudi.write(table, "upsert", _rows(("a", "new"), ts=2))
        hudi.write(table, "delete", _rows(("b", ""), ts=2))
        assert _held(hudi.read(table)) == left


@pytest.mark.parametrize("version", [6, 8, 9])
def test_hudi_merges_the_first_copy_with_logs_of_version_6_and_all_copies_with_later_ones(
    version: int, readers: Readers, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    write_rows(
        table,
        "bulk_insert",
        COPIES,
        {**table_options(version, "id"), "hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    )
    continue_table(table, "upsert", _rows(("a", "new"), ts=2))
    continue_table(table, "delete", _rows(("b", ""), ts=2))
    assert _held(read_rows(table)) == OURS
    for hudi in (readers.hudi_12, readers.hudi_015)[: 2 if version == 6 else 1]:
        assert _held(hudi.read(table)) == (FIRST_ONLY if version == 6 else OURS), hudi.name
    Table.open(str(table)).services.compact()
    assert _held(readers.hudi_12.read(table)) == OURS
