"""Key generators: from a batch of rows to their record keys and partition paths.

1. A `KeyGenerator` is a value: built from `KeyOptions`, picklable, without state; the same batch gives the same text.
2. `KeyKind` decides the forms, everything else is an option. Options that contradict the kind are refused when made.
3. Per-row work is Arrow kernels; Python sees distinct partition values only.

It does not know table versions, table properties or config: `key_options` takes plain texts as they stand in either.
Format: docs/format/record-keys.md, docs/format/partition-paths.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from hoodie.errors import Invalid, Unsupported
from hoodie.records.columns import column
from hoodie.records.java_text import TextForm, ensure_text, java_text
from hoodie.records.partition_paths import (
    PathStyle,
    SegmentColumn,
    encoded_column,
    joined_paths,
    simple_segments,
    timestamp_segments,
)
from hoodie.records.record_keys import RowOrigin, automatic_keys, named_keys, plain_keys
from hoodie.records.timestamp_keys import TimestampOptions, parse_timestamp_options


class KeyKind(Enum):
    """Hudi's key generators, named as `hoodie.table.keygenerator.type` names them."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"
    NON_PARTITION = "NON_PARTITION"
    GLOBAL_DELETE = "GLOBAL_DELETE"

    @property
    def has_partitions(self) -> bool:
        return self not in (KeyKind.NON_PARTITION, KeyKind.GLOBAL_DELETE)


@dataclass(frozen=True, slots=True)
class KeyOptions:
    """What a table's keys look like. All of it is behaviour: another value names other rows or other folders.

    record_fields: key columns in order, dotted inside structs; none means automatic keys.
    partition_fields: partition columns in order.
    timestamp_fields: those of `partition_fields` that go through `timestamp` (CUSTOM only; TIMESTAMP takes all).
    single_key_with_name: COMPLEX with one key field writes `id:1` (True: version 9 always) or `1`.
    text: how timestamps are written, see `TextForm`; Hudi's two writers differ and a table must keep to one.
    """

    kind: KeyKind
    record_fields: tuple[str, ...] = ()
    partition_fields: tuple[str, ...] = ()
    style: PathStyle = field(default_factory=PathStyle)
    single_key_with_name: bool = True
    text: TextForm = field(default_factory=TextForm)
    timestamp_fields: frozenset[str] = frozenset()
    timestamp: TimestampOptions | None = None

    def __post_init__(self) -> None:
        _ensure_consistent(self)

    def is_timestamp(self, partition_field: str) -> bool:
        """Whether the path holds a formatted time of this field instead of its value."""
        return self.kind is KeyKind.TIMESTAMP or partition_field in self.timestamp_fields

    @property
    def keys_have_names(self) -> bool:
        """Whether record keys are written `field:value`."""
        if self.kind is KeyKind.GLOBAL_DELETE:
            return True
        if self.kind is KeyKind.COMPLEX and len(self.record_fields) == 1:
            return self.single_key_with_name
        return len(self.record_fields) > 1


@dataclass(frozen=True, slots=True)
class KeyGenerator:
    """Record keys and partition paths of batches."""

    options: KeyOptions

    def record_keys(self, batch: pa.RecordBatch, origin: RowOrigin | None = None) -> pa.Array:
        """One key per row: string, never NULL. `origin` is needed for automatic keys only.

        Raises:
            Invalid: a key column is missing, or rows have no key (names columns and count).
        """
        options = self.options
        if not options.record_fields:
            if origin is None:
                raise Invalid(
                    "Automatic record keys need the instant, task and number of the rows",
                    remedy="Set hoodie.datasource.write.recordkey.field, or insert instead of updating",
                )
            return automatic_keys(batch.num_rows, origin)
        if options.keys_have_names:
            return named_keys(batch, options.record_fields, options.text)
        return plain_keys(batch, options.record_fields[0], options.text)

    def partition_paths(self, batch: pa.RecordBatch) -> pa.Array:
        """One path per row, relative to the base path: string, never NULL; "" for a table without partitions.

        Raises:
            Invalid: a partition column is missing, or a value makes no path below the base path.
        """
        return self.partition_codes(batch).dictionary_decode()

    def partition_codes(self, batch: pa.RecordBatch) -> pa.DictionaryArray:
        """The same as `partition_paths`, as distinct paths and an int32 code per row: cheaper for grouping."""
        options = self.options
        if not options.kind.has_partitions or not options.partition_fields:
            codes = pa.repeat(pa.scalar(0, pa.int32()), batch.num_rows)
            return pa.DictionaryArray.from_arrays(codes, pa.array([""]))
        return joined_paths([self._segments(batch, name) for name in options.partition_fields])

    def _segments(self, batch: pa.RecordBatch, name: str) -> SegmentColumn:
        options = self.options
        values = column(batch, name, "partition column")
        ensure_text(values.type, name, "partition column")
        if options.timestamp is not None and options.is_timestamp(name):
            consistent = options.text.timestamps == "sql"
            return timestamp_segments(name, values, options.timestamp, options.style, consistent)
        encoded = encoded_column(values)
        return SegmentColumn(
            encoded.indices, simple_segments(name, java_text(encoded.dictionary, options.text), self._simple_style())
        )

    def _simple_style(self) -> PathStyle:
        """Slash-separated dates are not for several fields of COMPLEX, as in Hudi 1.2's Avro path."""
        style = self.options.style
        if self.options.kind is KeyKind.COMPLEX and len(self.options.partition_fields) > 1:
            return PathStyle(style.hive, style.url_encode, slash_dates=False)
        return style


