"""The worked examples of docs/format/bucket-index.md are true."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from hoodie.index import SimpleBuckets, first_ring
from hoodie.index.hash_ring import encode_ring, parse_ring

PAGE = (Path(__file__).parents[3] / "docs" / "format" / "bucket-index.md").read_text(encoding="utf-8")


def test_ring_of_the_page_is_the_first_of_its_partition():
    text = PAGE.split("```json\n")[1].split("\n```")[0]
    assert encode_ring(first_ring("p0", 2)).decode() == text
    assert parse_ring(text.encode(), "p0", "page") == first_ring("p0", 2)


def test_bucket_of_the_page_is_that_of_its_key():
    assert "the key `k1` hashes to 31 + 3366 = 3397; of 4 buckets it has bucket 1" in PAGE
    assert SimpleBuckets(4).numbers(pa.array(["k1"])).tolist() == [1]
    assert SimpleBuckets(1 << 30).numbers(pa.array(["k1"])).tolist() == [3397]
