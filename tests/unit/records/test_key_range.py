"""Key ranges: the order Java compares strings in."""

from __future__ import annotations

import random

import pyarrow as pa

from hoodie.records import KeyRange, key_range
from hoodie.records.key_range import java_order

ALPHABET = "aZ0é߿ࠀ퟿\ue000\uffee𐀀😀\U0010ffff"


def utf16(key: str) -> bytes:
    return key.encode("utf-16-be")


def random_keys(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return ["".join(chance.choice(ALPHABET) for _ in range(chance.randrange(1, 4))) for _ in range(count)]


def test_order_is_that_of_utf16_code_units() -> None:
    keys = random_keys(500, 1)
    assert sorted(keys, key=java_order) == sorted(keys, key=utf16)


def test_range_of_many_small_arrays_is_that_of_java() -> None:
    for seed in range(200):
        keys = random_keys(6, seed)
        expected = KeyRange(min(keys, key=utf16), max(keys, key=utf16))
        assert key_range(pa.array([None, *keys])) == expected
        assert key_range(pa.chunked_array([keys[:2], keys[2:]])) == expected
        assert key_range(pa.array(["\ue000", *keys, "😀"]).slice(1, len(keys))) == expected


def test_mask_agrees_with_contains() -> None:
    for seed in range(100):
        keys = random_keys(8, seed)
        span = key_range(pa.array(keys[:2]))
        assert span is not None
        assert span.mask(pa.array(keys)).to_pylist() == [span.contains(key) for key in keys]


def test_no_keys_have_no_range() -> None:
    assert key_range(pa.array([], pa.string())) is None
    assert key_range(pa.array([None], pa.string())) is None
    assert key_range(pa.chunked_array([], pa.string())) is None


def test_numbers_in_text_are_compared_as_text() -> None:
    assert key_range(pa.array(["k10", "k9", "k100"])) == KeyRange("k10", "k9")
