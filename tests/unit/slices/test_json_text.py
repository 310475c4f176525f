"""JSON images: the kernels against plain Python."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.slices.json_text import AVRO, ROW, json_rows, json_structs

KINDS = {
    "text": pa.string(),
    "whole": pa.int64(),
    "yes": pa.bool_(),
    "list": pa.list_(pa.string()),
    "map": pa.map_(pa.string(), pa.int32()),
    "part": pa.struct([("x", pa.string()), ("y", pa.int32())]),
}
NUMBERS = st.integers(-(2**31), 2**31 - 1)
VALUES = {
    "text": st.text(max_size=6),
    "whole": NUMBERS,
    "yes": st.booleans(),
    "list": st.lists(st.none() | st.text(max_size=3), max_size=3),
    "map": st.dictionaries(st.text(max_size=3), st.none() | NUMBERS, max_size=3).map(lambda found: list(found.items())),
    "part": st.fixed_dictionaries({"x": st.none() | st.text(max_size=3), "y": st.none() | NUMBERS}),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=5)


def plain(value: object, *, keep: bool) -> object:
    """What the JSON of an Arrow value means. `keep`: NULL members stay."""
    if isinstance(value, dict):
        return {name: plain(one, keep=keep) for name, one in value.items() if keep or one is not None}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return plain(dict(value), keep=keep)
    return value


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, start=st.integers(0, 2))
def test_json_means_the_row(rows, start):
    schema = pa.schema(list(KINDS.items()))
    table = pa.Table.from_pylist(rows, schema=schema).slice(start)
    for form, keep in ((ROW, False), (AVRO, True)):
        texts = json_rows(table, form).to_pylist()
        expected = [plain(row, keep=keep) for row in rows[start:]]
        got = [json.loads(text) for text in texts]
        for one, other in zip(got, expected, strict=True):
            assert one == {name: {} if name == "map" and value == [] else value for name, value in other.items()}


def test_rows_are_written_compactly_without_null_members():
    rows = pa.table({"a": ["x", None], "b": pa.array([None, 2]), "c": [1.5, float("nan")]})
    assert json_rows(rows, ROW).to_pylist() == ['{"a":"x","c":1.5}', '{"b":2,"c":"NaN"}']


def test_images_of_change_files_have_blanks_and_null_members():
    image = pa.array([{"a": "x", "b": None}, None], pa.struct([("a", pa.string()), ("b", pa.int64())]))
    assert json_structs(pa.chunked_array([image]), AVRO).to_pylist() == ['{"a": "x", "b": null}', None]


@pytest.mark.parametrize(
    ("value", "row", "avro"),
    [
        ('q"\\', r'"q\"\\"', r'"q\"\\"'),
        ("\n\t\b\f\r", r'"\n\t\b\f\r"', r'"\n\t\b\f\r"'),
        ("\x00\x1f", r'"\u0000\u001F"', r'"\u0000\u001F"'),
        ("é榆/", '"é榆/"', '"é榆/"'),
        ("\x7f\u2028", '"\x7f\u2028"', r'"\u007F\u2028"'),
    ],
)
def test_text_is_escaped_as_each_writer_does(value, row, avro):
    rows = pa.table({"a": [value, "plain"]})
    assert json_rows(rows, ROW).to_pylist() == [f'{{"a":{row}}}', '{"a":"plain"}']
    assert json_rows(rows, AVRO).to_pylist() == [f'{{"a": {avro}}}', '{"a": "plain"}']


def test_values_without_json_of_their_own():
    rows = pa.table(
        {
            "day": pa.array([datetime.date(2024, 1, 2)]),
            "time": pa.array([datetime.datetime(2024, 1, 2)], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal("-3.25")], pa.decimal128(10, 2)),
            "raw": pa.array([b"\x00\xffa"]),
            "big": pa.array([1e10]),
        }
    )
    (row,), (avro,) = json_rows(rows, ROW).to_pylist(), json_rows(rows, AVRO).to_pylist()
    assert row == '{"day":19724,"time":1704153600000000,"price":-3.25,"raw":"AP9h","big":1.0E10}'
    assert avro == (
        '{"day": 19724, "time": 1704153600000000, "price": [-1, -1, -1, -2, -69], "raw": "\\u0000ÿa", "big": 1.0E10}'
    )


def test_no_columns_and_no_rows():
    assert json_rows(pa.table({"a": pa.array([], pa.string())}), ROW).to_pylist() == []
    assert json_structs(pa.chunked_array([pa.array([{}], pa.struct([]))]), AVRO).to_pylist() == ["{}"]


def test_decimals_in_lists_are_bytes_whatever_room_their_buffer_has() -> None:
    room = pa.py_buffer((150).to_bytes(16, "little") + (-150).to_bytes(16, "little", signed=True) + b"\0" * 8)
    decimals = pa.Array.from_buffers(pa.decimal128(10, 2), 2, [None, room])
    plain_ones = pa.array([Decimal("1.50"), Decimal("-1.50")], pa.decimal128(10, 2))
    texts = [json_rows(pa.table({"m": one}), AVRO).to_pylist() for one in (decimals, plain_ones)]
    assert texts[0] == texts[1]
