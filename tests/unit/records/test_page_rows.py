"""Rows found page by page are those found by reading everything, and few pages are read for few rows."""

from __future__ import annotations

import io
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import Corrupt, HudiError
from hoodie.records import iter_batches, page_rows
from hoodie.records.condition import AllOf, AnyOf, Comparison, Condition
from hoodie.records.thrift import (
    BINARY,
    BYTE,
    DOUBLE,
    I32,
    I64,
    LIST,
    STRUCT,
    Field,
    Listed,
    NoThrift,
    encode_struct,
    parse_struct,
)
from hoodie.testing.one_file import OneFile, many_pages

ROWS = 30_000
KEYS = [f"key-{number * 7919:012d}" for number in range(ROWS)]
SHUFFLED = random.Random(1).sample(KEYS, ROWS)


def table(keys: list[str]) -> pa.Table:
    return pa.table(
        {
            "key": pa.array(keys),
            "number": pa.array(range(ROWS), pa.int64()),
            "some": pa.array([number if number % 3 else None for number in range(ROWS)], pa.int32()),
            "text": pa.array([None if number % 5 == 0 else f"text {number % 50}" for number in range(ROWS)]),
            "price": pa.array([Decimal(number).scaleb(-2) for number in range(ROWS)], pa.decimal128(12, 2)),
            "nested": pa.array([{"a": number} for number in range(ROWS)], pa.struct({"a": pa.int64()})),
        }
    )


def found(
    file: OneFile, test: Comparison, columns: list[str], schema: pa.Schema, condition: Condition | None = None
) -> pa.Table:
    expression = pc.field(test.column).isin(test.values)
    batches = iter_batches(
        file,
        "f.parquet",
        schema=pa.schema([schema.field(name) for name in columns]),
        filter=expression,
        filter_columns={test.column},
        condition=test if condition is None else condition,
    )
    return pa.Table.from_batches(batches, schema=pa.schema([schema.field(name) for name in columns]))


@pytest.mark.parametrize("keys", [KEYS, SHUFFLED], ids=["ascending", "shuffled"])
@pytest.mark.parametrize(
    "options",
    [
        {"compression": "gzip"},
        {"compression": "zstd", "use_dictionary": False},
        {"compression": "none", "data_page_version": "2.0"},
        {"compression": "snappy", "data_page_version": "2.0", "use_dictionary": ["text"], "row_group_size": 12_000},
        {"write_page_index": False},
        {"column_encoding": {"key": "DELTA_BYTE_ARRAY", "number": "DELTA_BINARY_PACKED"}, "use_dictionary": False},
    ],
    ids=["gzip", "plain", "v2", "groups", "no index", "delta"],
)
def test_the_rows_are_those_of_the_whole_file(keys: list[str], options: dict[str, Any]) -> None:
    rows = table(keys)
    file = OneFile(many_pages(rows, **options))
    for wanted in (
        [],
        [keys[0]],
        [keys[-1], "no such key"],
        [keys[499], keys[500], keys[500]],
        random.sample(keys, 40),
    ):
        test = Comparison("key", "in", pa.array(wanted, pa.string()))
        columns = ["price", "key", "text", "some", "number"]
        expected = rows.filter(pc.is_in(rows["key"], pa.array(wanted, pa.string()))).select(columns)
        assert found(file, test, columns, rows.schema).equals(expected)


@pytest.mark.parametrize("scheme", ["memory", "s3"])
def test_few_bytes_are_read_for_few_rows(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_rows, "MIN_REMOTE_BYTES", 0)
    rows = table(KEYS)
    data = many_pages(rows, compression="none", use_dictionary=False)
    file = OneFile(data, scheme)
    test = Comparison("key", "=", pa.array([KEYS[12_345]]))
    assert found(file, test, ["number", "key"], rows.schema).to_pylist() == [{"number": 12_345, "key": KEYS[12_345]}]
    assert file.read_bytes < len(data) / 8


