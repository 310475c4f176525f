"""Bare Avro rows: types, layouts and columns, and what damage is called."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.records import RowBytes, avro_rows, decode_rows, encode_rows, from_avro
from hoodie.testing.random_avro import blocks, number


def schema_of(*types: Any) -> str:
    fields = [{"name": f"f{at}", "type": one} for at, one in enumerate(types)]
    return json.dumps({"type": "record", "name": "row", "namespace": "n", "fields": fields})


def record(name: str, **fields: Any) -> Any:
    return {"type": "record", "name": name, "fields": [{"name": at, "type": one} for at, one in fields.items()]}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"logicalType": "decimal", "precision": precision, "scale": scale}


def laid_out(rows: Sequence[bytes]) -> RowBytes:
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    return RowBytes(b"".join(rows), ends - [len(row) for row in rows], ends)


def written(schema: str, rows: Sequence[dict[str, Any]]) -> RowBytes:
    """Rows as fastavro writes them."""
    parsed = fastavro.parse_schema(json.loads(schema))
    encoded = []
    for row in rows:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, parsed, row)
        encoded.append(buffer.getvalue())
    return laid_out(encoded)


def read(rows: RowBytes, schema: str) -> list[Any]:
    """Rows as fastavro reads them."""
    parsed = fastavro.parse_schema(json.loads(schema))
    bounds = zip(rows.starts.tolist(), rows.ends.tolist(), strict=True)
    return [fastavro.schemaless_reader(io.BytesIO(rows.data[start:end]), parsed) for start, end in bounds]


VALUES: list[tuple[Any, list[Any]]] = [
    ("boolean", [True, False]),
    ("int", [0, -1, 63, 64, -64, -65, 2**31 - 1, -(2**31)]),
    ("long", [0, 2**63 - 1, -(2**63), 2**56, 2**55 - 1, 2**62, -(2**62), 127, 8191, 8192]),
    ("float", [0.0, -0.0, 1.5, math.inf, -math.inf]),
    ("double", [0.0, 5e-324, 1.7976931348623157e308, -math.inf]),
    ("string", ["", "a", "äß𝄞", "x" * 63, "x" * 64, "x" * 9000]),
    ("bytes", [b"", b"\x00\xff", b"x" * 300]),
    ({"type": "fixed", "name": "F", "size": 3}, [b"abc", b"\x00\x00\x00"]),
    ({"type": "fixed", "name": "F", "size": 0}, [b"", b""]),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, ["B", "A", "B"]),
    ({"type": "int", "logicalType": "date"}, [dt.date(1, 1, 1), dt.date(2024, 2, 29)]),
    ({"type": "long", "logicalType": "timestamp-micros"}, [dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC)]),
    ({"type": "long", "logicalType": "timestamp-millis"}, [dt.datetime(1969, 1, 2, 3, 4, 5, 6000, tzinfo=dt.UTC)]),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, [dt.datetime(2024, 1, 2, 3, 4, 5, 6)]),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, [dt.datetime(2024, 1, 2, 3, 4, 5, 6000)]),
    ({"type": "bytes", **decimal(38, 2)}, [Decimal("-1.00"), Decimal(10**35), Decimal("0.00")]),
    ({"type": "fixed", "name": "D", "size": 5, **decimal(10, 2)}, [Decimal("-99999999.99"), Decimal("0.01")]),
    ({"type": "fixed", "name": "D", "size": 20, **decimal(38, 0)}, [Decimal(10**38 - 1), Decimal(1 - 10**38)]),
    (["null", "long"], [None, 5, None]),
    (["string", "null"], ["x", None, ""]),
    (["string"], ["x", "y"]),
    (["null"], [None, None]),
    ("null", [None]),
    ({"type": "array", "items": ["null", "string"]}, [[], [None], ["a", None, "b"]]),
    ({"type": "array", "items": {"type": "array", "items": "double"}}, [[[1.0], [], [2.0, 3.0]], [], [[]]]),
    (["null", {"type": "map", "values": "long"}], [{"a": 1, "b": 2}, None, {}]),
    (record("R"), [{}, {}]),
    (["null", record("R", x=["null", "int"])], [{"x": 1}, None, {"x": None}]),
]  # fmt: skip


@pytest.mark.parametrize("repeats", [1, 100])
@pytest.mark.parametrize(("avro", "values"), VALUES, ids=[json.dumps(avro)[:60] for avro, _ in VALUES])
def test_every_type_is_read_as_fastavro_writes_it_and_written_as_fastavro_writes_it(
    avro: Any, values: list[Any], repeats: int
) -> None:
    schema = schema_of(avro, "long")
    rows = [{"f0": value, "f1": at} for at, value in enumerate(values * repeats)]
    wire = written(schema, rows)
    decoded = decode_rows(wire, schema)
    shown = [list(value.items()) if is_map(decoded, value) else value for value in values * repeats]
    assert decoded.schema == from_avro(schema)
    assert decoded.column("f0").to_pylist() == shown
    assert decoded.column("f1").to_pylist() == list(range(len(rows)))
    assert encode_rows(decoded, schema).data == wire.data


def is_map(rows: pa.Table, value: Any) -> bool:
    return isinstance(value, dict) and pa.types.is_map(rows.schema.field("f0").type)


def test_nan_keeps_its_bits() -> None:
    schema = schema_of("double", "float")
    wire = laid_out([bytes.fromhex("010000000000f07f" + "0100c07f")])
    assert encode_rows(decode_rows(wire, schema), schema).data == wire.data


def test_unions_of_several_types_are_structs_with_one_member_set() -> None:
    wrapper = {"type": "record", "name": "IntWrapper", "fields": [{"name": "value", "type": "int"}]}
    text = {"type": "record", "name": "StringWrapper", "fields": [{"name": "value", "type": "string"}]}
    schema = schema_of(["null", wrapper, text, "boolean"], ["null", "IntWrapper"])
    rows = laid_out([b"\x00\x00", b"\x02\x0a\x02\x06", b"\x04\x02x\x00", b"\x06\x01\x00"])
    assert decode_rows(rows, schema).to_pylist() == [
        {"f0": None, "f1": None},
        {"f0": {"member0": {"value": 5}, "member1": None, "member2": None}, "f1": {"value": 3}},
        {"f0": {"member0": None, "member1": {"value": "x"}, "member2": None}, "f1": None},
        {"f0": {"member0": None, "member1": None, "member2": True}, "f1": None},
    ]
    assert encode_rows(decode_rows(rows, schema), schema).data == rows.data


def test_unions_of_two_widths_are_the_wider_type() -> None:
    schema = schema_of(["int", "null", "long"], ["double", "float"])
    rows = laid_out([number(0) + number(7) + b"\x02" + bytes.fromhex("0000c03f"), number(2) + number(2**40) + bytes(9)])
    decoded = decode_rows(rows, schema)
    assert decoded.to_pylist() == [{"f0": 7, "f1": 1.5}, {"f0": 2**40, "f1": 0.0}]
    assert read(encode_rows(decoded, schema), schema) == decoded.to_pylist()


def test_numbers_may_have_more_bytes_than_they_need() -> None:
    schema = schema_of("int", "string", ["null", "boolean"])
    row = b"\x8a\x80\x80\x00" + b"\x84\x00ab" + b"\x82\x80\x80\x80\x80\x80\x80\x80\x80\x00\x01"
    assert decode_rows(laid_out([row] * 2), schema).to_pylist() == [{"f0": 5, "f1": "ab", "f2": True}] * 2


def test_decimals_may_repeat_their_sign_up_to_sixteen_bytes() -> None:
    schema = schema_of({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1})
    for size in (1, 2, 8, 9, 15, 16):
        for value in (-7, 7):
            row = number(size) + value.to_bytes(size, "big", signed=True)
            assert decode_rows(laid_out([row]), schema).column(0).to_pylist() == [Decimal(value).scaleb(-1)]


@pytest.mark.parametrize("rows", [1, 2, 500])
def test_arrays_may_come_in_many_blocks_with_and_without_sizes(rows: int) -> None:
    schema = schema_of(
        {"type": "array", "items": "string"}, {"type": "map", "values": {"type": "array", "items": "int"}}
    )
    items = [b"\x02a", b"\x00", b"\x04bc"]
    first = number(-2) + number(3) + items[0] + items[1] + number(1) + items[2] + b"\x00"
    second = number(1) + b"\x02k" + blocks([b"\x02"]) + number(-1) + number(99) + b"\x02l" + b"\x00" + b"\x00"
    expected = {"f0": ["a", "", "bc"], "f1": [("k", [1]), ("l", [])]}
    assert decode_rows(laid_out([first + second] * rows), schema).to_pylist() == [expected] * rows


def test_one_very_long_map_among_short_ones_keeps_its_place() -> None:
    info = {
        "type": "record",
        "name": "I",
        "fields": [{"name": "size", "type": "long"}, {"name": "gone", "type": "boolean"}],
    }
    schema = schema_of("string", ["null", {"type": "map", "values": info}], "int")
    rows = [
        {"f0": f"p{at}", "f1": {f"file-{n}": {"size": n * at, "gone": n % 3 == 0} for n in range(count)}, "f2": at}
        for at, count in enumerate([3] * 90 + [20_000] + [2] * 90)
    ]
    decoded = decode_rows(written(schema, rows), schema)
    assert decoded.to_pylist() == [{**row, "f1": list(row["f1"].items())} for row in rows]
    assert decode_rows(written(schema, rows), schema, columns=["f2"]).column(0).to_pylist() == list(range(len(rows)))


def test_only_wanted_columns_are_built_in_the_order_of_the_schema() -> None:
    types = [avro for avro, _ in VALUES if not (isinstance(avro, dict) and "name" in avro)]
    types = [one for one in types if not (isinstance(one, list) and isinstance(one[-1], dict) and "name" in one[-1])]
    schema = schema_of(*types)
    values = [values for avro, values in VALUES if avro in types]
    rows = written(schema, [{f"f{at}": held[row % len(held)] for at, held in enumerate(values)} for row in range(200)])
    everything = decode_rows(rows, schema)
    for at in range(len(types)):
        chosen = {f"f{at}", f"f{at // 2}", "absent"}
        wanted = [name for name in everything.column_names if name in chosen]
        assert decode_rows(rows, schema, columns=chosen).equals(everything.select(wanted))
    none = decode_rows(rows, schema, columns=[])
    assert (none.num_rows, none.num_columns) == (200, 0)


def test_rows_are_found_between_other_bytes_and_in_slices_of_buffers() -> None:
    schema = schema_of("string")
    data = pa.py_buffer(b"??\x02a!!!!\x04bc").slice(1)
    rows = RowBytes(data, np.array([1, 7]), np.array([3, 10]))
    assert decode_rows(rows, schema).column(0).to_pylist() == ["a", "bc"]


def test_many_rows_come_in_chunks_and_long_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_rows, "CHUNK_ROWS", 10)
    monkeypatch.setattr(avro_rows, "CHUNK_BYTES", 100)
    schema = schema_of("string")
    texts = ["x" * size for size in [1] * 25 + [500] + [30] * 5]
    decoded = decode_rows(written(schema, [{"f0": text} for text in texts]), schema)
    assert decoded.column(0).to_pylist() == texts
    assert [len(chunk) for chunk in decoded.column(0).chunks] == [10, 10, 5, 1, 3, 2]


def test_no_rows_give_an_empty_table_and_no_bytes() -> None:
    schema = schema_of("string", {"type": "array", "items": "int"})
    empty = decode_rows(laid_out([]), schema)
    assert empty.equals(from_avro(schema).empty_table())
    assert len(encode_rows(empty, schema)) == 0


def test_columns_are_found_by_name_and_absent_ones_written_as_null() -> None:
    schema = schema_of(["null", "long"], "string", ["null", "string"])
    rows = pa.table({"f1": pa.array(["a", "b"], pa.large_string()), "f0": pa.array([1, None], pa.int8())})
    assert read(encode_rows(rows, schema), schema) == [
        {"f0": 1, "f1": "a", "f2": None},
        {"f0": None, "f1": "b", "f2": None},
    ]


def test_slices_of_nested_columns_are_written_without_their_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_rows, "ENCODE_ROWS", 7)
    inner = {"type": "record", "name": "I", "fields": [{"name": "x", "type": ["null", "int"]}]}
    schema = schema_of(["null", {"type": "array", "items": ["null", inner]}], {"type": "map", "values": "string"})
    rows = [
        {"f0": None if at % 5 == 0 else [{"x": at}, None] * (at % 3), "f1": {str(n): "v" for n in range(at % 4)}}
        for at in range(60)
    ]
    decoded = decode_rows(written(schema, rows), schema)
    assert read(encode_rows(decoded.slice(11, 30), schema), schema) == rows[11:41]


@pytest.mark.parametrize(
    ("avro", "column"),
    [
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.array(["B"])),
        ({"type": "fixed", "name": "F", "size": 2}, pa.array([b"abc"])),
        (
            {"type": "fixed", "name": "F", "size": 1, "logicalType": "decimal", "precision": 5, "scale": 0},
            pa.array([Decimal(1000)], pa.decimal128(5, 0)),
        ),
        ("long", pa.array([None], pa.int64())),
        (["int", "long"], pa.array([None], pa.int64())),
        (["string", "boolean"], pa.array([{"member0": "a", "member1": True}])),
        (
            ["string", "boolean"],
            pa.array(
                [{"member0": None, "member1": None}], pa.struct([("member0", pa.string()), ("member1", pa.bool_())])
            ),
        ),
    ],
)
def test_values_that_do_not_fit_the_schema_are_refused(avro: Any, column: pa.Array) -> None:
    with pytest.raises(Invalid) as raised:
        encode_rows(pa.table({"f0": column}), schema_of(avro))
    assert raised.value.remedy


DAMAGE: list[tuple[list[Any], bytes, str, int]] = [
    (["long"], b"", "ends in the middle", 0),
    (["long"], b"\x80", "ends in the middle|64 bits", 1),
    (["long"], b"\xff" * 9 + b"\x02", "more than 64 bits", 0),
    (["long"], b"\xff" * 11, "more than 64 bits", 0),
    (["int"], number(2**31), "more than 32 bits", 5),
    (["boolean"], b"\x02", "neither 0 nor 1", 1),
    (["double"], b"1234567", "ends in the middle", 7),
    ([{"type": "fixed", "name": "F", "size": 9}], b"12345678", "ends in the middle", 8),
    ([{"type": "fixed", "name": "F", "size": 2**40}], b"12345678", "ends in the middle", 8),
    (["string"], b"\x01", "byte string that is longer", 1),
    (["string"], b"\x06ab", "byte string that is longer", 1),
    (["string"], number(2**62), "byte string that is longer", 9),
    (["string"], b"\x04\xc3\x28", "not UTF-8", 1),
    ([["null", "long"]], b"\x04", "union branch", 1),
    ([["null", "long"]], b"\x01", "union branch", 1),
    ([{"type": "enum", "name": "E", "symbols": ["A"]}], b"\x02", "symbol", 1),
    ([{"type": "enum", "name": "E", "symbols": []}], b"\x00", "symbol", 1),
    ([{"type": "bytes", "logicalType": "decimal", "precision": 3}], b"\x00\x00", "decimal of no", 1),
    ([{"type": "bytes", "logicalType": "decimal", "precision": 3}], number(17) + bytes(17), "more than 16", 1),
    ([{"type": "bytes", "logicalType": "decimal", "precision": 3}], b"\x04\x7f\xff", "too many digits", 1),
    (
        [{"type": "fixed", "name": "F", "size": 18, "logicalType": "decimal", "precision": 3}],
        b"\x01" + bytes(17),
        "more than 16",
        0,
    ),
    ([{"type": "array", "items": "string"}], number(10), "array that is longer", 1),
    ([{"type": "array", "items": "string"}], number(2**62), "array that is longer", 9),
    ([{"type": "array", "items": "string"}], number(-(2**63)) + b"\x00", "array that is longer", 11),
    ([{"type": "array", "items": "string"}], b"\x02\x02a", "ends in the middle", 3),
    ([{"type": "array", "items": "string"}], b"\x02\x01\x00", "byte string that is longer", 2),
    ([{"type": "array", "items": {"type": "array", "items": "string"}}], b"\x02\x02\x05\x00\x00", "byte string", 3),
    ([{"type": "array", "items": ["null", "string"]}], b"\x02\x06\x00", "union branch", 1),
    ([{"type": "array", "items": "null"}], number(2**30) + b"\x00", "empty items", 0),
    ([{"type": "array", "items": record("R")}], (number(2**20) * 9) + b"\x00", "empty items", 0),
    (["long"], b"\x02\x02", "goes on behind", 1),
]  # fmt: skip


@pytest.mark.parametrize("rows", [1, 3, 100])
@pytest.mark.parametrize(("types", "row", "cause", "at"), DAMAGE, ids=[f"{one[0]}-{one[1][:12]!r}" for one in DAMAGE])
def test_damage_names_file_and_place(types: list[Any], row: bytes, cause: str, at: int, rows: int) -> None:
    schema = schema_of(*types)
    with pytest.raises(Corrupt, match=cause) as raised:
        decode_rows(laid_out([row] * rows), schema, path="a/b.log", offset=1000)
    assert raised.value.facts["path"] == "a/b.log"
    assert 1000 <= raised.value.facts["offset"] <= 1000 + rows * len(row)
    if rows == 1:
        assert abs(raised.value.facts["offset"] - 1000 - at) <= len(row)


@pytest.mark.parametrize(
    ("starts", "ends"),
    [([0, 1], [2, 3]), ([3], [2]), ([0], [100]), ([-1], [2]), ([2, 0], [3, 1]), ([2**62], [2**62 + 1])],
)
def test_rows_outside_the_buffer_or_in_each_other_are_damage(starts: list[int], ends: list[int]) -> None:
    with pytest.raises(Corrupt, match="outside the buffer or in another row"):
        decode_rows(RowBytes(bytes(50), np.array(starts), np.array(ends)), schema_of("long"))


def test_a_damaged_schema_names_file_and_place() -> None:
    with pytest.raises(Corrupt, match="a.log at 5: Not an Avro") as raised:
        decode_rows(laid_out([]), '{"type"', path="a.log", offset=5)
    assert (raised.value.facts["path"], raised.value.facts["offset"]) == ("a.log", 5)


def test_a_schema_that_contains_itself_is_unsupported() -> None:
    node = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
    with pytest.raises(Unsupported, match="n.N contains itself"):
        decode_rows(laid_out([]), schema_of(node))


@pytest.mark.parametrize(
    ("logical", "stored"),
    [
        ("vector", {"type": "fixed", "name": "vector_float_3", "size": 12, "dimension": 3, "elementType": "FLOAT"}),
        ("variant", {"type": "record", "name": "variant", "fields": [{"name": "value", "type": "bytes"}]}),
        ("blob", {"type": "record", "name": "blob", "fields": [{"name": "data", "type": ["null", "bytes"]}]}),
    ],
)
def test_types_of_hudi_1_2_that_are_not_known_are_refused(logical: str, stored: dict[str, Any]) -> None:
    decode_rows(laid_out([]), schema_of(stored))
    with pytest.raises(Unsupported, match=f"type {logical.upper()}"):
        decode_rows(laid_out([]), schema_of(["null", {**stored, "logicalType": logical}]))


def test_a_small_schema_that_describes_a_huge_one_is_refused() -> None:
    types: list[Any] = [{"type": "record", "name": "R0", "fields": [{"name": "x", "type": "int"}]}]
    for at in range(1, 60):
        fields = [{"name": name, "type": f"R{at - 1}"} for name in ("a", "b")]
        types.append({"type": "record", "name": f"R{at}", "fields": fields})
    with pytest.raises(Corrupt, match="nodes"):
        from_avro(schema_of(*types))


@pytest.mark.parametrize("depth", [70, 100_000])
def test_a_schema_that_is_too_deep_is_refused(depth: int) -> None:
    text = schema_of("X").replace('"X"', '{"type":"array","items":' * depth + '"int"' + "}" * depth)
    with pytest.raises(Corrupt):
        from_avro(text)


def test_many_nulls_of_a_wide_struct_in_few_bytes_are_refused() -> None:
    wide = {"type": "record", "name": "W", "fields": [{"name": f"c{at}", "type": "long"} for at in range(2000)]}
    schema = schema_of({"type": "array", "items": ["null", wide]})
    with pytest.raises(Corrupt, match="parts in"):
        decode_rows(laid_out([number(100_000) + bytes(100_001)]), schema)


def test_the_example_of_the_format_page_is_true() -> None:
    page = (Path(__file__).parents[3] / "docs" / "format" / "avro-rows.md").read_text(encoding="utf-8")
    schema = re.search(r"^Schema: `(.*)`$", page, re.MULTILINE)
    parts = re.findall(r"^\| (\d+) \| ([0-9a-f ]+) \|", page, re.MULTILINE)
    row = b"".join(bytes.fromhex(part) for _, part in parts)
    assert schema is not None
    assert [int(at) for at, _ in parts] == [
        len(bytes.fromhex("".join(p for _, p in parts[:n]))) for n in range(len(parts))
    ]
    expected = {"id": "k1", "n": -70, "price": Decimal("-1.50"), "tags": [("a", 1), ("b", 300)]}
    assert decode_rows(laid_out([row]), schema[1]).to_pylist() == [expected]
    assert encode_rows(decode_rows(laid_out([row]), schema[1]), schema[1]).data == row
