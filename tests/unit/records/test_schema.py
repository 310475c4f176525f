"""Schemas: storable types, meta columns, and Avro text equal to Hudi's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import Corrupt, Invalid
from hoodie.records import (
    COMMENT_KEY,
    META_FIELDS,
    from_avro,
    storable,
    to_avro,
    with_meta,
    without_meta,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "records"
SCHEMAS = json.loads((GOLDEN / "avro_java.json").read_text())["schemas"]
SPARK_TYPES = {
    "string": pa.string(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def arrow_of(spark: Any) -> pa.DataType:
    if isinstance(spark, str):
        if spark.startswith("decimal"):
            return pa.decimal128(*map(int, spark[8:-1].split(",")))
        return SPARK_TYPES[spark]
    if spark["type"] == "array":
        return pa.list_(pa.field("item", arrow_of(spark["elementType"]), nullable=spark["containsNull"]))
    if spark["type"] == "map":
        return pa.map_(pa.string(), pa.field("v", arrow_of(spark["valueType"]), nullable=spark["valueContainsNull"]))
    return pa.struct(arrow_fields(spark))


def arrow_fields(struct: dict[str, Any]) -> list[pa.Field]:
    return [
        pa.field(
            field["name"],
            arrow_of(field["type"]),
            nullable=field["nullable"],
            metadata={COMMENT_KEY: field["metadata"]["comment"].encode()} if field["metadata"] else None,
        )
        for field in struct["fields"]
    ]


@pytest.mark.parametrize("case", SCHEMAS, ids=range(len(SCHEMAS)))
def test_avro_text_of_a_spark_schema_is_letter_for_letter_that_of_hudi(case: dict[str, Any]) -> None:
    schema = storable(pa.schema(arrow_fields(case["spark"])))
    assert to_avro(schema, case["table"]) == case["avro"]
    assert from_avro(case["avro"]).equals(schema, check_metadata=True)


def test_meta_columns_carry_an_empty_doc_and_come_first() -> None:
    text = to_avro(with_meta(pa.schema([pa.field("a", pa.int64(), nullable=False)])), "t")
    fields = json.loads(text)["fields"]
    assert [field["name"] for field in fields] == [*META_FIELDS, "a"]
    assert fields[0] == {"name": "_hoodie_commit_time", "type": ["null", "string"], "doc": "", "default": None}
    assert fields[-1] == {"name": "a", "type": "long"}


def test_meta_columns_are_added_once_and_removed_wherever_they_are() -> None:
    schema = pa.schema([("a", pa.int32()), ("_hoodie_file_name", pa.string()), ("_hoodie_is_deleted", pa.bool_())])
    assert with_meta(with_meta(schema)).names == [*META_FIELDS, "a", "_hoodie_is_deleted"]
    assert with_meta(schema, operation=True).names[5] == "_hoodie_operation"
    assert without_meta(with_meta(schema, operation=True)).names == ["a", "_hoodie_is_deleted"]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (pa.int8(), pa.int32()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.binary(4), pa.binary()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("s", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.run_end_encoded(pa.int32(), pa.int16()), pa.int32()),
        (pa.decimal256(38, 4), pa.decimal128(38, 4)),
        (pa.large_list(pa.int8()), pa.list_(pa.int32())),
        (pa.list_(pa.int64(), 3), pa.list_(pa.int64())),
        (pa.map_(pa.large_string(), pa.int8()), pa.map_(pa.string(), pa.int32())),
        (pa.struct([("x", pa.large_binary())]), pa.struct([("x", pa.binary())])),
    ],
)
def test_types_become_the_stored_ones(given: pa.DataType, stored: pa.DataType) -> None:
    assert storable(pa.schema([("c", given)])).field("c").type == stored


def test_list_and_map_children_get_their_stored_names() -> None:
    schema = storable(
        pa.schema([("l", pa.list_(pa.field("item", pa.int32()))), ("m", pa.map_(pa.string(), pa.int32()))])
    )
    assert schema.field("l").type.value_field.name == "element"
    assert (schema.field("m").type.key_field.name, schema.field("m").type.item_field.name) == ("key", "value")


@pytest.mark.parametrize(
    "given",
    [
        pa.uint64(),
        pa.time64("us"),
        pa.duration("s"),
        pa.null(),
        pa.decimal256(40, 2),
        pa.decimal128(10, -2),
        pa.map_(pa.int32(), pa.int32()),
        pa.struct([]),
        pa.list_(pa.time32("s")),
    ],
)
def test_types_hudi_cannot_hold_are_refused_by_column(given: pa.DataType) -> None:
    with pytest.raises(Invalid, match=r"`s\.c") as raised:
        storable(pa.schema([("s", pa.struct([("c", given)]))]))
    assert raised.value.remedy


def test_names_that_differ_in_case_only_are_refused() -> None:
    with pytest.raises(Invalid, match="A, a"):
        storable(pa.schema([("a", pa.int32()), ("b", pa.int32()), ("A", pa.int32())]))


@pytest.mark.parametrize("name", ["a-b", "1st", "a b", "", "é"])
def test_column_names_avro_does_not_allow_are_refused(name: str) -> None:
    with pytest.raises(Invalid, match="Rename it"):
        to_avro(pa.schema([(name, pa.int32())]), "t")


def test_schemas_of_other_writers_are_understood() -> None:
    text = json.dumps(
        {
            "type": "record",
            "name": "r",
            "namespace": "n",
            "fields": [
                {"name": "flipped", "type": ["string", "null"]},
                {"name": "both", "type": ["null", "int", "long"]},
                {"name": "floats", "type": ["double", "float"]},
                {"name": "many", "type": ["null", "string", "boolean"]},
                {"name": "dec", "type": {"type": "bytes", "logicalType": "decimal", "precision": 7, "scale": 1}},
                {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
                {"name": "day", "type": {"type": "int", "logicalType": "time-millis"}},
                {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A"]}},
                {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
                {"name": "sub", "type": {"type": "record", "name": "S", "fields": [{"name": "x", "type": "int"}]}},
                {"name": "again", "type": ["null", "S"]},
                {"name": "far", "type": "n.S"},
            ],
        }
    )
    sub = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    assert from_avro(text) == pa.schema(
        [
            pa.field("flipped", pa.string()),
            pa.field("both", pa.int64()),
            pa.field("floats", pa.float64(), nullable=False),
            pa.field("many", pa.struct([("member0", pa.string()), ("member1", pa.bool_())])),
            pa.field("dec", pa.decimal128(7, 1), nullable=False),
            pa.field("ms", pa.timestamp("ms", "UTC"), nullable=False),
            pa.field("day", pa.int32(), nullable=False),
            pa.field("kind", pa.string(), nullable=False),
            pa.field("id", pa.string(), nullable=False),
            pa.field("sub", sub, nullable=False),
            pa.field("again", sub),
            pa.field("far", sub, nullable=False),
        ]
    )


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"type":"string"}', '{"type":"record","name":"r","fields":[{"name":"a","type":"x.Y"}]}']
)
def test_text_that_is_no_record_schema_is_corrupt(text: str) -> None:
    with pytest.raises(Corrupt):
        from_avro(text)
