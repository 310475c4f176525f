"""Schemas that let a few bytes stand for any number of values are refused."""

import io
import json
from typing import Any

import fastavro
import pytest

from hoodie.errors import Corrupt
from hoodie.spec import parse_container, schema, schema_names
from hoodie.spec.avro_container import MAGIC, encode_long
from hoodie.spec.avro_limits import ensure_values_take_bytes


def record(*types: Any) -> dict[str, Any]:
    fields = [{"name": f"f{at}", "type": one} for at, one in enumerate(types)]
    return {"type": "record", "name": "r", "fields": fields}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


EMPTY = {"type": "record", "name": "e", "fields": []}


@pytest.mark.parametrize("name", schema_names())
def test_schemas_of_hudi_are_fine(name):
    ensure_values_take_bytes(json.loads(schema(name).text))


@pytest.mark.parametrize(
    "given",
    [
        record("int", array("string")),
        record(array(["null", "int"])),
        record({"type": "map", "values": "null"}),
        record({"type": "fixed", "name": "x", "size": 2}, array("x")),
        record({"type": {"type": "int", "logicalType": "date"}}),
        record({"type": "enum", "name": "n", "symbols": ["a"]}, array("n")),
    ],
)
def test_values_with_bytes_are_fine(given):
    ensure_values_take_bytes(given)


def chain(length: int) -> dict[str, Any]:
    """Named types of which each uses the one before."""
    links = [{"type": "record", "name": "t0", "fields": [{"name": "x", "type": "int"}]}]
    for at in range(1, length):
        fields = [{"name": "x", "type": f"t{at - 1}"}]
        links.append({"type": "record", "name": f"t{at}", "fields": fields})
    return record(*links)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (record("int", ["null", "r"]), "contains itself"),
        (record("int", array({"type": "map", "values": "r"})), "contains itself"),
        (
            record("int", {"type": "fixed", "name": "a.x", "size": 1}, {"type": "fixed", "name": "b.x", "size": 1}),
            "two",
        ),
        (chain(100), "deeper"),
    ],
    ids=["itself", "itself-deep", "two-of-a-name", "chain"],
)
def test_values_as_deep_as_the_bytes_like_are_refused(given, what):
    with pytest.raises(ValueError, match=what):
        ensure_values_take_bytes(given)


def test_a_chain_of_types_as_long_as_any_of_hudi_is_fine():
    ensure_values_take_bytes(chain(20))


@pytest.mark.parametrize(
    "given",
    [
        EMPTY,
        record("null", "int"),
        record("int", EMPTY),
        record("null"),
        "null",
        record("int", array("null")),
        record("int", array(EMPTY)),
        record("int", array({"type": "fixed", "name": "x", "size": 0})),
        record("int", {"type": "fixed", "name": "ns.x", "size": 0}, array("x")),
        record("int", ["null", array("null")]),
        record("int", {"type": "map", "values": array("null")}),
        record("int", array(record("null") | {"name": "inner"})),
        record("int", array({"type": "null"})),
    ],
)
def test_values_without_bytes_are_refused(given):
    with pytest.raises(ValueError, match="no bytes"):
        ensure_values_take_bytes(given)


def container(given: Any, block: bytes, count: int) -> bytes:
    text = json.dumps(given).encode()
    name = b"avro.schema"
    head = MAGIC + encode_long(1) + encode_long(len(name)) + name + encode_long(len(text)) + text + encode_long(0)
    return head + bytes(16) + encode_long(count) + encode_long(len(block)) + block + bytes(16)


@pytest.mark.parametrize(
    "data",
    [container(EMPTY, b"", 2**60), container(record("int", array("null")), b"\2" + encode_long(2**60) + b"\0", 1)],
    ids=["records", "items"],
)
def test_a_container_of_nothing_is_refused_at_once(data):
    with pytest.raises(Corrupt, match="no bytes"):
        parse_container(data, "p")


def test_a_container_of_two_records_is_refused():
    buffer = io.BytesIO()
    fastavro.writer(buffer, record("int"), [{"f0": 1}, {"f0": 2}])
    with pytest.raises(Corrupt, match="one record"):
        parse_container(buffer.getvalue(), "p")
