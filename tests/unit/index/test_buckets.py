"""Buckets of keys, as Hudi's two bucket indexes put them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hoodie.errors import Corrupt
from hoodie.index.buckets import CONSISTENT_DIR, bucket_of_file, hash_values, load_hash_ranges, simple_buckets
from hoodie.storage import MemoryStorage
from hoodie.testing.hand_table import new_name


def java_list_hash(values: list[str]) -> int:
    """`List.hashCode` of texts, the plain way."""
    found = 1
    for value in values:
        text = 0
        for unit in value:
            text = (31 * text + ord(unit)) & 0xFFFF_FFFF
        found = (31 * found + text) & 0xFFFF_FFFF
    return found


@pytest.mark.parametrize("count", [1, 4, 256])
def test_bucket_is_the_hash_of_the_values_in_the_key(count: int) -> None:
    keys = ["k1", "", "a:1,b:2", "a:x,y,b:", "id:7", "some longer key with blanks"]
    expected = [(java_list_hash(hash_values(key)) & 0x7FFF_FFFF) % count for key in keys]
    assert simple_buckets(pa.array(keys), count).tolist() == expected


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("k1", ["k1"]),
        ("id:7", ["id:7"]),
        ("a,b", ["a,b"]),
        ("a:1,b:2", ["1", "2"]),
        ("a:x,y,b:2", ["x,y", "2"]),
        ("a:,b:2", ["", "2"]),
    ],
)
def test_values_are_taken_from_keys_of_several_fields(key: str, values: list[str]) -> None:
    assert hash_values(key) == values


def test_file_ids_name_their_bucket() -> None:
    assert bucket_of_file("00000003-0daf-438b-9a72-0f7a6e5b1f10-0") == 3
    assert bucket_of_file("5bce1003-0daf-438b-9a72-0f7a6e5b1f10-0") is None


def stored(files: dict[str, bytes]) -> MemoryStorage:
    storage = MemoryStorage(new_name())
    for name, data in files.items():
        storage.put(f"{CONSISTENT_DIR}/p0/{name}", data)
    return storage


def hashing(*nodes: tuple[int, str]) -> bytes:
    return json.dumps({"nodes": [{"value": value, "fileIdPrefix": prefix} for value, prefix in nodes]}).encode()


def test_every_key_has_a_range_and_hashes_above_the_last_go_to_the_first() -> None:
    ranges = load_hash_ranges(stored({"00000000000000.hashing_meta": hashing((2**30, "x"), (2**31 - 1, "y"))}), "p0")
    assert ranges is not None
    keys = pa.array([f"k{n}" for n in range(200)])
    assert ranges.prefixes_of(keys) == {"x", "y"}
    short = load_hash_ranges(stored({"00000000000000.hashing_meta": hashing((0, "x"), (1, "y"))}), "p0")
    assert short is not None
    assert short.prefixes_of(keys) == {"x"}


def test_resize_counts_once_it_is_committed() -> None:
    files = {"00000000000000.hashing_meta": hashing((5, "old")), "20260102000000000.hashing_meta": hashing((5, "new"))}
    assert load_hash_ranges(stored(files), "p0") is None  # not settled: nothing is ruled out
    ranges = load_hash_ranges(stored({**files, "20260102000000000.commit": b""}), "p0")
    assert ranges is not None
    assert ranges.prefixes == ("new",)
    assert load_hash_ranges(stored({}), "p0") is None


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"nodes": []}', b'{"nodes": [{"value": "x"}]}'])
def test_damaged_ranges_are_named(data: bytes) -> None:
    with pytest.raises(Corrupt, match="hashing_meta"):
        load_hash_ranges(stored({"00000000000000.hashing_meta": data}), "p0")