def test_constants_of_numbers_are_found_too_and_text_is_no_number() -> None:
    rows = table(KEYS)
    file = OneFile(many_pages(rows))
    for column, constants in (("number", pa.array([3, 29_999], pa.int64())), ("some", pa.array([4, 5], pa.int32()))):
        expected = rows.filter(pc.is_in(rows[column], constants)).select([column, "key"])
        assert found(file, Comparison(column, "in", constants), [column, "key"], rows.schema).equals(expected)
    wide = rows.schema.set(rows.schema.get_field_index("some"), pa.field("some", pa.int64()))
    test = Comparison("some", "in", pa.array([4], pa.int64()))
    assert found(file, test, ["some", "key"], wide).column("some").to_pylist() == [4]


def test_columns_of_structs_are_read_with_the_whole_file() -> None:
    rows = table(KEYS)
    test = Comparison("key", "=", pa.array([KEYS[7]]))
    assert found(OneFile(many_pages(rows)), test, ["key", "nested"], rows.schema).to_pylist()[0]["nested"] == {"a": 7}


def test_conditions_are_joined_by_and_and_or() -> None:
    rows = table(KEYS)
    file = OneFile(many_pages(rows))
    one = Comparison("key", "in", pa.array([KEYS[1], KEYS[20_000]]))
    two = Comparison("number", "in", pa.array([1, 15_000]))
    for condition, expression in (
        (AllOf((one, two)), pc.field("key").isin(one.values) & pc.field("number").isin(two.values)),
        (AnyOf((one, two)), pc.field("key").isin(one.values) | pc.field("number").isin(two.values)),
        (AllOf((one, AnyOf((two, AllOf(()))))), pc.field("key").isin(one.values)),
    ):
        batches = iter_batches(
            file,
            "f.parquet",
            schema=rows.schema.remove(5),
            filter=expression,
            filter_columns={"key", "number"},
            condition=condition,
        )
        got = pa.Table.from_batches(batches, schema=rows.schema.remove(5))
        assert got.equals(rows.filter(expression).drop_columns(["nested"]))


@pytest.mark.parametrize("codec", ["snappy", "gzip"])
def test_damaged_files_give_their_rows_or_say_that_they_are_damaged(codec: str) -> None:
    rows = table(KEYS).select(["key", "number"])
    data = many_pages(rows, use_dictionary=False, compression=codec)
    test = Comparison("key", "=", pa.array([KEYS[12_345]]))
    chance = random.Random(3)
    footer_at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    first_page = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(1).data_page_offset
    for _ in range(150):
        damaged = bytearray(data)
        place = chance.randrange(first_page, len(data) if chance.random() < 0.5 else footer_at)
        damaged[place] ^= 1 << chance.randrange(8)
        try:
            got = found(OneFile(bytes(damaged)), test, ["key", "number"], rows.schema)
        except HudiError as error:
            assert isinstance(error, Corrupt) or "fit" in str(error)
            continue
        assert got.num_rows <= 1


@pytest.mark.parametrize("data", [b"P", b"PAR1", b"0123456", b"PAR1PAR1"])
def test_files_without_room_for_a_footer_are_damaged(data: bytes) -> None:
    test = Comparison("key", "=", pa.array(["a"]))
    with pytest.raises(Corrupt):
        found(OneFile(data), test, ["key"], pa.schema({"key": pa.string()}))


VALUES = st.deferred(
    lambda: st.one_of(
        st.integers(-(1 << 63), (1 << 63) - 1).map(lambda number: Field(I64, number)),
        st.integers(-(1 << 31), (1 << 31) - 1).map(lambda number: Field(I32, number)),
        st.booleans().map(lambda value: Field(1 if value else 2, value)),
        st.binary(max_size=20).map(lambda value: Field(BINARY, value)),
        st.floats(allow_nan=False).map(lambda value: Field(DOUBLE, value)),
        st.lists(st.integers(-5, 1 << 40), max_size=20).map(lambda values: Field(LIST, Listed(I64, values))),
        st.lists(st.integers(0, 255), max_size=20).map(lambda values: Field(LIST, Listed(BYTE, values))),
        STRUCTS.map(lambda value: Field(STRUCT, value)),
    )
)
STRUCTS = st.dictionaries(st.integers(1, 200), VALUES, max_size=4)


@settings(deadline=None)
@given(STRUCTS)
def test_structs_come_back(fields: dict[int, Field]) -> None:
    assert parse_struct(encode_struct(fields)) == fields


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_bytes_are_structs_or_refused(data: bytes) -> None:
    try:
        parse_struct(data)
    except NoThrift:
        return
