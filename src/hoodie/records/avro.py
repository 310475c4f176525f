"""A table's schema as Avro JSON, letter for letter as Spark's Hudi writes it, and back.

Hudi keeps the schema of a table in each commit (`schema` of the extra metadata, without meta columns) and in each
base file (`parquet.avro.schema`, with them). Readers compare these texts and parse them, so:

1. `to_avro` writes compact JSON with Avro's own member order: type, name, namespace, doc, fields | size, logicalType
   ...
2. A nullable column is the union [null, T] with default null; a required one is T with no default.
3. A nested record is named after its field; its namespace is the full name of the record around it, and a namespace
   is written only where it differs from the one around. List items and map values do not add a level.
4. A decimal is a `fixed` of the fewest bytes, in the namespace of its own field.
5. Meta columns carry an empty `doc`; other columns a `doc` only when they have a comment.

`from_avro` also takes what other writers produce: bytes decimals, enums, named references, [T, null] order, other
logical types and unions (`avro_nodes.py` says what becomes of them).
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.records.avro_nodes import parse_nodes, parse_nodes_of
from hoodie.records.schema import comment_of, is_list, is_meta

_LEAF_TO_AVRO: Final[dict[pa.DataType, Any]] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us", tz="UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("ms", tz="UTC"): {"type": "long", "logicalType": "timestamp-millis"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
    pa.timestamp("ms"): {"type": "long", "logicalType": "local-timestamp-millis"},
}

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def to_avro(schema: pa.Schema, table_name: str) -> str:
    """Avro JSON of a storable schema (`schema.storable`), as Hudi writes it for the table.

    Meta columns appear when `schema` has them: with them the text is the one of base file footers, without them that
    of commits.

    Raises:
        Invalid: a column name is not an Avro name (letters, digits, underscore, not starting with a digit).
    """
    name = avro_name(table_name)
    record = _record(list(schema), f"{name}_record", f"hoodie.{name}", enclosing="", path="")
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def from_avro(text: str, path: str = "") -> pa.Schema:
    """Arrow schema of an Avro record schema, meta columns included if it has them. `path`: the file it was read from.

    Raises:
        Corrupt: the text is not an Avro record schema.
        Unsupported: a type contains itself, or is a VECTOR, VARIANT or BLOB.
    """
    record = parse_nodes_of(text, path) if path else parse_nodes(text)
    return pa.schema(list(record.arrow))


def avro_name(table_name: str) -> str:
    """`table_name` with every character Avro does not allow in names replaced by two underscores, as Hudi does."""
    masked = re.sub(r"\A[^A-Za-z_]", "__", table_name)
    return re.sub(r"[^A-Za-z0-9_]", "__", masked)


def decimal_bytes(precision: int) -> int:
    """Fewest bytes whose two's complement holds every decimal of `precision` digits."""
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8


def _meta_field(name: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", "string"], "doc": "", "default": None}


def _record(fields: list[pa.Field], name: str, namespace: str, *, enclosing: str, path: str) -> dict[str, Any]:
    out: dict[str, Any] = {"type": "record", "name": name}
    if namespace != enclosing:
        out["namespace"] = namespace
    inner = f"{namespace}.{name}" if namespace else name
    out["fields"] = [_field(field, inner, namespace, f"{path}{field.name}") for field in fields]
    return out


def _field(field: pa.Field, namespace: str, enclosing: str, path: str) -> dict[str, Any]:
    if _NAME.match(field.name) is None:
        raise Invalid(
            f"Column `{path}` has a name that Hudi's schemas do not allow",
            remedy="Rename it: letters, digits and underscore, not starting with a digit",
            column=path,
        )
    if is_meta(path):
        return _meta_field(field.name)
    out: dict[str, Any] = {"name": field.name, "type": _optional(field, field.name, namespace, enclosing, path)}
    comment = comment_of(field)
    if comment is not None:
        out["doc"] = comment
    if field.nullable:
        out["default"] = None
    return out


def _optional(field: pa.Field, name: str, namespace: str, enclosing: str, path: str) -> Any:
    avro = _type(field.type, name, namespace, enclosing, path)
    return ["null", avro] if field.nullable else avro


def _type(data_type: pa.DataType, name: str, namespace: str, enclosing: str, path: str) -> Any:
    """`name` and `namespace` are those a record would get here; `enclosing` is the namespace of the record around."""
    leaf = _LEAF_TO_AVRO.get(data_type)
    if leaf is not None:
        return leaf
    types = pa.types
    if types.is_decimal128(data_type):
        return {
            "type": "fixed",
            "name": "fixed",
            "namespace": f"{namespace}.{name}",
            "size": decimal_bytes(data_type.precision),
            "logicalType": "decimal",
            "precision": data_type.precision,
            "scale": data_type.scale,
        }
    if types.is_struct(data_type):
        return _record(list(data_type), name, namespace, enclosing=enclosing, path=f"{path}.")
    if types.is_map(data_type):
        return {"type": "map", "values": _optional(data_type.item_field, name, namespace, enclosing, f"{path}.value")}
    if is_list(data_type):
        return {
            "type": "array",
            "items": _optional(data_type.value_field, name, namespace, enclosing, f"{path}.element"),
        }
    raise Invalid(
        f"Column `{path}` has the type {data_type}, which is not a stored type",
        remedy="Apply `storable` first",
        column=path,
    )
