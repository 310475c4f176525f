"""Base-file compaction: small base files become large ones, rows stay as they are, on a clustering's instants."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import Conflict, Invalid, Unsupported
from hoodie.spec import parse_requested_replace
from hoodie.testing.bounds import leaf_bounds, write_without_statistics
from hoodie.testing.index_records import ensure_true
from hoodie.testing.lake import ROWS, Lake, row, table_of
from hoodie.timeline import load_requested

LIMIT = "hoodie.base.file.compaction.small.file.limit"
TARGET = "hoodie.base.file.compaction.target.file.max.bytes"
PLAN = "hoodie.base.file.compaction.plan"
SEEN = ("_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_partition_path", "v", "ts")
COPIED = {"hoodie.row.group.copy.min.bytes": "0", "hoodie.clean.automatic": "false"}


def appended(version: int, **options: str) -> Lake:
    """Four files in one partition, two in another."""
    lake = Lake(version, {**COPIED, **{name.replace("__", "."): value for name, value in options.items()}})
    lake.upsert(row("a0"), row("b0", part="q"))
    for n in range(1, 4):
        lake.table.append(table_of([row(f"a{n}"), *([row("b1", part="q")] if n == 1 else [])]))
    return lake


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_small_files_of_all_partitions_are_joined_in_the_order_of_their_commits(version: int, kind: str) -> None:
    lake = appended(
        version, hoodie__datasource__write__table__type=kind, hoodie__metadata__record__index__enable="true"
    )
    before, history = lake.rows(SEEN), lake.rows(SEEN, query="incremental", begin="0")
    done = lake.table.services.compact_base_files()
    assert (done.groups, done.slices, done.files, done.rows) == (2, 6, 2, 6)
    assert (done.copied, done.decoded) == (2, ())
    assert lake.rows(SEEN) == before
    assert lake.rows(SEEN, query="incremental", begin="0") == history
    assert lake.rows(SEEN, query="incremental", begin=done.instant) == []
    (path,) = (path for path in lake.base_files() if done.instant in path and path.startswith("p/"))
    assert pq.read_table(lake.storage.open_input(path)).column("id").to_pylist() == ["a0", "a1", "a2", "a3"]
    lake.upsert(row("a1", "new", 2), row("c"))
    assert lake.values()["a1"] == "new"
    lake.ensure_sound()
    assert lake.table.services.compact_base_files() is None


def test_the_plan_is_a_clustering_that_carries_rfc_19s(version: int) -> None:
    lake = appended(version)
    planned = lake.table.services.schedule_base_file_compaction()
    assert planned is not None
    assert planned.action == ("replacecommit" if version == 6 else "clustering")
    request = parse_requested_replace(load_requested(lake.storage, lake.handle().profile, planned), "plan")
    assert request.operation_type == "CLUSTER"
    plan = request.clustering_plan
    assert plan is not None
    assert plan.strategy is not None
    assert plan.strategy.params == {}
    assert [(len(group.slices), group.outputs) for group in plan.groups] == [(4, 1), (2, 1)]
    said = json.loads((plan.extra_metadata or {})[PLAN])
    assert set(said) == {"operations", "extraMetadata", "version"}
    assert said["version"] == 1
    for operation, group in zip(said["operations"], plan.groups, strict=True):
        assert operation["partitionPath"] == group.slices[0].partition
        assert operation["baseFilePaths"] == [one.base_path for one in group.slices]
        assert operation["metrics"] == group.metrics
    done = lake.table.services.compact_base_files(planned.requested)
    assert done.instant == planned.requested
    assert json.loads(lake.commits()[-1].extra_metadata[PLAN]) == said


def test_whoever_carries_out_clusterings_carries_it_out() -> None:
    lake = appended(9)
    planned = lake.table.services.schedule_base_file_compaction()
    with pytest.raises(Conflict, match=planned.requested):
        lake.upsert(row("a1", "new", 2))
    assert lake.table.services.cluster(op="execute").instant == planned.requested
    assert lake.table.timeline().pending() == ()


def test_a_plan_of_a_sorting_clustering_is_none_of_its_own() -> None:
    lake = appended(9)
    plan = lake.table.services.cluster(op="schedule", **{"hoodie.clustering.plan.strategy.sort.columns": "v"})
    with pytest.raises(Invalid, match="no pending base-file compaction"):
        lake.table.services.compact_base_files(plan.instant)
    assert lake.table.services.compact_base_files() is None


def test_files_are_packed_up_to_their_size_and_large_ones_and_those_with_logs_are_left() -> None:
    lake = appended(9, hoodie__datasource__write__table__type="MERGE_ON_READ", hoodie__compact__inline="false")
    sizes = sorted(one.base.size_bytes for one in lake.table.files() if one.partition == "p")
    done = lake.table.services.preview("compact_base_files", **{TARGET: str(sizes[-1] * 2 + 1)})
    assert [len(step.paths) for step in done.steps] == [2, 2, 2]
    assert all("row groups copied" in step.reason for step in done.steps)
    least = min(one.base.size_bytes for one in lake.table.files())
    assert lake.table.services.preview("compact_base_files", **{LIMIT: str(least)}).steps == ()
    lake.upsert(row("a0", "new", 2))
    done = lake.table.services.compact_base_files()
    assert done.slices == 5
    assert lake.values()["a0"] == "new"


def test_inline_it_follows_every_fourth_write() -> None:
    lake = Lake(9, {**COPIED, "hoodie.base.file.compaction.inline": "true"})
    lake.upsert(row("k0"))
    for n in range(1, 8):
        lake.table.append(table_of([row(f"k{n}")]))
    assert [one.operation_type for one in lake.commits()].count("CLUSTER") == 2
    assert len(lake.live()) == 1
    assert len(lake.values()) == 8


def test_buckets_are_left_alone() -> None:
    lake = Lake(9, {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"})
    lake.upsert(row("a"))
    with pytest.raises(Unsupported, match="buckets of their keys"):
        lake.table.services.compact_base_files()


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("by", [None, "v"])
def test_files_of_tables_that_make_their_keys_themselves_are_joined(version: int, inline: bool, by: str | None) -> None:
    """Sorted by a column where `by` names one: then it is a clustering."""
    kind = "base.file.compaction" if by is None else "clustering"
    given = {"hoodie.clustering.inline.max.commits": "4", "hoodie.clustering.plan.strategy.sort.columns": by}
    options = {f"hoodie.{kind}.inline": "true", "hoodie.row.group.copy.min.bytes": "0"} | (given if by else {})
    lake = Lake(version, {"hoodie.datasource.write.recordkey.field": None, **(options if inline else {})})
    for n in range(4):
        lake.write("insert", [row(f"k{n}", str(9 - n))], {"hoodie.parquet.small.file.limit": "0"})
    if not inline:
        services = lake.table.services
        done = services.cluster(**options) if by else services.compact_base_files(**options)
        assert (done.slices, done.files, done.copied) == (4, 1, 0 if by else 1)
    assert len(lake.live()) == 1
    assert sorted(lake.rows(("id", "v"))) == [(f"k{n}", str(9 - n)) for n in range(4)]
    assert len(set(lake.rows(("_hoodie_record_key",)))) == 4
    assert not lake.table.validate(deep=True)


@pytest.mark.parametrize("service", ["compact_base_files", "cluster"])
@pytest.mark.parametrize("value", [100.0, math.nan], ids=["number", "NaN"])
def test_floats_of_joined_files_have_bounds_in_all_row_groups_or_in_none(
    version: int, value: float, service: str
) -> None:
    options = {**COPIED, "hoodie.parquet.small.file.limit": "0", "hoodie.metadata.index.column.stats.enable": "true"}
    lake = Lake(version, options, schema=pa.schema([*ROWS, ("x", pa.float64())]))
    for name, values in {"a": [0.0, 0.5], "b": [value, 60.0], "c": [-3.0]}.items():
        lake.write("insert", [row(f"{name}{n}", x=x) for n, x in enumerate(values)])
    done = getattr(lake.table.services, service)()
    assert (done.slices, done.files, done.copied) == (3, 1, 1)
    (path,) = (path for path in lake.base_files() if done.instant in path)
    found = leaf_bounds(pq.ParquetFile(lake.storage.open_input(path)))
    bounds = [None] * 3 if math.isnan(value) else [(-0.0, 0.5), (60.0, 100.0), (-3.0, -3.0)]
    assert sorted(found["x"], key=str) == sorted(bounds, key=str)
    assert lake.rows(("id",), filter="x > 50") == [("b0",), ("b1",)]
    assert lake.rows(("id",), filter="x < 0") == [("c0",)]
    assert lake.rows(("id",), filter="x > 1000") == ([("b0",)] if math.isnan(value) else [])
    ensure_true(lake)
    lake.ensure_sound()


@pytest.mark.parametrize("service", ["compact_base_files", "cluster"])
def test_files_without_statistics_are_decoded(version: int, service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hudi takes their row groups for ones of zeros and of NULL, beside those of others."""
    lake = Lake(
        version, {**COPIED, "hoodie.parquet.small.file.limit": "0"}, schema=pa.schema([*ROWS, ("x", pa.int64())])
    )
    lake.write("insert", [row(f"a{n}", x=n) for n in range(3)])
    with monkeypatch.context() as patched:
        write_without_statistics(patched)
        lake.write("insert", [row(f"b{n}", x=900 + n) for n in range(3)])
    before = lake.rows(SEEN)
    done = getattr(lake.table.services, service)()
    assert (done.files, done.copied) == (1, 0)
    assert "does not say how many values of column" in str(done.decoded)
    (path,) = (path for path in lake.base_files() if done.instant in path)
    assert set(leaf_bounds(pq.ParquetFile(lake.storage.open_input(path)))["x"]) == {(0, 902)}
    assert lake.rows(SEEN) == before
    assert lake.rows(("id",), filter="x > 900") == [("b1",), ("b2",)]
    lake.ensure_sound()


