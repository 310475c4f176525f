"""Bloom filters: the same bytes as Hudi's own, and answers that are never wrongly false."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.records import BloomFilter, BloomOptions, read_columns, read_footer
from hoodie.storage import MemoryStorage

GOLDEN = Path(__file__).parents[2] / "golden" / "records"
JAVA = json.loads((GOLDEN / "bloom_java.json").read_text())
FILTERS = JAVA["filters"]


def options_of(case: dict[str, Any]) -> BloomOptions:
    return BloomOptions(case["type"], case["entries"], case["fpp"], case["max"])


def keys_of(case: dict[str, Any]) -> pa.StringArray:
    return pa.array(JAVA["keys"][case["kind"]][: case["count"]], pa.string())


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("case", FILTERS, ids=lambda case: f"{case['kind']}-{case['type']}-{case['count']}")
def test_filter_built_at_once_has_the_bytes_of_hudi(case: dict[str, Any]) -> None:
    bloom = options_of(case).new_filter()
    bloom.add(keys_of(case))
    assert sha(bloom.to_text()) == case["sha"]
    assert bloom.contains(keys_of(case)).all()


@pytest.mark.parametrize("case", FILTERS, ids=lambda case: f"{case['kind']}-{case['type']}-{case['count']}")
def test_filter_stored_and_continued_many_times_has_the_bytes_of_hudi(case: dict[str, Any]) -> None:
    bloom, keys, chance = options_of(case).new_filter(), keys_of(case), random.Random(1)
    at = 0
    while at < len(keys):
        step = chance.randrange(1, 40)
        bloom.add(keys.slice(at, step))
        bloom = BloomFilter.from_text(bloom.to_text(), bloom.type_code, case["max"])
        at += step
    assert sha(bloom.to_text()) == case["sha"]


def test_golden_footer_filter_is_rebuilt_from_the_keys_of_its_file() -> None:
    storage = MemoryStorage("bloom-golden")
    storage.put("f.parquet", (GOLDEN / "simple_filter_1.2.0.parquet").read_bytes())
    footer = read_footer(storage, "f.parquet")
    bloom = BloomOptions("SIMPLE", entries=500).new_filter()
    bloom.add(read_columns(storage, "f.parquet", ["_hoodie_record_key"])[0])
    assert footer.bloom_type is None
    assert bloom.to_text() == footer.bloom_text


def test_keys_of_every_length_give_the_same_hash_alone_and_in_company() -> None:
    keys = [("ä" if length % 3 else "a") + "x" * length for length in range(70)]
    together = BloomFilter.simple(100)
    together.add(pa.array(random.Random(2).sample(keys, len(keys))))
    alone = BloomFilter.simple(100)
    for key in keys:
        alone.add(pa.array([key]))
    assert together.to_text() == alone.to_text()


@pytest.mark.parametrize("spread", [3, 16, 17])
def test_few_keys_of_like_lengths_give_the_same_hashes_alone_and_in_company(spread: int) -> None:
    chance = random.Random(spread)
    for shortest in range(9):
        lengths = [shortest, shortest + spread, *(shortest + chance.randrange(spread) for _ in range(20))]
        keys = ["".join(chance.choice("a0:,") for _ in range(length - 2)) + "ä" * (length > 1) for length in lengths]
        together = BloomFilter.simple(100)
        together.add(pa.array(["before", *keys, "after"]).slice(1, len(keys)))
        alone = BloomFilter.simple(100)
        for key in keys:
            alone.add(pa.array([key]))
        assert together.to_text() == alone.to_text()


def test_adding_keys_leaves_the_arrow_buffers_alone() -> None:
    for keys in (pa.array(["abcdefgh"]), pa.array(["abcd", "efgh"]), pa.array(["a", "bcd", "efghi"])):
        before = keys.to_pylist()
        BloomFilter.simple(10).add(keys)
        assert keys.to_pylist() == before


def test_slices_chunks_large_strings_and_nulls_are_taken() -> None:
    plain = BloomFilter.dynamic(10, 1e-3, 20)
    plain.add(pa.array([f"k{at}" for at in range(30)]))
    keys = pa.array(["no", *(f"k{at}" for at in range(10)), None, *(f"k{at}" for at in range(10, 30)), "neither"])
    odd = BloomFilter.dynamic(10, 1e-3, 20)
    odd.add(pa.chunked_array([keys.slice(1, 5), keys.slice(6, 26)]).cast(pa.large_string()))
    assert odd.to_text() == plain.to_text()
    assert odd.contains(pa.array(["k3", None, "k29"])).tolist() == [True, False, True]


def test_answers_about_strangers_are_false_at_about_the_wanted_rate() -> None:
    bloom = BloomFilter.simple(20_000, 1e-2)
    bloom.add(pa.array([f"known-{at}" for at in range(20_000)]))
    strangers = bloom.contains(pa.array([f"other-{at}" for at in range(50_000)]))
    assert 0.003 < strangers.mean() < 0.03


def test_default_sizes_are_those_of_hudi() -> None:
    bloom = BloomFilter.dynamic()
    assert (bloom.vector_size, bloom.hashes, len(bloom.to_text())) == (2_587_966, 30, 431_380)
    assert len(BloomFilter.simple().to_text()) == 431_348


def test_empty_filter_contains_nothing_and_survives_storing() -> None:
    bloom = BloomFilter.dynamic(50)
    again = BloomFilter.from_text(bloom.to_text(), "DYNAMIC_V0")
    assert not again.contains(pa.array(["", "a"])).any()
    assert again.contains(pa.array([], pa.string())).tolist() == []


def test_same_sizes_are_recognised_from_the_text_alone() -> None:
    text = BloomFilter.dynamic(500).to_text()
    assert BloomOptions(entries=500).is_made_like(text, 10)
    assert not BloomOptions(entries=501).is_made_like(text, 10)
    assert not BloomOptions(entries=500, fpp=1e-3).is_made_like(text, 10)
    assert not BloomOptions(entries=500).is_made_like("", 10)


def test_a_filter_fitted_to_few_keys_is_small_and_continued_until_they_are_many_more() -> None:
    fitted = BloomOptions(fitted=True)
    counts = (0, 1, 256, 257, 1000, 32_768, 32_769, 10**6)
    assert [fitted.new_filter(keys).entries for keys in counts] == [256, 256, 256, 512, 1024, 32_768, 60_000, 60_000]
    assert fitted.new_filter().vector_size == fitted.new_filter(60_000).vector_size == 2_587_966
    text = fitted.new_filter(256).to_text()
    assert len(text) < 2_000
    assert fitted.is_made_like(text, 1024)
    assert not fitted.is_made_like(text, 1025)
    assert not BloomOptions().is_made_like(text, 10)
    assert not fitted.is_made_like(BloomFilter.dynamic(300).to_text(), 10)
    assert BloomOptions("SIMPLE", fitted=True).new_filter(10).vector_size == 2_587_966


def test_damaged_text_is_corrupt_and_never_an_empty_filter() -> None:
    text = BloomFilter.dynamic(50).to_text()
    data = base64.b64decode(text)
    for bad in ("", "****", text[:-8], base64.b64encode(data + b"x").decode(), base64.b64encode(data[:20]).decode()):
        with pytest.raises(Corrupt):
            BloomFilter.from_text(bad, "DYNAMIC_V0")


def test_unknown_filters_are_unsupported() -> None:
    text = BloomFilter.simple(50).to_text()
    with pytest.raises(Unsupported, match="RIBBON"):
        BloomFilter.from_text(text, "RIBBON")
    jenkins = bytearray(base64.b64decode(text))
    jenkins[8] = 0
    with pytest.raises(Unsupported, match="hash type 0"):
        BloomFilter.from_text(base64.b64encode(bytes(jenkins)).decode(), None)


@pytest.mark.parametrize(("entries", "fpp"), [(0, 1e-9), (60_000, 0.0), (60_000, 1.0), (10**9, 1e-9)])
def test_impossible_sizes_are_refused(entries: int, fpp: float) -> None:
    with pytest.raises(Invalid, match=r"hoodie\.index\.bloom"):
        BloomOptions(entries=entries, fpp=fpp)


def test_many_keys_of_mixed_lengths_are_all_found() -> None:
    numbers = np.random.default_rng(0).integers(0, 10**9, 200_000)
    keys = pa.array(numbers).cast(pa.string())
    bloom = BloomFilter.dynamic(30_000, 1e-6, 100_000)
    bloom.add(keys)
    assert bloom.row_count == 4
    assert bloom.contains(keys).all()
