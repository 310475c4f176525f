"""Partition columns on read: what the path of a file says about its rows, as Hudi 1.2's snapshot reads understand it.

1. Values come from the path, typed by the table schema; `__HIVE_DEFAULT_PARTITION__` is NULL whatever the type.
2. Not from the path: fields of the timestamp key generator (the path holds a format of them) and fields inside structs.
   Those are read from the file; the column of a TIMESTAMP table as text.
3. A value the path cannot give back is left out, and the file has it: a path that does not split into one segment per
   field, text that is no value of the type. (Hudi 1.2 fails on the first, and on the second fails or gives NULL.)
4. Paths are unescaped whether or not the table encodes them, as Spark does; only a single field whose value spans
   several folders is taken as it stands.

The rules with examples, and what each Hudi release does: docs/format/partition-paths.md, "Reading".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.records.partition_paths import DEFAULT_PARTITION
from hoodie.records.schema import is_text

_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")


class PartitionLayout(Protocol):
    """What must be known of a table: its properties have these (`hoodie.spec.TableConfig` does)."""

    @property
    def partition_fields(self) -> tuple[str, ...]: ...

    @property
    def partition_field_types(self) -> tuple[str, ...]: ...

    @property
    def keygen_type(self) -> str: ...

    @property
    def slash_dates(self) -> bool: ...

    @property
    def drop_partition_columns(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class ReadLayout:
    """The same read once, for who asks about many paths: properties are parsed each time they are asked for."""

    partition_fields: tuple[str, ...]
    partition_field_types: tuple[str, ...]
    keygen_type: str
    slash_dates: bool
    drop_partition_columns: bool


def read_layout(layout: PartitionLayout) -> ReadLayout:
    """What a layout says now."""
    return ReadLayout(
        layout.partition_fields,
        layout.partition_field_types,
        layout.keygen_type,
        layout.slash_dates,
        layout.drop_partition_columns,
    )


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """How a table's columns are read: the schema of the result, and those of its columns that the path gives."""

    schema: pa.Schema
    from_path: frozenset[str]


def partition_columns(table_schema: pa.Schema, layout: PartitionLayout) -> PartitionColumns:
    """The result schema of a snapshot read of a table whose own schema is `table_schema`.

    Order and types are the table's; the column of a TIMESTAMP table becomes text; partition columns that are not in
    the schema (dropped from the files) follow at the end, as text.
    """
    times = time_fields(layout)
    fields = [
        pa.field(field.name, pa.string(), metadata=field.metadata)
        if layout.keygen_type == "TIMESTAMP" and field.name in times
        else field
        for field in table_schema
    ]
    plain = [name for name in layout.partition_fields if "." not in name]
    dropped = [pa.field(name, pa.string()) for name in plain if table_schema.get_field_index(name) < 0]
    from_path = frozenset(name for name in plain if name not in times) | {field.name for field in dropped}
    return PartitionColumns(pa.schema([*fields, *dropped], metadata=table_schema.metadata), from_path)


def time_fields(layout: PartitionLayout) -> frozenset[str]:
    """The partition fields whose path segment is a formatted time, as far as the table says.

    Version 6 stores no types for a CUSTOM table: any of its fields may be one, so all are read from the file.
    """
    untyped = not any(layout.partition_field_types)
    if layout.keygen_type == "TIMESTAMP" or (layout.keygen_type == "CUSTOM" and untyped):
        return frozenset(layout.partition_fields)
    pairs = zip(layout.partition_fields, layout.partition_field_types, strict=False)
    return frozenset(name for name, kind in pairs if kind.upper() == "TIMESTAMP")


def partition_values(path: str, types: pa.Schema, layout: PartitionLayout, *, unescape: bool = True) -> dict[str, Any]:
    """The values of partition columns in `path`, for the columns of `types` that it can give; None is NULL.

    Columns that are left out are to be read from the file. `unescape=False` keeps `%XX` as it is, which is what Hudi
    1.x incremental reads show.

    Raises:
        Invalid: a column that was dropped from the files cannot be had from the path.
    """
    texts = _segment_texts(path, layout.partition_fields, unescape)
    values: dict[str, Any] = {}
    for name in layout.partition_fields:
        position = types.get_field_index(name)
        if position < 0 or (name in time_fields(layout) and not layout.drop_partition_columns):
            continue
        kind = types.field(position).type
        if name in texts and _reads(texts[name], kind, layout, values, name):
            continue
        if layout.drop_partition_columns:
            raise Invalid(
                f"Partition path {path!r} does not tell the value of {name!r}, and the column is not in the files",
                remedy="Read other columns",
                path=path,
                column=name,
            )
    return values


