"""Merge-on-read tables of the real Hudi, compacted by us: pending plans are carried out, then everything is, and a
snapshot gives the same rows as before, commit times included. The same with log compaction.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.locks import held_lock
from hoodie.query import ReadOptions, load_read_plan, run_read, validate_table
from hoodie.services.compaction.admin import validate_compaction
from hoodie.services.compaction.compact import run_compaction, schedule_compaction
from hoodie.services.compaction.log_compact import run_log_compaction, schedule_log_compaction
from hoodie.state.handle import TableHandle, open_handle, timeline_of
from hoodie.testing.golden import GoldenTable, difference, golden_tables

pytestmark = pytest.mark.sampled(4)

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FULL = os.environ.get("HOODIE_GOLDEN_DIR")
TABLES = tuple(
    table
    for table in golden_tables((ROOT / FULL).resolve() if FULL else HERE / "tables")
    if table.scenario.startswith("mor_") and table.is_merge_on_read
)
OPTIONS = resolve({"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": "2"})
ENGINE = LocalEngine(2)

every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


def rows_of(handle: TableHandle, query: str = "snapshot") -> pa.Table:
    """All columns but the file name, which a compaction changes."""
    plan = load_read_plan(handle.storage, handle.config, timeline_of(handle), ReadOptions(query=query))  # type: ignore[arg-type]
    rows = run_read(plan, handle.storage).read_all()
    return rows.select([name for name in rows.column_names if name != "_hoodie_file_name"])


def run_all(handle: TableHandle) -> None:
    while run_log_compaction(handle, OPTIONS, ENGINE) is not None:
        pass
    while run_compaction(handle, OPTIONS, ENGINE) is not None:
        pass


@every_table
def test_compaction_keeps_every_row_and_moves_all_to_base_files(table: GoldenTable, tmp_path: Path) -> None:
    handle = open_handle(str(table.unpack(tmp_path)), {})
    before = rows_of(handle)
    assert all(check.is_valid for check in validate_compaction(handle))
    run_all(handle)
    assert difference(rows_of(handle), before) is None
    with held_lock(handle.storage, "plan"):
        schedule_compaction(handle, OPTIONS, ENGINE, when_due=False)
    assert all(check.is_valid for check in validate_compaction(handle))
    run_all(handle)
    assert difference(rows_of(handle), before) is None
    assert difference(rows_of(handle, "read_optimized"), before) is None
    assert validate_table(handle, ENGINE) == []


@every_table
def test_log_compaction_keeps_every_row(table: GoldenTable, tmp_path: Path) -> None:
    handle = open_handle(str(table.unpack(tmp_path)), {})
    before = rows_of(handle)
    with held_lock(handle.storage, "plan"):
        schedule_log_compaction(handle, OPTIONS, ENGINE)
    run_log_compaction(handle, OPTIONS, ENGINE)
    assert difference(rows_of(handle), before) is None
    assert validate_table(handle, ENGINE) == []
