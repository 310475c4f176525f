"""What a base file's footer says: rows, schema, key range, bloom filter, Avro schema.

1. A footer is a value read once from the end of the file; nothing here reads again.
2. The bloom filter stays text until somebody asks for it: it is the largest part of a small file's footer.
3. `schema` is storable (`schema.py`), whatever list layout, INT96 or width the writer chose.
4. A file of another writer may lack any key: then the value is None.

Format page: docs/format/base-file.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import Corrupt, Unsupported
from hoodie.records.bloom import DEFAULT_MAX_ENTRIES, BloomFilter
from hoodie.records.schema import is_list, storable

BLOOM_FOOTER_KEY: Final = "org.apache.hudi.bloomfilter"
OLD_BLOOM_FOOTER_KEY: Final = "com.uber.hoodie.bloomfilter"
BLOOM_TYPE_FOOTER_KEY: Final = "hoodie_bloom_filter_type_code"
MIN_KEY_FOOTER_KEY: Final = "hoodie_min_record_key"
MAX_KEY_FOOTER_KEY: Final = "hoodie_max_record_key"
AVRO_SCHEMA_FOOTER_KEY: Final = "parquet.avro.schema"
OLD_AVRO_SCHEMA_FOOTER_KEY: Final = "avro.schema"
ORC_AVRO_SCHEMA_FOOTER_KEY: Final = "orc.avro.schema"
MODEL_FOOTER_KEY: Final = "writer.model.name"


@dataclass(frozen=True, slots=True)
class BaseFooter:
    """Facts from the footer of one base file.

    `bytes_per_group` has one entry per row group: uncompressed bytes; `rows_per_group` likewise. `native` is the
    parquet metadata object for readers that want to open the file without parsing the footer twice (None for ORC).
    """

    path: str
    size_bytes: int
    rows: int
    schema: pa.Schema
    rows_per_group: tuple[int, ...]
    bytes_per_group: tuple[int, ...]
    min_key: str | None
    max_key: str | None
    bloom_text: str | None = field(repr=False)
    bloom_type: str | None
    avro_schema: str | None = field(repr=False)
    native: Any = field(default=None, repr=False, compare=False)

    def bloom(self, max_entries: int = DEFAULT_MAX_ENTRIES) -> BloomFilter | None:
        """The decoded filter, None when the file has none. `max_entries` matters only for keys added to it.

        Raises:
            Corrupt: the text is damaged.
            Unsupported: the filter is of an unknown kind.
        """
        if self.bloom_text is None:
            return None
        try:
            return BloomFilter.from_text(self.bloom_text, self.bloom_type, max_entries)
        except (Corrupt, Unsupported) as error:
            raise type(error)(f"{self.path}: {error.cause}", remedy=error.remedy, path=self.path) from error


def footer_of_written(path: str, size_bytes: int, native: Any, values: Mapping[str, str]) -> BaseFooter:
    """The footer of a parquet file that was just written: `native` is the writer's metadata of it, `values` are Hudi's
    keys, which it does not have.
    """
    groups = [native.row_group(at) for at in range(native.num_row_groups)]
    return BaseFooter(
        path=path,
        size_bytes=size_bytes,
        rows=native.num_rows,
        schema=file_schema(native.schema.to_arrow_schema()),
        rows_per_group=tuple(group.num_rows for group in groups),
        bytes_per_group=tuple(group.total_byte_size for group in groups),
        native=native,
        **footer_facts({key.encode(): value.encode() for key, value in values.items()}),
    )


def footer_facts(values: Mapping[bytes, bytes] | None) -> dict[str, str | None]:
    """The Hudi keys among a file's key/value metadata, as arguments of `BaseFooter`."""
    texts = values or {}
    return {
        "min_key": _text(texts, MIN_KEY_FOOTER_KEY),
        "max_key": _text(texts, MAX_KEY_FOOTER_KEY),
        "bloom_text": _text(texts, BLOOM_FOOTER_KEY, OLD_BLOOM_FOOTER_KEY),
        "bloom_type": _text(texts, BLOOM_TYPE_FOOTER_KEY),
        "avro_schema": _text(texts, AVRO_SCHEMA_FOOTER_KEY, OLD_AVRO_SCHEMA_FOOTER_KEY, ORC_AVRO_SCHEMA_FOOTER_KEY),
    }


def file_schema(schema: pa.Schema, int96: frozenset[int] = frozenset()) -> pa.Schema:
    """The storable schema of a file's Arrow schema; `int96` are the positions of INT96 columns among all leaf columns.

    INT96 holds instants in UTC, although it does not say so. Elements of old two-level lists are marked required only
    because that layout has no place for a null: the table's schema calls them nullable.
    """
    leaves = iter(range(1 << 30))
    return storable(pa.schema([_file_field(field, leaves, int96) for field in schema]))


def _file_field(field: pa.Field, leaves: Iterator[int], int96: frozenset[int]) -> pa.Field:
    data_type = field.type
    if pa.types.is_struct(data_type):
        data_type = pa.struct([_file_field(child, leaves, int96) for child in data_type])
    elif pa.types.is_map(data_type):
        next(leaves)
        data_type = pa.map_(data_type.key_type, _file_field(data_type.item_field, leaves, int96))
    elif is_list(data_type):
        element = _file_field(data_type.value_field, leaves, int96)
        data_type = pa.list_(element if element.name == "element" else element.with_nullable(True))
    elif next(leaves) in int96:
        data_type = pa.timestamp("us", tz="UTC")
    return pa.field(field.name, data_type, nullable=field.nullable)


def _text(values: Mapping[bytes, bytes], *keys: str) -> str | None:
    for key in keys:
        raw = values.get(key.encode())
        if raw is not None:
            return raw.decode("utf-8", errors="replace")
    return None
