"""Writes into tables that Hudi bootstrapped: of a skeleton they make a whole base file, as Hudi does."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie.slices.bootstrap import is_skeleton
from hoodie.table import Table
from hoodie.testing.golden import GoldenTable, golden_tables

TABLES = tuple(
    table
    for table in golden_tables(Path(__file__).parent / "tables")
    if table.scenario == "cow_bootstrap_metadata_only"
)


@pytest.fixture(name="golden", params=TABLES, ids=lambda table: table.name)
def _golden(request: pytest.FixtureRequest) -> GoldenTable:
    found: GoldenTable = request.param
    return found


@pytest.fixture(name="table")
def _with_skeletons(golden: GoldenTable, tmp_path: Path) -> Table:
    """The golden table as it was before its first upsert."""
    table = Table.open(str(golden.unpack(tmp_path)))
    while not any(is_skeleton(one, table.config) for one in table.files()):
        table.services.rollback(table.timeline().completed_writes()[-1].requested)
    return table


def data_of(rows: pa.Table) -> pa.Table:
    names = [name for name in rows.schema.names if not name.startswith("_hoodie_")]
    return rows.select(names).sort_by("id").combine_chunks()


def stored_rows(table: Table) -> pa.Table:
    """Rows of the newest base files, as they are in them."""
    paths = [one.base.path for one in table.files() if one.base is not None and not is_skeleton(one, table.config)]
    return pa.concat_tables([pq.read_table(io.BytesIO(table.storage.read(path))) for path in paths])


def test_our_upsert_gives_the_rows_that_hudis_gave(golden: GoldenTable, table: Table) -> None:
    hudis = Table.open(str(golden.unpack(Path(table.uri).parent / "hudis")))
    table.upsert(pq.read_table(golden.folder / "expected" / "input_1.parquet"))
    assert not any(is_skeleton(one, table.config) for one in table.files())
    expected = data_of(pq.read_table(golden.folder / "expected" / "snapshot.parquet"))
    assert data_of(table.scan().read_all()).select(expected.schema.names).equals(expected)
    ours, theirs = data_of(stored_rows(table)), data_of(stored_rows(hudis))
    assert ours.select(theirs.schema.names).to_pylist() == theirs.to_pylist()
    assert {one.file_id for one in table.files()} == {one.file_id for one in hudis.files()}
    assert table.validate() == []


def test_a_delete_leaves_the_other_rows_of_a_skeleton_as_they_are(table: Table) -> None:
    before = data_of(table.scan().read_all())
    assert before["ts"].null_count == 0
    table.delete(before.slice(0, 1))
    assert data_of(table.scan().read_all()).equals(before.slice(1).combine_chunks())
    assert table.validate() == []


def test_new_rows_fill_skeletons_up(table: Table) -> None:
    before, groups = data_of(table.scan().read_all()), {one.group_id for one in table.files()}
    key = before.schema.field("id")
    for number, operation in enumerate(("upsert", "insert")):
        table.write(operation, before.slice(0, 1).set_column(0, key, [pa.array([f"new{number}"], key.type)]))
    assert {one.group_id for one in table.files()} == groups
    after = data_of(table.scan().read_all())
    assert after.num_rows == before.num_rows + 2
    assert after.filter(pc.is_in(after["id"], before["id"].combine_chunks())).equals(before)
    assert table.validate() == []


def test_partitions_are_replaced_and_deleted(table: Table) -> None:
    before = data_of(table.scan().read_all())
    first = sorted(set(before["part"].to_pylist()))[0]
    elsewhere = before.filter(pc.not_equal(before["part"], first))
    kept = before.filter(pc.equal(before["part"], first)).slice(0, 1)
    table.write("insert_overwrite", kept)
    assert data_of(table.scan().read_all()).equals(data_of(pa.concat_tables([elsewhere, kept])))
    table.delete_partition(next(one.partition for one in table.files() if first in one.partition))
    assert data_of(table.scan().read_all()).equals(elsewhere.combine_chunks())
    assert table.validate() == []
