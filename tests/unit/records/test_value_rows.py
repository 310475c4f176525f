"""Rows of few keys, found by bounds of row groups and pages, are those of comparing every key."""

from __future__ import annotations

import io
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from hoodie.errors import Corrupt, HudiError, Invalid
from hoodie.records import page_rows, read_footer, value_rows
from hoodie.records.value_rows import rows_with_values
from hoodie.testing.one_file import OneFile, many_pages

KEYS = [f"key-{number * 7919:012d}" for number in range(30_000)]
SHUFFLED = random.Random(1).sample(KEYS, len(KEYS))


def written(keys: list[str | None], **options: Any) -> bytes:
    rows = pa.table({"n": pa.array(range(len(keys)), pa.int64()), "key": pa.array(keys, pa.string())})
    return many_pages(rows, **options)


def found(file: OneFile, values: list[str], path: str = "f.parquet") -> list[tuple[int, str]]:
    """Rows, and the value that was found there."""
    array = pa.array(values, pa.string())
    rows, places = rows_with_values(file, path, "key", array, footer=read_footer(file, path))
    assert rows.dtype == places.dtype == np.int64
    return list(zip(rows.tolist(), array.take(pa.array(places)).to_pylist(), strict=True))


def every(keys: list[str | None], values: list[str]) -> list[tuple[int, str]]:
    asked = set(values)
    return [(row, key) for row, key in enumerate(keys) if key in asked and key is not None]


LAYOUTS: dict[str, dict[str, Any]] = {
    "gzip": {"compression": "gzip"},
    "plain": {"compression": "zstd", "use_dictionary": False},
    "v2": {"compression": "none", "data_page_version": "2.0"},
    "groups": {"compression": "snappy", "use_dictionary": False, "row_group_size": 11_000},
    "small groups": {"row_group_size": 700},
    "no index": {"write_page_index": False, "row_group_size": 11_000},
    "no bounds": {"write_statistics": False, "row_group_size": 11_000},
    "delta": {"column_encoding": {"key": "DELTA_BYTE_ARRAY"}, "use_dictionary": False},
}


@pytest.mark.parametrize("scheme", ["memory", "s3"])
@pytest.mark.parametrize("keys", [KEYS, SHUFFLED], ids=["ascending", "shuffled"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_those_of_the_whole_column(
    layout: str, keys: list[str | None], scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_rows, "MIN_REMOTE_BYTES", 0)
    file = OneFile(written(keys, **LAYOUTS[layout]), scheme)
    for values in (
        [],
        KEYS[:1],
        [KEYS[-1], "no such key", ""],
        [keys[11_000], keys[499], keys[500]],
        random.Random(2).sample(KEYS, 40),
        random.Random(3).sample(KEYS, 4000),  # too many for bounds
    ):
        assert found(file, values) == every(keys, values)


TEXTS = st.text(alphabet="aé\ud7ff\uffff\U00010000\x00", max_size=3) | st.text(max_size=6)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.none() | TEXTS, max_size=60),
    st.lists(TEXTS, unique=True, max_size=6),
    st.booleans(),
    st.sampled_from([key for key in LAYOUTS if key != "small groups"]),
    st.integers(1, 30),
    st.integers(1, 8),
    st.sampled_from(["memory", "s3"]),
    st.data(),
)
def test_random_files_give_the_rows_of_the_whole_column(
    keys: list[str | None],
    others: list[str],
    ascends: bool,
    layout: str,
    group_rows: int,
    page_rows_: int,
    scheme: str,
    data: st.DataObject,
) -> None:
    if ascends:
        keys = sorted(keys, key=lambda key: (key is None, key or ""))
    stored = [key for key in keys if key is not None]
    asked = data.draw(st.lists(st.sampled_from(stored), max_size=3)) if stored else []
    values = list(dict.fromkeys([*asked, *others]))
    pages = {"row_group_size": group_rows, "max_rows_per_page": page_rows_, "write_batch_size": 1}
    file = OneFile(written(keys, **{**LAYOUTS[layout], **pages}), scheme)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(page_rows, "_MIN_ROWS", 1)
        patched.setattr(page_rows, "MIN_REMOTE_BYTES", 0)
        patched.setattr(value_rows, "_ROWS_PER_VALUE", data.draw(st.sampled_from([0, 1 << 30]), "rows per value"))
        assert found(file, values) == every(keys, values)


@pytest.mark.parametrize(("scheme", "share"), [("memory", 20), ("s3", 8)])
def test_of_ascending_keys_few_bytes_are_read(scheme: str, share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_rows, "MIN_REMOTE_BYTES", 0)
    file = OneFile(written(KEYS, compression="none", use_dictionary=False), scheme)
    footer = read_footer(file, "f.parquet")
    file.read_bytes = 0
    rows, _ = rows_with_values(file, "f.parquet", "key", pa.array(KEYS[12_345:12_346]), footer=footer)
    assert rows.tolist() == [12_345]
    assert file.read_bytes < len(KEYS) * 20 / share + (128 * 1024 if scheme == "s3" else 0)


def test_row_groups_are_left_out_by_their_bounds_where_pages_have_none() -> None:
    file = OneFile(written(KEYS, compression="none", use_dictionary=False, write_page_index=False, row_group_size=3000))
    footer = read_footer(file, "f.parquet")
    file.read_bytes = 0
    rows, _ = rows_with_values(file, "f.parquet", "key", pa.array([KEYS[5], KEYS[29_999]]), footer=footer)
    assert rows.tolist() == [5, 29_999]
    assert file.read_bytes < len(KEYS) * 20 * 0.3


def test_of_many_keys_row_groups_beyond_them_are_not_read() -> None:
    file = OneFile(written(KEYS, compression="none", use_dictionary=False, row_group_size=3000))
    footer = read_footer(file, "f.parquet")
    file.read_bytes = 0
    rows, places = rows_with_values(file, "f.parquet", "key", pa.array(KEYS[29_500:20_000:-2]), footer=footer)
    assert rows.tolist() == list(range(20_002, 29_502, 2))
    assert [29_500 - 2 * place for place in places] == rows.tolist()
    assert file.read_bytes < len(KEYS) * 20 * 0.5
    assert found(file, [f"z{n}" for n in range(500)]) == []


def test_orc_files_are_read_whole() -> None:
    sink = io.BytesIO()
    orc.write_table(pa.table({"key": KEYS[:500]}), sink)
    assert found(OneFile(sink.getvalue()), [KEYS[7], KEYS[3], "x"], "f.orc") == [(3, KEYS[3]), (7, KEYS[7])]


def test_a_file_without_the_column_is_refused() -> None:
    file = OneFile(written(KEYS[:10]))
    with pytest.raises(Invalid, match="no column `other`"):
        rows_with_values(file, "f.parquet", "other", pa.array(["a"]), footer=read_footer(file, "f.parquet"))


def test_damaged_files_give_their_rows_or_say_that_they_are_damaged() -> None:
    data = written(KEYS, use_dictionary=False, compression="snappy", row_group_size=11_000)
    chance = random.Random(3)
    said = 0
    for _ in range(150):
        damaged = bytearray(data)
        for place in chance.sample(range(4, len(data)), 20):
            damaged[place] ^= 1 << chance.randrange(8)
        try:
            got = found(OneFile(bytes(damaged)), [KEYS[12_345]])
        except HudiError as error:
            assert isinstance(error, Corrupt) or "no column" in str(error)
            said += 1
            continue
        assert len(got) <= 1
    assert 10 < said < 150
