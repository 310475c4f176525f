"""Clustering plans: those that Hudi wrote are understood and written again byte for byte, in both Avro generations."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from hoodie.errors import Corrupt, Unsupported
from hoodie.spec import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    ClusteringStrategy,
    Curve,
    RequestedReplace,
    SortOrder,
    encode_container,
    encode_requested_replace,
    parse_container,
    parse_requested_replace,
    parse_sort_order,
)
from hoodie.spec.avro_schemas import AvroGeneration

TABLES = Path(__file__).parents[2] / "golden" / "tables"
METRICS = {"TOTAL_IO_MB", "TOTAL_IO_READ_MB", "TOTAL_IO_WRITE_MB", "TOTAL_LOG_FILES", "TOTAL_LOG_FILES_SIZE"}


def golden_requests(name: str) -> list[bytes]:
    with tarfile.open(TABLES / name / "table.tar.gz") as tar:
        files = [one for one in tar if one.name.endswith((".replacecommit.requested", ".clustering.requested"))]
        found = [tar.extractfile(one) for one in files if "/metadata/" not in one.name]
        return [file.read() for file in found if file is not None]


def body(data: bytes) -> bytes:
    """A container's record: Hudi chooses its sync marker by chance."""
    return data[data.index(data[-16:]) + 16 : -16]


@pytest.mark.parametrize(
    ("name", "generation"),
    [
        ("0.15.0/cow_clustering_pending", "0.15"),
        ("0.15.0/cow_clustering_sort", "0.15"),
        ("0.15.0/mor_clustering", "0.15"),
        ("1.2.0/cow_clustering_pending", "1.x"),
        ("1.2.0/cow_clustering_sort", "1.x"),
    ],
)
def test_hudis_plans_are_read_and_written(name: str, generation: AvroGeneration) -> None:
    requests = golden_requests(name)
    assert requests
    for data in requests:
        request = parse_requested_replace(data, "x")
        plan = request.clustering_plan
        assert plan is not None
        assert (request.operation_type, plan.preserve_metadata) == ("CLUSTER", True)
        assert body(encode_requested_replace(request, generation)) == body(data)
        assert set(request.group_ids) == set(plan.group_ids)
        for group in plan.groups:
            assert group.metrics is not None
            assert set(group.metrics) == METRICS
            assert group.outputs == 1
        for part in plan.slices:
            assert part.base_path == "/".join(filter(None, (part.partition, part.base_path.rpartition("/")[2])))  # type: ignore[union-attr]
            assert part.data_file is not None
            assert part.data_file.endswith(f"/{part.base_path}")
            assert all(path.startswith(f"{part.partition}/.{part.file_id}") for path in part.log_paths)


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_sort_columns_of_a_plan_are_an_order(release: str) -> None:
    for data in golden_requests(f"{release}/cow_clustering_sort"):
        plan = parse_requested_replace(data, "x").clustering_plan
        assert plan is not None
        assert plan.strategy is not None
        assert plan.strategy.sort_order == SortOrder(("qty", "name"))


def test_plan_without_order_has_none() -> None:
    assert ClusteringStrategy("any.Class").sort_order is None
    assert ClusteringStrategy().sort_order is None
    assert ClusteringStrategy(params=None).sort_order is None


@pytest.mark.parametrize("curve", list(Curve))
def test_order_goes_through_a_plan(curve: Curve) -> None:
    order = SortOrder(("city", "day"), curve)
    plan = ClusteringPlan((), ClusteringStrategy("any.Class", order.params()))
    data = encode_requested_replace(RequestedReplace("CLUSTER", plan, {}, 1))
    found = parse_requested_replace(data, "x").clustering_plan
    assert found == plan
    assert found is not None
    assert found.strategy is not None
    assert found.strategy.sort_order == order


def test_curve_nobody_knows_is_refused() -> None:
    params = {**SortOrder(("a",)).params(), "hoodie.layout.optimize.strategy": "peano"}
    with pytest.raises(Unsupported, match="peano"):
        parse_sort_order(params)


@pytest.mark.parametrize("generation", ["0.15", "1.x"])
def test_log_only_slices_and_what_is_absent_go_through(generation: AvroGeneration) -> None:
    slices = (
        ClusteringSlice("", "f-0", "", ("file:/t/.f-0_1.log.1_0-1-0",)),
        ClusteringSlice("p/q", "g-0", "s3://b/t/p/q/g-0_0-1-0_1.parquet", ()),
        ClusteringSlice("p/q", "h-0"),
    )
    missing = None if generation == "0.15" else ("p",)
    plan = ClusteringPlan((ClusteringGroup(slices, 2),), None, None, None, missing)
    request = RequestedReplace("CLUSTER", plan)
    assert parse_requested_replace(encode_requested_replace(request, generation), "x") == request
    assert [part.base_path for part in plan.slices] == [None, "p/q/g-0_0-1-0_1.parquet", None]
    assert plan.slices[0].log_paths == (".f-0_1.log.1_0-1-0",)
    assert request.group_ids == (("", "f-0"), ("p/q", "g-0"), ("p/q", "h-0"))


@pytest.mark.parametrize(
    "part",
    [
        {"fileId": "f", "partitionPath": "../other"},
        {"fileId": "f", "partitionPath": "p", "dataFilePath": "/t/p/.."},
        {"fileId": "f", "partitionPath": "p", "deltaFilePaths": ["/t/p/"]},
        {"fileId": None, "partitionPath": "p"},
    ],
)
def test_plan_that_names_no_file_of_the_table_is_damaged(part: dict[str, object]) -> None:
    record = {"operationType": "CLUSTER", "clusteringPlan": {"inputGroups": [{"slices": [part]}]}}
    data = encode_container("HoodieRequestedReplaceMetadata", record)
    assert parse_container(data, "x")
    with pytest.raises(Corrupt):
        parse_requested_replace(data, "x")
