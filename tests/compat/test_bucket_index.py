"""Bucket indexes in turns: Hudi upserts into our buckets and we into Hudi's, and no key is there twice.

Every side names the index in its options: a table's properties do not say it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from peers import (
    WRITE,
    Model,
    Peer,
    Readers,
    continue_table,
    ensure_same_rows,
    read_rows,
    slim_rows,
    table_options,
    without_meta,
    write_rows,
)

from hoodie import Table
from hoodie.index import KeyParts, SimpleBuckets, load_ring
from hoodie.index.hash_ring import CONSISTENT_DIR

WRITERS = [(6, "hudi_015"), (8, "hudi_12"), (9, "hudi_12")]
SIMPLE = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
RINGS = SIMPLE | {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
MERGE = {WRITE + "table.type": "MERGE_ON_READ"}
LATEST = {WRITE + "payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
KINDS = {
    "simple_cow": SIMPLE,
    "simple_mor": SIMPLE | MERGE,
    "consistent_mor": RINGS | MERGE,
}
STRATEGY = "org.apache.hudi.client.clustering."
RESIZING = {
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "1",
    "hoodie.bucket.index.min.num.buckets": "2",
    "hoodie.bucket.index.max.num.buckets": "8",
    "hoodie.clustering.plan.strategy.class": STRATEGY + "plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
    "hoodie.clustering.execution.strategy.class": STRATEGY
    + "run.strategy.SparkConsistentBucketClusteringExecutionStrategy",
    "hoodie.clustering.updates.strategy": STRATEGY + "update.strategy.SparkConsistentBucketDuplicateUpdateStrategy",
}
TURNS = 3


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize("kind", KINDS)
def test_turns_leave_every_key_once(
    *, kind: str, first: str, version: int, writer: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    index = KINDS[kind] | LATEST
    options = table_options(version, "id", "region") | index
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    start = slim_rows(range(60))
    if first == "ours":
        write_rows(table, "insert", start, options)
    else:
        peer.write(table, "insert", start, _for_peer(options, peer), mode="overwrite")
    model.upsert(start)
    for turn in range(1, TURNS + 1):
        theirs, gone = _changes(2 * turn), slim_rows([turn + 7, 200 * turn + 1], 2 * turn + 1)
        peer.write(table, "upsert", theirs, _for_peer(index, peer))
        peer.write(table, "delete", gone, _for_peer(index, peer))
        model.upsert(theirs)
        model.delete(gone)
        ours, gone = _changes(2 * turn + 1), slim_rows([turn + 20], 2 * turn + 2)
        continue_table(table, "upsert", ours, index)
        continue_table(table, "delete", gone, index)
        model.upsert(ours)
        model.delete(gone)
        rows = read_rows(table)
        ensure_same_rows(rows, peer.read(table), called=("ours", peer.name))
        ensure_same_rows(without_meta(rows), model.rows, called=("both", f"model after turn {turn}"))
    if "consistent" in kind:
        ensure_rings_name_files(table)


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_some_fields_of_a_composite_key_are_hashed_alike(
    version: int, writer: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    index = SIMPLE | {"hoodie.bucket.index.hash.field": "city"}
    options = table_options(version, "id,city", "region") | index
    table = tmp_path / "table"
    rows = slim_rows(range(40))
    write_rows(table, "bulk_insert", rows, options)
    for turn in (1, 2):
        rows = slim_rows(range(turn, 40 + turn), turn)
        peer.write(table, "upsert", rows, index)
        continue_table(table, "upsert", rows, index)
    found = read_rows(table)
    ensure_same_rows(found, peer.read(table), called=("ours", peer.name))
    assert len(set(found.column("_hoodie_record_key").to_pylist())) == found.num_rows == 42


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("1.2.0/cow_bucket_simple", SIMPLE),
        ("1.2.0/mor_bucket_simple", SIMPLE),
        ("1.2.0/mor_bucket_consistent", RINGS),
        ("1.2.0/mor_bucket_consistent_resized", RINGS),
        ("0.15.0/mor_bucket_simple", SIMPLE),
        ("0.15.0/mor_bucket_consistent", RINGS),
    ],
    ids=str,
)
def test_rows_of_hudis_tables_lie_in_the_buckets_we_compute(
    name: str, index: dict[str, str], golden: Callable[..., tuple[Path, Path]]
) -> None:
    path, _ = golden(name)
    table = Table.open(str(path), options={"hoodie.metadata.enable": "false", **index})
    before = table.scan().read_all()
    storage, parts = table.storage, KeyParts(("id",), ("id",))
    for partition in set(before.column("_hoodie_partition_path").to_pylist()):
        rows = before.filter(pc.equal(before.column("_hoodie_partition_path"), partition))
        ring = load_ring(storage, partition, parts=parts)
        buckets = SimpleBuckets(4, parts) if ring is None else ring
        files = [text.partition("_")[0] for text in rows.column("_hoodie_file_name").to_pylist()]
        keys = rows.column("_hoodie_record_key").combine_chunks()
        assert [buckets.number_of(file_id) for file_id in files] == buckets.numbers(keys).tolist()
    table.upsert(without_meta(before))
    after = table.scan().read_all()
    ensure_same_rows(without_meta(before), without_meta(after), called=("before", "after"))


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_buckets_that_we_split_and_merge_are_found_by_hudi(
    version: int, writer: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    index = RINGS | MERGE | LATEST | {"hoodie.bucket.index.max.num.buckets": "8"}
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    write_rows(table, "insert", slim_rows(range(60)), table_options(version, "id", "region") | index)
    model.upsert(slim_rows(range(60)))
    for turn, sizes in enumerate(
        ({"hoodie.parquet.max.file.size": "1000"}, {"hoodie.bucket.index.min.num.buckets": "1"})
    ):
        theirs = _changes(2 * turn + 1)
        peer.write(table, "upsert", theirs, _for_peer(index, peer))
        model.upsert(theirs)
        done = Table.open(str(table), options={"hoodie.metadata.enable": "false"}).services.resize(**{**index, **sizes})
        assert done is not None
        assert done.merges if turn else done.splits
        ensure_same_rows(read_rows(table), peer.read(table), called=("ours", peer.name))
        theirs = _changes(2 * turn + 2)
        peer.write(table, "upsert", theirs, _for_peer(index, peer))
        model.upsert(theirs)
        rows = read_rows(table)
        ensure_same_rows(rows, peer.read(table), called=("ours", peer.name))
        ensure_same_rows(without_meta(rows), model.rows, called=("both", f"model after turn {turn}"))


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_buckets_that_hudi_resizes_are_found_by_us(version: int, writer: str, readers: Readers, tmp_path: Path) -> None:
    peer: Peer = getattr(readers, writer)
    index = RINGS | MERGE | LATEST
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    write_rows(table, "insert", slim_rows(range(60)), table_options(version, "id", "region") | index)
    model.upsert(slim_rows(range(60)))
    for turn in (1, 2, 3):
        theirs = _changes(2 * turn)
        peer.write(table, "upsert", theirs, _for_peer(index | RESIZING, peer))
        model.upsert(theirs)
        ours = _changes(2 * turn + 1)
        continue_table(table, "upsert", ours, index)
        model.upsert(ours)
        rows = read_rows(table)
        ensure_same_rows(rows, peer.read(table), called=("ours", peer.name))
        ensure_same_rows(without_meta(rows), model.rows, called=("both", f"model after turn {turn}"))
    rings = list((table / CONSISTENT_DIR).rglob("*.hashing_meta"))
    assert any(not file.name.startswith("00000000000000") for file in rings)


def ensure_rings_name_files(table: Path) -> None:
    """Every base file has a node of its partition's ring."""
    for ring in (table / CONSISTENT_DIR).rglob("00000000000000.hashing_meta"):
        prefixes = {node["fileIdPrefix"] for node in json.loads(ring.read_bytes())["nodes"]}
        partition = ring.parent.relative_to(table / CONSISTENT_DIR)
        files = {file.name.split("_")[0].rpartition("-")[0] for file in (table / partition).glob("*.parquet")}
        assert files <= prefixes


def _changes(turn: int) -> pa.Table:
    """Updates of known rows and some new ones."""
    return slim_rows([*range(turn, 60, 5), *range(100 * turn, 100 * turn + 6)], turn)


def _for_peer(options: dict[str, str], peer: Peer) -> dict[str, str]:
    """The version is asked for where the peer knows more than one."""
    if peer.name.endswith("0.15.0"):
        return {key: value for key, value in options.items() if key != "hoodie.write.table.version"}
    return options | {"hoodie.write.auto.upgrade": "false"}
