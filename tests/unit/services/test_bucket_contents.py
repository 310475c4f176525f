"""A deep look says which rows do not lie in the buckets of their keys, as one that was written with other options."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie.index.hash_ring import CONSISTENT_DIR, encode_ring, parse_ring
from hoodie.testing.lake import Lake, row, table_of
from hoodie.timeline import store_table_config

INDEX = "hoodie.index.type"
COUNT = "hoodie.bucket.index.num.buckets"
SIMPLE = {INDEX: "BUCKET", COUNT: "4"}
MERGE = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
RINGS = {**SIMPLE, **MERGE, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}


def rows(v, ts, part="p"):
    return table_of([row(f"k{n}", v, ts, part) for n in range(20)])


def written(version, options) -> Lake:
    lake = Lake(version, options)
    lake.write("bulk_insert", rows("a", 1))
    lake.write("insert", rows("a", 1, "q"))
    lake.write("upsert", rows("b", 2))
    return lake


def strays(lake) -> list[str]:
    assert lake.table.validate() == []  # it reads no keys
    return [one.message for one in lake.table.validate(deep=True) if one.kind == "bucket"]


@pytest.mark.parametrize("options", [SIMPLE, SIMPLE | MERGE, RINGS], ids=["simple_cow", "simple_mor", "rings"])
def test_rows_in_their_buckets_are_no_finding(version, options):
    lake = written(version, options)
    assert lake.table.validate(deep=True) == []
    if options is RINGS:
        split = {"hoodie.parquet.max.file.size": "1000", "hoodie.bucket.index.max.num.buckets": "8"}
        assert lake.table.services.resize(**lake.options, **split) is not None
        assert lake.table.validate(deep=True) == []


@pytest.mark.parametrize("options", [SIMPLE, SIMPLE | MERGE], ids=["cow", "mor"])
@pytest.mark.parametrize(("count", "said"), [(3, "belongs to none of the 3 buckets"), (5, "rows of other buckets")])
def test_a_table_written_with_another_number_of_buckets_is_told(version, options, count, said):
    lake = written(version, options)
    handle = lake.handle()
    changed = handle.config.with_changes({COUNT: str(count)})
    store_table_config(lake.storage, handle.config, changed, handle.env)
    found = strays(lake)
    assert any(said in one for one in found), found
    assert any("rows of other buckets ('k" in one for one in found), found


def test_a_ring_whose_ranges_are_others_is_told():
    lake = written(9, RINGS)
    path = next(one.path for one in lake.storage.list(f"{CONSISTENT_DIR}/p") if one.path.endswith(".hashing_meta"))
    ring = parse_ring(lake.storage.read(path), "p", path)
    first, second, *others = ring.nodes
    wide = replace(first, value=second.value - 1)
    lake.storage.put(path, encode_ring(replace(ring, nodes=(wide, second, *others))))
    (found,) = strays(lake)
    assert "is bucket 1 and has" in found
    assert "Was it written with other bucket options?" in found
