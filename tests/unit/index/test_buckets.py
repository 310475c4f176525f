"""Buckets of keys, as Hudi's two bucket indexes put them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import Corrupt
from hoodie.index import (
    HashNode,
    HashRing,
    KeyParts,
    SimpleBuckets,
    encode_children,
    first_ring,
    load_ring,
    mark_committed,
    parse_children,
    store_ring,
)
from hoodie.index.buckets import bucket_of_file
from hoodie.index.hash_ring import CONSISTENT_DIR, LAST_HASH, encode_ring, parse_ring
from hoodie.index.hash_values import hash_values, value_groups
from hoodie.storage import MemoryStorage
from hoodie.testing.hand_table import new_name


def java_list_hash(values: list[str | None]) -> int:
    """`List.hashCode` of texts, the plain way."""
    found = 1
    for value in values:
        text = 0
        for unit in value or "":
            text = (31 * text + ord(unit)) & 0xFFFF_FFFF
        found = (31 * found + text) & 0xFFFF_FFFF
    return found


KEYS = ["k1", "", "a:1,b:2", "a:x,y,b:", "id:7", "some longer key with blanks", "a:__null__,b:2", "a:__empty__,b:"]
MORE_KEYS = [
    *KEYS,
    "a:2014-10-22 13:50:42,b:x",  # a colon in a value begins no name
    "a:x,b:y:z,c",
    "10:30,rest",
    "a:1,c:3,b:2",
    "b:1,a:2",
    "x,y:1",
    ",:",
    "a:x,b:y,b:z",
]


@pytest.mark.parametrize("count", [1, 4, 256])
def test_bucket_is_the_hash_of_the_values_in_the_key(count: int) -> None:
    expected = [(java_list_hash(hash_values(key)) & 0x7FFF_FFFF) % count for key in KEYS]
    assert SimpleBuckets(count).numbers(pa.array(KEYS)).tolist() == expected


@pytest.mark.parametrize(
    ("key", "fields", "values"),
    [
        ("k1", [], ["k1"]),
        ("id:7", ["id"], ["id:7"]),
        ("a,b", ["a"], ["a,b"]),
        ("a:1,b:2", [], ["1", "2"]),
        ("a:1,b:2", ["b"], ["2"]),
        ("a:x,y,b:2", ["a", "b"], ["x,y", "2"]),
        ("a:,b:2", [], ["", "2"]),
        ("a:2014-10-22 13:50:42,b:2", ["a"], ["2014-10-22 13:50:42"]),
        ("id:4,s:a:b,c", ["id", "s"], ["4", "a:b,c"]),
        ("a:__null__,b:__empty__", [], [None, ""]),
        ("10:30,rest", ["id"], ["10:30,rest"]),
        ("id:a,b", ["id"], ["a,b"]),
    ],
)
def test_values_are_taken_from_keys_of_several_fields(key: str, fields: list[str], values: list[str | None]) -> None:
    assert hash_values(key, fields) == values


@pytest.mark.parametrize(
    "parts",
    [KeyParts(), KeyParts(("a", "b"), ("a", "b")), KeyParts(("a", "b"), ("b",)), KeyParts(("id",), ("id",))],
    ids=str,
)
def test_values_of_a_column_are_those_of_its_keys(parts: KeyParts) -> None:
    found: dict[int, list[str | None]] = {}
    for group in value_groups(pa.array(MORE_KEYS), parts):
        for n, row in enumerate(group.rows.tolist()):
            assert row not in found
            found[row] = [column[n].as_py() for column in group.columns]
    assert found == {n: hash_values(key, parts.hash_fields) for n, key in enumerate(MORE_KEYS)}


def test_file_ids_name_their_bucket() -> None:
    assert bucket_of_file("00000003-0daf-438b-9a72-0f7a6e5b1f10-0") == 3
    assert bucket_of_file("5bce1003-0daf-438b-9a72-0f7a6e5b1f10-0") is None
    buckets = SimpleBuckets(4)
    made = buckets.new_file_id(3, "5bce1003-0daf-438b-9a72-0f7a6e5b1f10")
    assert made == "00000003-0daf-438b-9a72-0f7a6e5b1f10-0"
    assert buckets.number_of(made) == 3
    assert SimpleBuckets(3).number_of(made) is None
    assert SimpleBuckets(4, fixed_ids=True).new_file_id(2, "x") == "00000002-0000-0000-0000-000000000000-0"


# What Hudi 1.2.0 wrote for a partition p0 with four buckets.
HUDI_RING = """{
  "version" : 0,
  "partitionPath" : "p0",
  "instant" : "00000000000000",
  "numBuckets" : 4,
  "seqNo" : 0,
  "nodes" : [ {
    "value" : 536870912,
    "fileIdPrefix" : "a1ba364b-fbde-3906-b865-53e4c35f3556",
    "tag" : "NORMAL"
  }, {
    "value" : 1073741824,
    "fileIdPrefix" : "29428436-b4af-3680-bc5a-5ac61c04d8f0",
    "tag" : "NORMAL"
  }, {
    "value" : 1610612736,
    "fileIdPrefix" : "28f89699-1b7e-3130-a371-646372cdf972",
    "tag" : "NORMAL"
  }, {
    "value" : 2147483647,
    "fileIdPrefix" : "ddd512a0-10e2-31e7-b326-8550d5f6acf3",
    "tag" : "NORMAL"
  } ]
}"""


def test_first_ring_is_the_one_hudi_makes_byte_for_byte() -> None:
    ring = first_ring("p0", 4)
    assert encode_ring(ring).decode() == HUDI_RING
    assert parse_ring(HUDI_RING.encode(), "p0", "x") == ring


@pytest.mark.parametrize("count", [1, 2, 3, 7, 256])
def test_first_ring_covers_all_hashes(count: int) -> None:
    ring = first_ring("", count)
    assert ring.nodes[-1].value == LAST_HASH
    numbers = ring.numbers(pa.array([f"k{n}" for n in range(2000)]))
    assert set(numbers.tolist()) == set(range(count))
    assert [ring.number_of(ring.file_id(n)) for n in range(count)] == list(range(count))
    assert ring.number_of("other-0") is None


def test_children_split_and_merge_ranges() -> None:
    ring = first_ring("p0", 2)
    split = ring.with_children([HashNode(2**29, "left", "REPLACE"), HashNode(2**30, "right", "REPLACE")], "2")
    assert [(node.value, node.prefix, node.tag) for node in split.nodes] == [
        (2**29, "left", "NORMAL"),
        (2**30, "right", "NORMAL"),
        (LAST_HASH, ring.nodes[1].prefix, "NORMAL"),
    ]
    assert (split.sequence, split.instant, split.first_count) == (1, "2", 2)
    merged = split.with_children([HashNode(2**29, None, "DELETE"), HashNode(2**30, "all", "REPLACE")], "3")
    assert [node.prefix for node in merged.nodes] == ["all", ring.nodes[1].prefix]
    keys = pa.array([f"k{n}" for n in range(500)])
    before, after = ring.numbers(keys), merged.numbers(keys)
    assert np.array_equal(before, after)


def test_child_nodes_travel_in_plans() -> None:
    nodes = (HashNode(5, None, "DELETE"), HashNode(9, "x", "REPLACE"))
    assert parse_children(encode_children(nodes), "plan") == nodes
    for damaged in ("", "{}", "[1]", '[{"value": 1}]', '[{"value": 1, "fileIdPrefix": "x", "tag": "ODD"}]'):
        with pytest.raises(Corrupt, match="plan has damaged"):
            parse_children(damaged, "plan")


def stored(files: dict[str, bytes]) -> MemoryStorage:
    storage = MemoryStorage(new_name())
    for name, data in files.items():
        storage.put(f"{CONSISTENT_DIR}/p0/{name}", data)
    return storage


def loaded(files: dict[str, bytes], completed: set[str] = frozenset()) -> HashRing | None:  # type: ignore[assignment]
    return load_ring(stored(files), "p0", completed)


def prefixes(ring: HashRing | None) -> list[str | None]:
    assert ring is not None
    return [node.prefix for node in ring.nodes]


def hashing(*nodes: tuple[int, str]) -> bytes:
    return json.dumps({"nodes": [{"value": value, "fileIdPrefix": prefix} for value, prefix in nodes]}).encode()


def test_every_key_has_a_range_and_hashes_above_the_last_go_to_the_first() -> None:
    ring = loaded({"00000000000000.hashing_meta": hashing((2**30, "x"), (2**31 - 1, "y"))})
    assert ring is not None
    keys = pa.array([f"k{n}" for n in range(200)])
    assert set(ring.numbers(keys).tolist()) == {0, 1}
    short = loaded({"00000000000000.hashing_meta": hashing((0, "x"), (1, "y"))})
    assert short is not None
    assert set(short.numbers(keys).tolist()) == {0}


def test_resize_counts_once_it_is_committed() -> None:
    files = {"00000000000000.hashing_meta": hashing((5, "old")), "20260102000000000.hashing_meta": hashing((5, "new"))}
    assert prefixes(loaded(files)) == ["old"]
    assert prefixes(loaded({**files, "20260102000000000.commit": b""})) == ["new"]
    assert prefixes(loaded(files, completed={"20260102000000000"})) == ["new"]
    assert prefixes(load_ring(stored(files), "p0", live={"new-0"})) == ["new"]
    assert loaded({}) is None


def test_stored_ring_is_loaded_again() -> None:
    storage = stored({})
    ring = first_ring("p0", 3)
    store_ring(storage, ring)
    store_ring(storage, first_ring("p0", 9))  # somebody was quicker: theirs stays
    assert load_ring(storage, "p0") == ring
    later = ring.with_children([HashNode(ring.nodes[0].value, "new", "REPLACE")], "20260102000000000")
    store_ring(storage, later)
    store_ring(storage, later)
    assert load_ring(storage, "p0") == ring
    mark_committed(storage, "p0", later.instant)
    mark_committed(storage, "p0", later.instant)
    assert load_ring(storage, "p0") == later


def test_rings_of_tables_without_partitions_lie_in_the_folder_itself() -> None:
    storage = stored({})
    store_ring(storage, first_ring("", 2))
    assert load_ring(storage, "") == first_ring("", 2)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"nodes": []}', b'{"nodes": [{"value": "x"}]}'])
def test_damaged_ranges_are_named(data: bytes) -> None:
    with pytest.raises(Corrupt, match="hashing_meta"):
        loaded({"00000000000000.hashing_meta": data})