@pytest.mark.parametrize("service", ["compact_base_files", "cluster"])
def test_files_with_long_texts_are_copied_and_found_by_them(version: int, service: str) -> None:
    options = {**COPIED, "hoodie.parquet.small.file.limit": "0", "hoodie.metadata.index.column.stats.enable": "true"}
    lake = Lake(version, options)
    for name, value in {"a": "b" * 5000, "b": "c", "c": "d" * 5000}.items():
        lake.write("insert", [row(f"{name}{n}", value + str(n)) for n in range(2)])
    done = getattr(lake.table.services, service)()
    assert (done.slices, done.files, done.copied) == (3, 1, 1)
    (path,) = (path for path in lake.base_files() if done.instant in path)
    found = leaf_bounds(pq.ParquetFile(lake.storage.open_input(path)))
    cut = ("b" * 256, "b" * 255 + "c"), ("c0", "c1"), ("d" * 256, "d" * 255 + "e")
    assert sorted(found["v"]) == sorted(cut)
    assert lake.rows(("id",), filter=f"v = '{'d' * 5000}1'") == [("c1",)]
    assert lake.rows(("id",), filter="v like 'dd%0'") == [("c0",)]
    assert lake.rows(("id",), filter="v < 'bc'") == [("a0",), ("a1",)]
    assert lake.rows(("id",), filter="v > 'dd'") == [("c0",), ("c1",)]
    ensure_true(lake)
    lake.ensure_sound()
