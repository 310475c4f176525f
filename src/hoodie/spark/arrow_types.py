"""Spark types of Arrow schemas, and which stored types Spark's own parquet reader can give as which others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of rows in `schema`: timestamps without a zone are TIMESTAMP_NTZ, comments are kept."""
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415
    from pyspark.sql.types import StructField, StructType  # noqa: PLC0415

    return StructType(
        [StructField(field.name, from_arrow_type(field.type), field.nullable, _comment(field)) for field in schema]
    )


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """The Arrow types Spark expects from a worker that yields rows of `schema`."""
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415

    return pa.schema(
        [pa.field(field.name, to_arrow_type(field.dataType, timezone="UTC"), field.nullable) for field in schema.fields]
    )


def is_natively_readable(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark's vectorised reader gives a parquet column of Arrow type `stored` as `wanted`.

    Besides equal types these are the widenings that Spark 4 has, a part of those Hudi allows: int to long, double or
    decimal, float to double, a decimal to one with more digits on either side.
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
    if pa.types.is_float32(stored):
        return bool(pa.types.is_float64(wanted))
    if pa.types.is_decimal(stored) and pa.types.is_decimal(wanted):
        more_scale = wanted.scale - stored.scale
        return bool(more_scale >= 0 and wanted.precision - stored.precision >= more_scale)
    return False


def _comment(field: pa.Field) -> dict[str, Any] | None:
    comment = (field.metadata or {}).get(b"comment")
    return None if comment is None else {"comment": comment.decode()}
