"""Writes into a table that Hudi bootstrapped: rows whose data stand in the other table are never lost."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.errors import Unsupported
from hoodie.read.bootstrap import is_skeleton
from hoodie.table import Table
from hoodie.testing.golden import golden_tables

(GOLDEN,) = (
    table
    for table in golden_tables(Path(__file__).parent / "tables")
    if table.name == "1.2.0/cow_bootstrap_metadata_only"
)


@pytest.fixture(name="table")
def _with_skeletons(tmp_path: Path) -> Table:
    """The golden table as it was before its first upsert."""
    table = Table.open(str(GOLDEN.unpack(tmp_path)))
    while not any(is_skeleton(one, table.config) for one in table.files()):
        table.rollback(table.timeline().completed_writes()[-1].requested)
    return table


def data_of(table: Table) -> pa.Table:
    rows = table.scan().read_all()
    return rows.drop_columns([name for name in rows.schema.names if name.startswith("_hoodie_")]).sort_by("id")


@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_rows_that_stand_elsewhere_are_not_rewritten_without_their_data(table: Table, operation: str) -> None:
    before = data_of(table)
    assert before["ts"].null_count == 0
    with pytest.raises(Unsupported, match="bootstrapped"):
        table.write(operation, before.slice(0, 1))
    assert data_of(table).equals(before)
    assert table.validate() == []


def test_new_rows_go_to_files_of_their_own(table: Table) -> None:
    before = data_of(table)
    new = before.slice(0, 1).set_column(0, before.schema.field(0), [pa.array(["new"], before.schema.field(0).type)])
    table.upsert(new)
    table.insert(new.set_column(0, before.schema.field(0), [pa.array(["newer"], before.schema.field(0).type)]))
    after = data_of(table)
    assert after.num_rows == before.num_rows + 2
    assert after.filter(pa.compute.is_in(after["id"], before["id"].combine_chunks())).equals(before)
