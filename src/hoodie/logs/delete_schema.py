"""The Avro schema of delete blocks, and which of its wrappers stands for which type of ordering value.

1. The schema is not in the block: readers know it. Records name the branch of a union by number, so the order of the
   wrappers is part of the format.
2. Releases from 1.0 on know one wrapper more, `ArrayWrapper`, as the last branch: the superset reads both. Within an
   array there is one more again, for dates.
3. A decimal has 30 digits, 15 of them after the point, whatever the column's own type is.
4. Logical types of dates and timestamps are ours: the bytes are the same, and rows come in the types of columns.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa

from hoodie.records import from_avro

_NAMESPACE: Final = "org.apache.hudi.avro.model"

_DATE: Final = {"type": "int", "logicalType": "date"}
_DECIMAL: Final = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}
_TIMESTAMP: Final = {"type": "long", "logicalType": "timestamp-micros"}

# Name and Avro type of the value, in the order of the union's branches after null.
_WRAPPERS: Final[tuple[tuple[str, Any], ...]] = (
    ("BooleanWrapper", "boolean"),
    ("IntWrapper", "int"),
    ("LongWrapper", "long"),
    ("FloatWrapper", "float"),
    ("DoubleWrapper", "double"),
    ("BytesWrapper", "bytes"),
    ("StringWrapper", "string"),
    ("DateWrapper", _DATE),
    ("DecimalWrapper", _DECIMAL),
    ("TimeMicrosWrapper", "long"),
    ("TimestampMicrosWrapper", _TIMESTAMP),
)

INT_WRAPPER: Final = 1
"""Place among the wrappers of the one whose value 0 means that there is none."""

ARRAY_WRAPPER: Final = len(_WRAPPERS)
"""Place of the wrapper that holds the values of several fields."""


def _record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields]}


def _schema() -> str:
    wrappers = [_record(name, ("value", kind)) for name, kind in _WRAPPERS]
    in_array = [*(name for name, _ in _WRAPPERS), _record("LocalDateWrapper", ("value", _DATE))]
    array = _record("ArrayWrapper", ("wrappedValues", ["null", {"type": "array", "items": ["null", *in_array]}]))
    delete = _record(
        "HoodieDeleteRecord",
        ("recordKey", ["null", "string"]),
        ("partitionPath", ["null", "string"]),
        ("orderingVal", ["null", *wrappers, array]),
    )
    deletes = _record("HoodieDeleteRecordList", ("deleteRecordList", {"type": "array", "items": delete}))
    return json.dumps({**deletes, "namespace": _NAMESPACE})


DELETE_LIST_SCHEMA: Final = _schema()
"""`HoodieDeleteRecordList` as releases from 1.0 on have it, JSON text."""

DELETE_LIST: Final[pa.ListType] = from_avro(DELETE_LIST_SCHEMA).field(0).type
DELETE: Final[pa.StructType] = DELETE_LIST.value_type
ORDERING: Final[pa.StructType] = DELETE.field(2).type
"""An ordering value in Arrow: a struct with a member for each wrapper, of which one is not null."""

WRAPPED_LIST: Final[pa.ListType] = ORDERING.field(ARRAY_WRAPPER).type.field(0).type
WRAPPED: Final[pa.StructType] = WRAPPED_LIST.value_type
"""The same for a value in an array."""


def wrapper_of(data_type: pa.DataType) -> int | None:
    """Place of the wrapper that values of an Arrow type are written in; None for a type that has none."""
    if pa.types.is_decimal128(data_type):
        return 8
    if pa.types.is_timestamp(data_type):
        return 10
    places = (at for at in range(ARRAY_WRAPPER) if ORDERING.field(at).type.field(0).type.equals(data_type))
    return next(places, None)
