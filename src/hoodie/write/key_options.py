"""The key generator of a table: its properties, plus what a write must say again.

A COMPLEX key of one field is written `field:value` by some releases and bare by others (docs/format/record-keys.md).
Version 9 fixed it; for older tables a key that is already stored decides, then the option, then the version's habit.
Timestamps in keys are spelled in two ways too, and there as well a stored key decides.
"""

from __future__ import annotations

import pyarrow as pa

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.records import KeyGenerator, key_options, stored_text_form
from hoodie.records.columns import has_column
from hoodie.spec import FormatProfile, TableConfig
from hoodie.spec.keys import SLASH_DATES

_PARTITION_PATH = "hoodie.datasource.write.partitionpath.field"
_NEW_ENCODING = "hoodie.write.complex.keygen.new.encoding"
_CONSISTENT_TIMESTAMPS = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"


def key_generator(
    table: TableConfig, profile: FormatProfile, config: Config, stored_key: str | None = None
) -> KeyGenerator:
    """The generator for writes to `table`. `stored_key` is any record key the table already holds."""
    return KeyGenerator(
        key_options(
            table.keygen_type,
            record_fields=table.record_key_fields,
            partition_fields=table.partition_fields,
            partition_types=_partition_types(table, config),
            hive_style=table.hive_style,
            url_encode=table.url_encode,
            slash_dates=_slash_dates(table, config),
            single_key_with_name=_single_key_with_name(table, profile, config, stored_key),
            consistent_timestamps=_sql_timestamps(config, stored_key),
            timestamp_options={**config.explicit, **table.timestamp_options},
        )
    )


def _partition_types(table: TableConfig, config: Config) -> tuple[str, ...]:
    """Types of the partition fields: as stored, or as this write says them again (version 6 stores bare names).

    Raises:
        Invalid: the custom key generator has fields of which neither says it: a time would be stored as its number, and
            keys a second time.
    """
    if any(table.partition_field_types):
        return table.partition_field_types
    given = tuple(text.partition(":")[2].upper() for text in config.list(_PARTITION_PATH))
    found = given if config.is_set(_PARTITION_PATH) else table.partition_field_types
    if table.keygen_type == "CUSTOM" and table.partition_fields and not all(found or ("",)):
        fields = ",".join(f"{name}:simple" for name in table.partition_fields)
        raise Invalid(
            f"The custom key generator of {table.name} needs to know which partition fields are times, and a table of "
            f"version {table.table_version} does not store it",
            remedy=f"Say it with each write: {_PARTITION_PATH}={fields}, with :timestamp for a time",
            key=_PARTITION_PATH,
        )
    return found


def _slash_dates(table: TableConfig, config: Config) -> bool:
    """As stored; where nothing is (version 6, and tables of Hudi 1.2) every write says it again."""
    return table.slash_dates if SLASH_DATES in table.raw else config.flag(SLASH_DATES)


def needs_stored_key(table: TableConfig, profile: FormatProfile, schema: pa.Schema | None) -> bool:
    """Whether a stored key is worth looking up: only then can the spelling differ. `schema` is the input's."""
    if not table.populate_meta_fields:
        return False
    return _may_lack_name(table, profile) or (
        schema is not None and any(_is_timestamp(schema, name) for name in table.record_key_fields)
    )


def _may_lack_name(table: TableConfig, profile: FormatProfile) -> bool:
    settled = profile.capabilities.complex_single_key_settled
    return not settled and table.keygen_type == "COMPLEX" and len(table.record_key_fields) == 1


def _is_timestamp(schema: pa.Schema, name: str) -> bool:
    if not has_column(schema, name):
        return False
    head, *path = name.split(".")
    kind = schema.field(head).type
    for step in path:
        kind = kind.field(step).type
    return bool(pa.types.is_timestamp(kind))


def _sql_timestamps(config: Config, stored_key: str | None) -> bool:
    """Whether timestamps are SQL text: as in the table's keys, else as the option says."""
    if stored_key is None:
        return config.flag(_CONSISTENT_TIMESTAMPS)
    return config.flag(_CONSISTENT_TIMESTAMPS) or stored_text_form(stored_key).timestamps == "sql"


def _single_key_with_name(table: TableConfig, profile: FormatProfile, config: Config, stored_key: str | None) -> bool:
    if not _may_lack_name(table, profile):
        return True
    if stored_key is not None:
        return stored_key.startswith(f"{table.record_key_fields[0]}:")
    if config.is_set(_NEW_ENCODING):
        return not config.flag(_NEW_ENCODING)
    return profile.capabilities.complex_single_key_named