def key_options(
    kind: str | None = None,
    *,
    record_fields: str | Sequence[str] = (),
    partition_fields: str | Sequence[str] = (),
    partition_types: Sequence[str] = (),
    hive_style: bool = False,
    url_encode: bool = False,
    slash_dates: bool = False,
    single_key_with_name: bool = True,
    consistent_timestamps: bool = False,
    timestamp_options: Mapping[str, str] | None = None,
) -> KeyOptions:
    """Options from texts as they stand in table properties or write options.

    `kind` is the value of `hoodie.table.keygenerator.type`; without it the kind follows from the fields, as it does for
    AUTO_RECORD. Fields are comma lists or sequences; partition fields carry their type (`city:simple,ts:timestamp`) or
    have it in `partition_types` ("" where there is none: version 6 stores none, and they are simple then).
    `timestamp_options` is looked into for `hoodie.keygen.timebased.*` when the kind needs them; other keys in it do not
    matter.

    Raises:
        Invalid: contradicting or missing options.
        Unsupported: a type without a generator here.
    """
    records = field_names(record_fields)
    typed = tuple(_typed_field(text) for text in _with_types(field_names(partition_fields), partition_types))
    names = tuple(name for name, _ in typed)
    is_open = not kind or kind.strip().upper().removesuffix("_AVRO") in ("", "AUTO_RECORD")
    chosen = inferred_kind(records, typed) if kind is None or is_open else kind_of_type(kind)
    timestamped = frozenset(name for name, type_text in typed if type_text == "TIMESTAMP")
    needs_format = chosen is KeyKind.TIMESTAMP or (chosen is KeyKind.CUSTOM and timestamped)
    return KeyOptions(
        kind=chosen,
        record_fields=records,
        partition_fields=names if chosen.has_partitions else (),
        style=PathStyle(hive_style, url_encode, slash_dates),
        single_key_with_name=single_key_with_name,
        text=TextForm("sql" if consistent_timestamps else "avro"),
        timestamp_fields=timestamped if chosen is KeyKind.CUSTOM else frozenset(),
        timestamp=parse_timestamp_options(timestamp_options or {}) if needs_format else None,
    )


def inferred_kind(record_fields: Sequence[str], partition_fields: Sequence[tuple[str, str | None]]) -> KeyKind:
    """The key generator Hudi takes when none is named."""
    if not partition_fields:
        return KeyKind.NON_PARTITION
    if any(type_text for _, type_text in partition_fields):
        return KeyKind.CUSTOM
    if len(partition_fields) == 1 and len(record_fields) <= 1:
        return KeyKind.SIMPLE
    return KeyKind.COMPLEX


def kind_of_type(text: str) -> KeyKind:
    """The kind named by `hoodie.table.keygenerator.type`, `…_AVRO` variants included.

    Raises:
        Unsupported: a type without a generator here.
    """
    name = text.strip().upper().removesuffix("_AVRO")
    if name not in KeyKind.__members__:
        raise Unsupported(
            f"Key generator type {text!r}", remedy=f"Supported are {', '.join(KeyKind.__members__)}", kind=text
        )
    return KeyKind(name)


def field_names(fields: str | Sequence[str]) -> tuple[str, ...]:
    """A comma list (or sequence) as names, blanks around them dropped."""
    texts = fields.split(",") if isinstance(fields, str) else fields
    return tuple(text.strip() for text in texts if text.strip())


def _with_types(names: tuple[str, ...], types: Sequence[str]) -> list[str]:
    padded = [*types, *[""] * len(names)]
    return [f"{name}:{kind}" if kind and ":" not in name else name for name, kind in zip(names, padded, strict=False)]


def _typed_field(text: str) -> tuple[str, str | None]:
    name, colon, type_text = text.partition(":")
    if not colon:
        return name, None
    wanted = type_text.strip().upper()
    if wanted not in ("SIMPLE", "TIMESTAMP"):
        raise Invalid(
            f"Partition field {text!r} has the type {type_text!r}", remedy="Use simple or timestamp", field=name
        )
    return name.strip(), wanted


def _ensure_consistent(options: KeyOptions) -> None:
    kind, records, partitions = options.kind, options.record_fields, options.partition_fields
    if kind in (KeyKind.SIMPLE, KeyKind.TIMESTAMP):
        if len(records) > 1:
            raise Invalid(
                f"{kind.value} keys take one record key field, not {list(records)}", remedy="Use COMPLEX keys"
            )
        if len(partitions) != 1:
            raise Invalid(
                f"{kind.value} keys take one partition field, not {list(partitions)}",
                remedy="Use COMPLEX keys for several, NON_PARTITION for none",
            )
    for role, names in (("record key", records), ("partition", partitions)):
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise Invalid(f"The {role} fields name {', '.join(repeated)} more than once", remedy="Name each once")
    strangers = options.timestamp_fields - set(partitions)
    if strangers:
        raise Invalid(f"{sorted(strangers)} are timestamp fields but no partition fields")
    if (kind is KeyKind.TIMESTAMP or options.timestamp_fields) and options.timestamp is None:
        raise Invalid("A timestamp partition field needs its formats", remedy="Set hoodie.keygen.timebased.*")
