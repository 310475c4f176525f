"""The worked examples of docs/format/bucket-index.md are true."""

from __future__ import annotations

import json

import pyarrow as pa
from format_pages import block, page, rows

from hoodie.index import SimpleBuckets, encode_children, first_ring, parse_children
from hoodie.index.hash_ring import encode_ring, parse_ring
from hoodie.services.resizing.plan import our_resizes, pending_resizes, resize_groups
from hoodie.spec import (
    CLUSTERING,
    V9,
    Instant,
    State,
    encode_container,
    encode_requested_replace,
    parse_requested_replace,
)
from hoodie.state.handle import timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.testing.hand_table import HandTable

PAGE = page("bucket-index")
RESIZED = "20261121054826483"


def test_ring_of_the_page_is_the_first_of_its_partition() -> None:
    text = block(PAGE, "Here it is for partition `p0` and 2 buckets").rstrip("\n")
    assert encode_ring(first_ring("p0", 2)).decode() == text
    assert parse_ring(text.encode(), "p0", "page") == first_ring("p0", 2)


def test_bucket_of_the_page_is_that_of_its_key() -> None:
    assert "the key `k1` hashes to 31 + 3366 = 3397; of 4 buckets it has bucket 1" in PAGE
    assert SimpleBuckets(4).numbers(pa.array(["k1"])).tolist() == [1]
    assert SimpleBuckets(1 << 30).numbers(pa.array(["k1"])).tolist() == [3397]


def test_plan_of_a_resize_is_read_and_written() -> None:
    shown = json.loads(block(PAGE, "### Worked example: a merge"))
    data = encode_container("HoodieRequestedReplaceMetadata", shown)
    request = parse_requested_replace(data, "page")
    assert encode_requested_replace(request) == data
    table = HandTable(V9)
    table.instant(RESIZED, CLUSTERING, state=State.REQUESTED, content={State.REQUESTED: data})
    instant = Instant(RESIZED, CLUSTERING, State.REQUESTED)
    plans = PendingPlans(table.storage, timeline_of(table.handle))
    assert pending_resizes(plans) == [instant]
    assert our_resizes(plans) == []
    merge, other = resize_groups(plans, instant)
    assert (merge.partition, merge.sequence, len(merge.file_ids), len(other.file_ids)) == ("p1", 0, 3, 1)
    named = {file_id for _, file_id in request.group_ids}
    assert named == {first_ring("p1", 4).file_id(number) for number in range(4)}
    for group, raw in zip((merge, other), shown["clusteringPlan"]["inputGroups"], strict=True):
        text = raw["extraMetadata"]["clustering.group.child.node"]
        assert parse_children(text, "page") == group.children
        assert encode_children(group.children) == text


def test_ring_after_the_resize_is_the_one_shown() -> None:
    shown = json.loads(block(PAGE, "### Worked example: a merge"))
    groups = [one["extraMetadata"] for one in shown["clusteringPlan"]["inputGroups"]]
    children = [node for one in groups for node in parse_children(one["clustering.group.child.node"], "page")]
    before = first_ring("p1", 4)
    after = before.with_children(children, RESIZED)
    assert encode_ring(after).decode() == block(PAGE, f"`{RESIZED}.hashing_meta`:").rstrip("\n")
    told = [(int(node), was.strip("`"), tag, now.strip("`")) for node, was, tag, now in resized_nodes()]
    tags = {node.value: node.tag for node in children}
    new = {node.value: node.prefix for node in after.nodes}
    assert told == [(node.value, node.prefix, tags[node.value], new.get(node.value, "")) for node in before.nodes]


def resized_nodes() -> list[list[str]]:
    """Cells of the table of nodes; what is gone has no prefix after."""
    return [[*cells, ""][:4] for cells in rows(PAGE, "### Worked example: a merge")]
