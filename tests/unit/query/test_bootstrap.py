"""Rows of bootstrapped tables: skeletons stitched with the files of the source table."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import Corrupt, Unsupported
from hoodie.hfile import encode_hfile
from hoodie.slices.bootstrap import BootstrapSource, is_skeleton, iter_stitched, load_sources
from hoodie.spec import BaseFileName, TableConfig
from hoodie.spec.bootstrap_index import BOOTSTRAP_PARTITIONS_FILE, partition_key
from hoodie.storage import LocalStorage, MemoryStorage, open_storage
from hoodie.testing.hand_logs import HandLogTable
from hoodie.testing.hand_table import at, new_name
from hoodie.view import BaseFile, FileSlice

SKELETON = "p/f_0-1-2_00000000000001.parquet"
SCHEMA = pa.schema(
    {"_hoodie_commit_time": pa.string(), "_hoodie_record_key": pa.string(), "id": pa.string(), "qty": pa.int64()}
)
MIXED = pa.schema({"qty": pa.int64(), "_hoodie_record_key": pa.string(), "part": pa.string(), "id": pa.string()})


def parquet(rows: pa.Table, group_rows: int) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, row_group_size=group_rows)
    return buffer.getvalue()


def config(base: str) -> TableConfig:
    return TableConfig({"hoodie.table.name": "t", "hoodie.table.version": "9", "hoodie.bootstrap.base.path": base})


def index(**partitions: dict[str, str]) -> bytes:
    """Index over partitions: source file names by file id."""
    schema = {
        "type": "record",
        "name": "HoodieBootstrapPartitionMetadata",
        "fields": [
            {"name": "bootstrapPartitionPath", "type": "string"},
            {"name": "partitionPath", "type": "string"},
            {
                "name": "fileIdToBootstrapFile",
                "type": {
                    "type": "map",
                    "values": {
                        "type": "record",
                        "name": "S",
                        "fields": [
                            {
                                "name": "path",
                                "type": {
                                    "type": "record",
                                    "name": "P",
                                    "fields": [{"name": "uri", "type": "string"}],
                                },
                            }
                        ],
                    },
                },
            },
        ],
    }
    values = []
    for partition, files in partitions.items():
        statuses = {file_id: {"path": {"uri": f"/then/{name}"}} for file_id, name in files.items()}
        record = {"bootstrapPartitionPath": partition, "partitionPath": partition, "fileIdToBootstrapFile": statuses}
        buffer = io.BytesIO()
        fastavro.writer(buffer, schema, [record])
        values.append(buffer.getvalue())
    keys = pa.array([partition_key(one) for one in partitions], pa.binary())
    return encode_hfile(keys, pa.array(values, pa.binary()))


@pytest.fixture(name="source")
def _source() -> MemoryStorage:
    return MemoryStorage(new_name())


def stitch(
    storage: MemoryStorage, source: MemoryStorage, schema: pa.Schema, rows: int = 10, batch: int = 4
) -> pa.Table:
    """Rows of a skeleton with row groups of 3 beside a source with row groups of 7."""
    texts = pa.array([f"{at:03d}" for at in range(rows)], pa.string())
    times = pa.array(["00000000000001"] * rows, pa.string())
    meta = pa.table({"_hoodie_commit_time": times, "_hoodie_record_key": texts})
    storage.put(SKELETON, parquet(meta, 3))
    source.put("p/a.parquet", parquet(pa.table({"qty": pa.array(range(rows), pa.int32()), "id": texts}), 7))
    batches = list(iter_stitched(storage, SKELETON, BootstrapSource(source, "p/a.parquet"), schema, batch))
    assert all(0 < one.num_rows <= batch for one in batches)
    return pa.Table.from_batches(batches, schema=schema)


@pytest.mark.parametrize("rows", [0, 1, 4, 10, 50])
@pytest.mark.parametrize("batch", [1, 4, 100])
def test_row_by_row_a_skeleton_and_its_source_are_one(storage, source, rows, batch):
    got = stitch(storage, source, SCHEMA, rows, batch)
    assert got.column("_hoodie_record_key").to_pylist() == got.column("id").to_pylist()
    assert got.column("qty").to_pylist() == list(range(rows))


def test_columns_come_in_the_order_asked_for_and_those_of_the_path_are_null(storage, source):
    got = stitch(storage, source, MIXED, rows=2)
    assert got.to_pylist() == [
        {"qty": 0, "_hoodie_record_key": "000", "part": None, "id": "000"},
        {"qty": 1, "_hoodie_record_key": "001", "part": None, "id": "001"},
    ]


def test_only_meta_columns_do_not_need_the_source(storage, source, monkeypatch):
    stitch(storage, source, SCHEMA)
    source.delete("p/a.parquet")
    schema = pa.schema({"_hoodie_record_key": pa.string()})
    found = iter_stitched(storage, SKELETON, BootstrapSource(source, "p/a.parquet"), schema, 100)
    assert pa.Table.from_batches(found).num_rows == 10


def test_only_columns_of_the_source_are_read_from_it_alone(storage, source):
    assert stitch(storage, source, pa.schema({"qty": pa.int64()})).column("qty").to_pylist() == list(range(10))


@pytest.mark.parametrize("rows", [9, 11])
def test_a_source_with_another_number_of_rows_was_changed(storage, source, rows):
    stitch(storage, source, SCHEMA)
    source.put("p/a.parquet", parquet(pa.table({"id": ["x"] * rows}), 5))
    for schema in (SCHEMA, pa.schema({"id": pa.string()})):
        with pytest.raises(Corrupt, match=f"has {rows} rows, but the bootstrap found 10"):
            list(iter_stitched(storage, SKELETON, BootstrapSource(source, "p/a.parquet"), schema, 100))


def test_a_source_file_that_is_gone_is_named_with_its_full_path(storage, source):
    stitch(storage, source, SCHEMA)
    source.delete("p/a.parquet")
    with pytest.raises(Corrupt, match="is gone") as raised:
        list(iter_stitched(storage, SKELETON, BootstrapSource(source, "p/a.parquet"), SCHEMA, 100))
    assert raised.value.facts["path"] == source.absolute("p/a.parquet")


def test_the_index_tells_the_source_of_each_group(storage, source):
    partitions = {f"d{at}": {f"f{at}": f"part-{at}.parquet", "g": "other"} for at in range(300)}
    storage.put(BOOTSTRAP_PARTITIONS_FILE, index(**partitions))
    wanted = [("d7", "f7"), ("d299", "f299"), ("d299", "g")]
    found = load_sources(storage, config(source.uri), wanted)
    assert {group: one.path for group, one in found.items()} == {
        ("d7", "f7"): "d7/part-7.parquet",
        ("d299", "f299"): "d299/part-299.parquet",
        ("d299", "g"): "d299/other",
    }
    assert {one.storage.uri for one in found.values()} == {source.uri}
    assert pickle.loads(pickle.dumps(found["d7", "f7"])).path == "d7/part-7.parquet"


def test_no_groups_read_no_index(storage):
    assert load_sources(storage, config("s3://nowhere"), []) == {}


@pytest.mark.parametrize("group", [("d1", "x"), ("d2", "f")])
def test_a_group_the_index_does_not_know_is_named(storage, source, group):
    storage.put(BOOTSTRAP_PARTITIONS_FILE, index(d1={"f": "a"}))
    with pytest.raises(Corrupt, match="no source file"):
        load_sources(storage, config(source.uri), [group])


def test_an_index_that_is_gone_is_named(storage, source):
    with pytest.raises(Corrupt, match="bootstrap index"):
        load_sources(storage, config(source.uri), [("p", "f")])


def test_a_source_on_a_storage_there_is_none_for_is_named(storage):
    storage.put(BOOTSTRAP_PARTITIONS_FILE, index(p={"f": "a"}))
    with pytest.raises(Unsupported, match="hdfs"):
        load_sources(storage, config("hdfs://name/base"), [("p", "f")])


@pytest.mark.parametrize(
    ("instant", "base", "expected"),
    [
        ("00000000000001", "/source", True),
        ("00000000000002", "/source", False),
        ("20261121000000000", "/source", False),
        ("00000000000001", "", False),
    ],
)
def test_skeletons_are_known_by_their_instant(instant: str, base: str, expected: bool) -> None:
    name = BaseFileName("f", "0-1-2", instant)
    part = FileSlice("p", "f", instant, BaseFile(f"p/{name.text}", name, 1))
    raw: dict[str, Any] = {"hoodie.bootstrap.base.path": base} if base else {}
    assert is_skeleton(part, TableConfig(raw)) is expected
    assert not is_skeleton(FileSlice("p", "f", instant, None), TableConfig(raw))


@pytest.fixture(name="table")
def _table(profile, source) -> HandLogTable:
    """A merge-on-read table with one skeleton of k1, k2 and k3 in partition p, whose rows are in `source`."""
    table = HandLogTable(profile, choices={"extra": {"hoodie.bootstrap.base.path": source.uri}})
    first = "00000000000001"
    rows = [{"id": f"k{number}", "part": "p", "qty": number} for number in (1, 2, 3)]
    table.commit(first, {("p", "f"): rows}, completed=at(1), operation="BOOTSTRAP")
    path = table.path_of(first, "p", "f")
    whole = pq.read_table(io.BytesIO(table.storage.read(path)))
    table.storage.put(path, parquet(whole.drop_columns(["id", "part", "qty"]), 2))
    source.put("p/a.parquet", parquet(whole.select(["qty", "id"]), 2))
    table.storage.put(BOOTSTRAP_PARTITIONS_FILE, index(p={"f": "a.parquet"}))
    return table


def test_a_snapshot_gives_the_rows_of_the_source(table, rows):
    assert rows(table, columns=("_hoodie_record_key", "id", "part", "qty")).to_pylist() == [
        {"_hoodie_record_key": f"k{number}", "id": f"k{number}", "part": "p", "qty": number} for number in (1, 2, 3)
    ]
    assert rows(table, columns=("id",), filter="qty > 1 and part = 'p'").to_pydict() == {"id": ["k2", "k3"]}
    assert rows(table, columns=()).num_rows == 3


def test_logs_are_merged_with_the_rows_of_the_source(table, rows):
    table.delta(at(2), {("p", "f"): {"rows": [{"id": "k1", "part": "p", "qty": 10}], "deleted": ["k2"]}})
    table.delta(at(3), {("p", "f"): {"rows": [{"id": "k4", "part": "p", "qty": 4}]}})
    now = rows(table, columns=("id", "qty")).sort_by("id").to_pydict()
    assert now == {"id": ["k1", "k3", "k4"], "qty": [10, 3, 4]}
    assert rows(table, columns=("id",), query="read_optimized").to_pydict() == {"id": ["k1", "k2", "k3"]}
    assert rows(table, columns=("qty",), as_of="00000000000001").to_pydict() == {"qty": [1, 2, 3]}


@pytest.mark.parametrize(
    "base", ["s3://bucket/private", "gs://bucket/private", "abfss://c@account.dfs.core.windows.net/x"]
)
def test_a_source_on_another_kind_of_storage_is_refused_before_anybody_is_asked(tmp_path: Path, base: str) -> None:
    storage = LocalStorage(str(tmp_path))
    with pytest.raises(Unsupported, match="from a table on file to .*copy it to the kind of storage"):
        load_sources(storage, config(base), [("p", "f-0")])
    remote = open_storage("s3://bucket/table", {"aws_region": "eu-west-1"})
    with pytest.raises(Unsupported, match="from a table on s3 to file"):
        load_sources(remote, config("/etc"), [("p", "f-0")])
