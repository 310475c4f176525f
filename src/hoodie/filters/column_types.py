"""Arrow types of what a condition casts to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from sqlglot import exp

_PLAIN_DECIMALS: Final = 6
_MAX_DIGITS: Final = 38


def prints_as_spark(data_type: pa.DataType) -> bool:
    """Whether Arrow's text of a value is the text Spark gives."""
    types = pa.types
    return bool(
        types.is_integer(data_type)
        or types.is_string(data_type)
        or types.is_boolean(data_type)
        or types.is_date(data_type)
        or (types.is_decimal(data_type) and data_type.scale <= _PLAIN_DECIMALS)  # beyond, Arrow writes exponents
    )


def arrow_type(to: exp.DataType) -> pa.DataType | None:
    """The type that CAST names; None if it is not known here."""
    if to.this == exp.DType.DECIMAL:
        digits = [str(part.this.this) for part in to.expressions] or ["10"]
        precision, scale = (int(one) if one.isdecimal() else _MAX_DIGITS + 1 for one in [*digits, "0"][:2])
        return pa.decimal128(precision, scale) if 1 <= precision <= _MAX_DIGITS and scale <= precision else None
    return _SQL_TYPES.get(to.this)


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
    exp.DType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    exp.DType.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    exp.DType.TIMESTAMPNTZ: pa.timestamp("us"),
}
