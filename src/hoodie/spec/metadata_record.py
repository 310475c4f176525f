"""The Avro schema of the records of a metadata table, as Hudi 0.15 and 1.x have it.

1. Readers go by the schema in each file; this one is for what is written here.
2. Later releases added members to the union of values, to statistics and to the record; nothing was taken away.

Documentation strings are left out: they mean nothing to readers.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from hoodie.spec.avro_schemas import AvroGeneration

_NAMESPACE = "org.apache.hudi.avro.model"
_META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
_TEXT = {"type": "string", "avro.java.string": "String"}
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}
_WRAPPERS: dict[str, Any] = {
    "BooleanWrapper": "boolean",
    "IntWrapper": "int",
    "LongWrapper": "long",
    "FloatWrapper": "float",
    "DoubleWrapper": "double",
    "BytesWrapper": "bytes",
    "StringWrapper": _TEXT,
    "DateWrapper": "int",
    "DecimalWrapper": _DECIMAL,
    "TimeMicrosWrapper": {"type": "long", "logicalType": "time-micros"},
    "TimestampMicrosWrapper": "long",
}


@functools.cache
def metadata_record_schema(generation: AvroGeneration = "1.x") -> str:
    """JSON text of the schema, Hudi's five meta columns in front."""
    is_new = generation == "1.x"
    fields = [
        *(_optional(name, "string") for name in _META_COLUMNS),
        {"name": "key", "type": _TEXT},
        {"name": "type", "type": "int"},
        {"name": "filesystemMetadata", "type": ["null", {**_map(_file_info()), "avro.java.string": "String"}]},
        _optional("BloomFilterMetadata", _bloom_filter()),
        _optional("ColumnStatsMetadata", _column_stats(is_new)),
        _optional("recordIndexMetadata", _location(is_new)),
    ]
    if is_new:
        fields.append(_optional("SecondaryIndexMetadata", _record("HoodieSecondaryIndexInfo", _flag("isDeleted"))))
    return json.dumps({**_record("HoodieMetadataRecord", *fields), "namespace": _NAMESPACE}, separators=(",", ":"))


def _column_stats(is_new: bool) -> dict[str, Any]:
    wrappers: list[Any] = [_wrapper(name, kind) for name, kind in _WRAPPERS.items()]
    names: list[Any] = list(_WRAPPERS)
    if is_new:
        items = ["null", *names, "LocalDateWrapper"]
        wrapped = {"name": "wrappedValues", "type": ["null", {"type": "array", "items": items}], "default": None}
        wrappers += [_wrapper("LocalDateWrapper", "int"), _record("ArrayWrapper", wrapped)]
        names += ["LocalDateWrapper", "ArrayWrapper"]
    fields = [
        _optional("fileName", _TEXT),
        _optional("columnName", _TEXT),
        {"name": "minValue", "type": ["null", *wrappers], "default": None},
        {"name": "maxValue", "type": ["null", *names], "default": None},
        *(_optional(name, "long") for name in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")),
        _flag("isDeleted"),
    ]
    if is_new:
        value_type = _record(
            "HoodieValueTypeInfo", {"name": "typeOrdinal", "type": "int"}, _optional("additionalInfo", _TEXT)
        )
        fields += [{**_flag("isTightBound"), "default": False}, _optional("valueType", value_type)]
    return _record("HoodieMetadataColumnStats", *fields)


def _location(is_new: bool) -> dict[str, Any]:
    fields = [
        _optional("partitionName", _TEXT),
        _optional("fileIdHighBits", "long"),
        _optional("fileIdLowBits", "long"),
        _optional("fileIndex", "int"),
        _optional("fileId", _TEXT),
        _optional("instantTime", "long"),
        {"name": "fileIdEncoding", "type": "int", "default": 0},
    ]
    return _record("HoodieRecordIndexInfo", *fields, *([_optional("position", "long")] if is_new else []))


def _bloom_filter() -> dict[str, Any]:
    texts = ({"name": "type", "type": _TEXT}, {"name": "timestamp", "type": _TEXT})
    return _record("HoodieMetadataBloomFilter", *texts, {"name": "bloomFilter", "type": "bytes"}, _flag("isDeleted"))


def _file_info() -> dict[str, Any]:
    return _record("HoodieMetadataFileInfo", {"name": "size", "type": "long"}, _flag("isDeleted"))


def _wrapper(name: str, kind: Any) -> dict[str, Any]:
    return _record(name, {"name": "value", "type": kind})


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _map(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "map", "values": values}


def _optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def _flag(name: str) -> dict[str, Any]:
    return {"name": name, "type": "boolean"}
