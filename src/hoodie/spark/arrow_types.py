"""Types of Spark and of Arrow, each as the other's, and what Spark's own parquet reader can widen.

PySpark has such functions, too; they are internal and differ from version to version, and time zones depend on the
session there. Here timestamps with a zone are UTC, and types a table cannot hold have no translation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie.errors import Unsupported
from hoodie.records.avro import decimal_bytes

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_COMMENT = "comment"

_ARROW_OF: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "time": pa.time64("ns"),
    "void": pa.null(),
}

_SPARK_OF: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "BooleanType"),
    (pa.types.is_int8, "ByteType"),
    (pa.types.is_int16, "ShortType"),
    (pa.types.is_int32, "IntegerType"),
    (pa.types.is_int64, "LongType"),
    (pa.types.is_float32, "FloatType"),
    (pa.types.is_float64, "DoubleType"),
    (pa.types.is_string, "StringType"),
    (pa.types.is_large_string, "StringType"),
    (pa.types.is_binary, "BinaryType"),
    (pa.types.is_large_binary, "BinaryType"),
    (pa.types.is_fixed_size_binary, "BinaryType"),
    (pa.types.is_date32, "DateType"),
    (pa.types.is_time, "TimeType"),
    (pa.types.is_null, "NullType"),
)


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of rows in `schema`: timestamps without a zone are TIMESTAMP_NTZ, comments are kept.

    Raises:
        Unsupported: Spark has no such type.
    """
    from pyspark.sql.types import StructField, StructType  # noqa: PLC0415 - not every session and worker has to load it

    return StructType(
        [StructField(field.name, spark_type(field.type), field.nullable, _metadata(field)) for field in schema]
    )


def spark_type(data_type: pa.DataType) -> DataType:
    """The Spark type of an Arrow type.

    Raises:
        Unsupported: Spark has no such type.
    """
    from pyspark.sql import types  # noqa: PLC0415 - not every session and worker has to load it

    if pa.types.is_struct(data_type):
        return spark_schema(pa.schema(list(data_type)))
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return types.ArrayType(spark_type(data_type.value_type), data_type.value_field.nullable)
    if pa.types.is_map(data_type):
        keys, items = spark_type(data_type.key_type), spark_type(data_type.item_type)
        return types.MapType(keys, items, data_type.item_field.nullable)
    if pa.types.is_decimal(data_type):
        return types.DecimalType(data_type.precision, data_type.scale)
    if pa.types.is_timestamp(data_type):
        return types.TimestampNTZType() if data_type.tz is None else types.TimestampType()
    name = next((name for fits, name in _SPARK_OF if fits(data_type)), None)
    if name is None or not hasattr(types, name):
        raise Unsupported(f"Spark has no type for Arrow's {data_type}", remedy="Read the table with hoodie.Table")
    return getattr(types, name)()  # type: ignore[no-any-return]


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of rows in `schema`, without metadata but for comments: also what workers must yield for it.

    Raises:
        Unsupported: a column has a type that means nothing outside Spark. The error names the column.
    """
    return pa.schema([_arrow_field(field, field.name) for field in schema.fields])


def is_natively_readable(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark's vectorised reader gives a parquet column of Arrow type `stored` as `wanted`, and filters it so.

    Besides equal types these are some of the widenings that Spark 4 has, a part of those Hudi allows: int to long or
    double, a decimal to one with more digits on either side. Not float to double, which is another number to Hudi
    (`records.align`); nor a decimal to one that takes more bytes, by which Spark filters as if files had these.
    """
    if stored.equals(wanted):
        return True
    if pa.types.is_struct(wanted):
        return pa.types.is_struct(stored) and all(
            is_natively_readable(stored.field(child.name).type, child.type)
            for child in wanted
            if stored.get_field_index(child.name) >= 0
        )
    if pa.types.is_list(wanted):
        return pa.types.is_list(stored) and is_natively_readable(stored.value_type, wanted.value_type)
    if pa.types.is_map(wanted):
        return (
            pa.types.is_map(stored)
            and is_natively_readable(stored.key_type, wanted.key_type)
            and is_natively_readable(stored.item_type, wanted.item_type)
        )
    if pa.types.is_timestamp(wanted):
        return pa.types.is_timestamp(stored) and (stored.tz is None) == (wanted.tz is None)
    return _is_widened(stored, wanted)


def _is_widened(stored: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_integer(stored) and stored.bit_width <= 32:
        return bool(pa.types.is_int32(wanted) or pa.types.is_int64(wanted) or pa.types.is_float64(wanted))
    if pa.types.is_decimal(stored) and pa.types.is_decimal(wanted):
        more_scale = wanted.scale - stored.scale
        if more_scale == 0 and _stored_as(stored) != _stored_as(wanted):
            return False
        return bool(more_scale >= 0 and wanted.precision - stored.precision >= more_scale)
    return False


def _stored_as(decimal: pa.Decimal128Type) -> tuple[int, int]:
    """What a decimal may be in a parquet file: a number of 4 or 8 bytes, or fixed bytes."""
    digits = decimal.precision
    return decimal_bytes(digits), 4 if digits <= 9 else 8 if digits <= 18 else 16


def _arrow_field(field: Any, column: str) -> pa.Field:
    """`field` is a `StructField`; `column` names the outermost column for the error."""
    comment = (field.metadata or {}).get(_COMMENT)
    metadata = {_COMMENT: str(comment)} if comment else None
    return pa.field(field.name, _arrow_type(field.dataType, column), field.nullable, metadata)


def _arrow_type(data_type: Any, column: str) -> pa.DataType:
    kind = data_type.typeName().partition("(")[0]
    match kind:
        case "array":
            return pa.list_(pa.field("element", _arrow_type(data_type.elementType, column), data_type.containsNull))
        case "map":
            keys = pa.field("key", _arrow_type(data_type.keyType, column), nullable=False)
            items = pa.field("value", _arrow_type(data_type.valueType, column), data_type.valueContainsNull)
            return pa.map_(keys, items)
        case "struct":
            return pa.struct([_arrow_field(child, column) for child in data_type.fields])
        case "decimal":
            return pa.decimal128(data_type.precision, data_type.scale)
    if kind not in _ARROW_OF:
        raise Unsupported(
            f"Column {column!r} has type {data_type.simpleString()}, which a Hudi table cannot hold",
            remedy="Cast it, for example to string, before writing",
            column=column,
        )
    return _ARROW_OF[kind]


def _metadata(field: pa.Field) -> dict[str, Any] | None:
    comment = (field.metadata or {}).get(_COMMENT.encode())
    return None if comment is None else {_COMMENT: comment.decode()}