def unescaped(text: str) -> str:
    """`text` with every `%XX` as the character it stands for; a `%` without two hex digits stays."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


def _segment_texts(path: str, fields: tuple[str, ...], unescape: bool) -> dict[str, str | None]:
    """The text of each field, None for the default partition; empty when the path does not split into fields."""
    segments = path.split("/") if path else []
    if not fields or not segments:
        return {}
    if len(segments) == len(fields):
        texts = [segment.partition("=")[2] if "=" in segment else segment for segment in segments]
        return {
            name: None if text == DEFAULT_PARTITION else (unescaped(text) if unescape else text)
            for name, text in zip(fields, texts, strict=True)
        }
    if len(fields) == 1:
        return {fields[0]: path.removeprefix(f"{fields[0]}=")}
    return _marked_texts(segments, fields)


def _marked_texts(segments: list[str], fields: tuple[str, ...]) -> dict[str, str | None]:
    """Values that span folders, told apart by the `field=` each begins with."""
    texts: dict[str, str | None] = {}
    for segment in segments:
        if len(texts) < len(fields) and segment.startswith(f"{fields[len(texts)]}="):
            texts[fields[len(texts)]] = segment.partition("=")[2]
        elif texts:
            last = fields[len(texts) - 1]
            texts[last] = f"{texts[last]}/{segment}"
        else:
            return {}
    if len(texts) < len(fields):
        return {}
    return {name: None if text == DEFAULT_PARTITION else text for name, text in texts.items()}


def _reads(text: str | None, kind: pa.DataType, layout: PartitionLayout, values: dict[str, Any], name: str) -> bool:
    """Put the value of `text` into `values`; False when it is no value of the type."""
    if text is None:
        values[name] = None
        return True
    try:
        values[name] = parse_partition_text(text, kind, slash_dates=layout.slash_dates)
    except ValueError:
        return False
    return True


def parse_partition_text(text: str, kind: pa.DataType, *, slash_dates: bool = False) -> Any:
    """The value of a type that `text`, from a path, stands for. `slash_dates`: dates have `/` in them.

    Raises:
        ValueError: it is none, or values of this type are not read from paths.
    """
    parse = _parser(kind)
    if parse is None:
        raise ValueError(text)
    try:
        return parse(text.replace("/", "-") if slash_dates and pa.types.is_date(kind) else text)
    except InvalidOperation as error:
        raise ValueError(text) from error


def _parser(kind: pa.DataType) -> Callable[[str], Any] | None:
    types = pa.types
    if is_text(kind):
        return str
    if types.is_boolean(kind):
        return _boolean
    if types.is_integer(kind):
        return lambda text: _integer(text, kind)
    if types.is_floating(kind):
        return float
    if types.is_decimal(kind):
        return lambda text: _decimal(text, kind)
    if types.is_date(kind):
        return date.fromisoformat
    if types.is_timestamp(kind):
        return _timestamp
    return None


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _integer(text: str, kind: pa.DataType) -> int:
    if not re.fullmatch(r"[+-]?\d+", text):
        raise ValueError(text)
    number = int(text)
    if not -(2 ** (kind.bit_width - 1)) <= number < 2 ** (kind.bit_width - 1):
        raise ValueError(text)
    return number


def _decimal(text: str, kind: pa.DataType) -> Decimal:
    number = Decimal(text)
    fitted = number.quantize(Decimal(1).scaleb(-kind.scale))
    if fitted != number or len(fitted.as_tuple().digits) > kind.precision:
        raise ValueError(text)
    return fitted


def _timestamp(text: str) -> datetime:
    """`java.sql.Timestamp` text, in UTC. The raw micros that SIMPLE paths usually hold are no such text."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d{1,6})?", text):
        raise ValueError(text)
    main, _, fraction = text.partition(".")
    return datetime.fromisoformat(f"{main}.{fraction.ljust(6, '0')}")
