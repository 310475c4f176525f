"""Arrow types of what a condition casts to and computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from sqlglot import exp

from hoodie.filters.literals import decimal_of
from hoodie.filters.tree import Node

_MAX_DIGITS: Final = 76


def prints_as_spark(data_type: pa.DataType) -> bool:
    """Whether Arrow's text of a value is the text Spark gives."""
    types = pa.types
    return bool(
        types.is_integer(data_type)
        or types.is_string(data_type)
        or types.is_boolean(data_type)
        or types.is_date(data_type)
        or types.is_decimal(data_type)
    )


def arrow_type(to: exp.DataType) -> pa.DataType | None:
    """The type that CAST names; None if it is not known here."""
    if to.this == exp.DType.DECIMAL:
        digits = [int(str(part.this.this)) for part in to.expressions]
        return pa.decimal128(*(digits or [10, 0]))
    if to.this == exp.DType.TIMESTAMPTZ:
        return pa.timestamp("us", tz="UTC")
    return _SQL_TYPES.get(to.this)


def exact_types(node: Node, parts: pa.DataType) -> tuple[pa.DataType, pa.DataType] | None:
    """Types of two decimals (of their parts, wider if needed) and of their sum or product, which has all digits; None
    if those are too many.
    """
    digits, scale = parts.precision, parts.scale
    is_product = isinstance(node, exp.Mul)
    all_digits, decimals = (2 * digits + 1, 2 * scale) if is_product else (digits + 1, scale)
    if all_digits > _MAX_DIGITS:
        return None
    result = decimal_of(all_digits, decimals)
    return (pa.decimal256(digits, scale) if pa.types.is_decimal256(result) else parts), result


_SQL_TYPES: Mapping[exp.DType, pa.DataType] = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.VARCHAR: pa.string(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMP: pa.timestamp("us"),
    exp.DType.TIMESTAMPNTZ: pa.timestamp("us"),
}
