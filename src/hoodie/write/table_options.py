"""From options to a table's own properties: making a table, and holding options against one that exists.

1. What a table is (keys, partitioning, ordering, type, version) is written once into `hoodie.properties`; a write whose
   options say otherwise is refused before anything happens.
2. What the options do not mention is taken from the table.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hoodie.config import Config
from hoodie.env import Env
from hoodie.errors import Invalid, Unsupported
from hoodie.index import bucket_differences, has_buckets, parse_write_index, remembered_index
from hoodie.records import to_avro
from hoodie.records.columns import has_column
from hoodie.records.keys import inferred_kind
from hoodie.spec import KEYGEN_CLASSES, FormatProfile, TableConfig, profile_for, profile_of
from hoodie.spec.change_schema import parse_logging_mode
from hoodie.spec.keys import (
    CDC_ENABLED,
    CDC_LOGGING_MODE,
    DELETE_FIELD,
    DELETE_MARKER,
    PARTITION_EXTRACTOR_CLASS,
    SLASH_DATES,
)
from hoodie.spec.new_table import NewTable, new_table_properties
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage
from hoodie.timeline import store_table_config
from hoodie.write.key_options import key_generator
from hoodie.write.layout_options import claimed, ensure_same_layout, plan_layout

RECORD_KEY = "hoodie.datasource.write.recordkey.field"
PARTITION_PATH = "hoodie.datasource.write.partitionpath.field"
KEYGEN_CLASS = "hoodie.datasource.write.keygenerator.class"
KEYGEN_TYPE = "hoodie.datasource.write.keygenerator.type"
ORDERING = "hoodie.table.ordering.fields"
MERGE_MODE = "hoodie.write.record.merge.mode"
DROP_COLUMNS = "hoodie.datasource.write.drop.partition.columns"
EXTRACTOR = "hoodie.datasource.partition_extractor_class"
TIMEZONE = "hoodie.table.timeline.timezone"
VERSION = "hoodie.write.table.version"
_REMEDY = "Leave them out or give the table's values; a table's keys, partitioning and type are fixed"
_BUCKETS_REMEDY = (
    ", and so is its bucket index. Buckets of consistent hashing split and merge (hoodie resize); another number of "
    "simple ones, or another index, takes a new table of all rows (save mode overwrite with the options of a new one)"
)
_TYPES = {name: kind for kind, name in KEYGEN_CLASSES.items()}


def create_table(
    storage: Storage, config: Config, schema: pa.Schema | None, env: Env, *, keep_schema: bool = False
) -> TableConfig:
    """The config of the new table that now exists at `storage`.

    `schema` has the data columns when they are known: then key, partition and ordering columns must be among them.
    With `keep_schema` the properties say it, so that the table can be read before anything is written to it.

    Raises:
        Conflict: a table is there. Invalid: an option names a column that is not there, or options contradict.
    """
    planned = plan_table(storage, config, schema, keep_schema=keep_schema)
    layout = plan_layout(storage, config, planned.name, env)
    if layout is not None:
        planned = claimed(storage, planned, layout)
    return store_table_config(storage, None, planned, env)


def plan_table(storage: Storage, config: Config, schema: pa.Schema | None, *, keep_schema: bool = False) -> TableConfig:
    """The properties `create_table` would store. Raises the same, without Conflict."""
    profile = profile_for(config.integer(VERSION))
    table = new_table(storage, config, schema if keep_schema else None)
    if schema is not None:
        _ensure_columns(table, schema)
    _ensure_consistent(table)
    properties = TableConfig(new_table_properties(profile, table))
    key_generator(properties, profile, config)  # refuses what it cannot make keys from
    if has_buckets(config, properties):
        parse_write_index(config, properties)  # refuses what it cannot find in buckets again
    return properties


def new_table(storage: Storage, config: Config, schema: pa.Schema | None) -> NewTable:
    """All choices `config` makes for a new table; the name defaults to the base path's last folder.

    `schema` is stored as the one the table was created with.
    """
    fields, types = _partition_fields(config)
    record_fields = config.list(RECORD_KEY)
    name = config.text("hoodie.table.name") if config.is_set("hoodie.table.name") else storage.uri.rsplit("/", 1)[-1]
    return NewTable(
        name=name,
        table_type=config.text("hoodie.datasource.write.table.type"),  # type: ignore[arg-type]
        database=config.text("hoodie.database.name"),
        record_key_fields=record_fields,
        partition_fields=fields,
        partition_field_types=tuple(kind.lower() for kind in types) if any(types) else (),
        keygen_type=_keygen_type(config, record_fields, fields, types),
        ordering_fields=config.list(ORDERING),
        merge_mode=config.optional(MERGE_MODE),  # type: ignore[arg-type]
        payload_class=config.optional("hoodie.datasource.write.payload.class"),
        merge_properties=_merge_properties(config, profile_for(config.integer(VERSION))),
        hive_style=config.flag("hoodie.datasource.write.hive_style_partitioning"),
        url_encode=config.flag("hoodie.datasource.write.partitionpath.urlencode"),
        slash_dates=config.flag(SLASH_DATES),
        drop_partition_columns=config.flag(DROP_COLUMNS),
        timestamp_options=timestamp_options(config.explicit),
        populate_meta_fields=config.flag("hoodie.populate.meta.fields"),
        cdc_enabled=config.flag(CDC_ENABLED),
        cdc_logging_mode=parse_logging_mode(config.text(CDC_LOGGING_MODE)),
        partition_extractor_class=config.optional(EXTRACTOR),
        timezone=config.text(TIMEZONE),  # type: ignore[arg-type]
        create_schema=None if schema is None else to_avro(schema, name),
        extra=remembered_index(config, record_fields),
    )


def timestamp_options(options: Mapping[str, str]) -> dict[str, str]:
    """Options of the timestamp key generator among `options`."""
    return {key: value for key, value in options.items() if "keygen.timebased." in key or "datetime.parser" in key}


def is_writable(table: TableConfig) -> bool:
    """Whether this package can write to tables of this base file format."""
    return table.base_file_format == "PARQUET"


def ensure_writable(handle: TableHandle, config: Config) -> None:
    """Checks that this package can write to the table.

    Raises:
        Unsupported: another base file format, another version asked for.
    """
    table = handle.config
    if table.base_file_format != "PARQUET":
        raise Unsupported(
            f"Table {table.name} has {table.base_file_format} base files", remedy="Only Parquet is written"
        )
    if table.cdc_enabled and not table.populate_meta_fields:
        raise Unsupported(
            f"Table {table.name} logs changes (CDC) and has no meta columns",
            remedy="Make it with hoodie.populate.meta.fields=true, or without hoodie.table.cdc.enabled",
        )
    if config.is_set(VERSION) and not table.has_version(config.integer(VERSION)):
        raise Unsupported(
            f"Table {table.name} has version {table.table_version}, the options ask for {config.text(VERSION)}",
            remedy=f"Leave {VERSION} out, or use `hoodie upgrade`; with hoodie.write.auto.upgrade=true writes do so",
        )


def ensure_compatible(config: Config, table: TableConfig, *, whole_table: bool = False) -> None:
    """Checks that no option contradicts the table's properties. `whole_table` also compares the version.

    Raises:
        Invalid: names every option, its value and the table's.
    """
    ensure_same_layout(config, table)
    of_buckets = bucket_differences(config, table)
    differences = [
        f"{key} is {given!r} but the table has {stored!r}"
        for key, given, stored in (*_compared(config, table, whole_table=whole_table), *of_buckets)
        if given != stored
    ]
    if differences:
        raise Invalid(
            f"Options contradict table {table.name}: " + "; ".join(differences),
            remedy=_REMEDY + (_BUCKETS_REMEDY if of_buckets else ""),
            differences=tuple(differences),
        )


def _compared(config: Config, table: TableConfig, *, whole_table: bool) -> list[tuple[str, object, object]]:
    """(key, value asked for, value of the table) for every option that is set and that the table fixes."""
    fields, types = _partition_fields(config)
    if not profile_of(table).capabilities.typed_partition_fields or not any(types):
        types = ("",) * len(fields)
    stored_types = table.partition_field_types
    fixed: dict[str, object] = {
        "hoodie.table.name": table.name,
        RECORD_KEY: table.record_key_fields,
        "hoodie.datasource.write.table.type": table.table_type,
        "hoodie.populate.meta.fields": table.populate_meta_fields,
        "hoodie.datasource.write.hive_style_partitioning": table.hive_style,
        "hoodie.datasource.write.partitionpath.urlencode": table.url_encode,
        DROP_COLUMNS: table.drop_partition_columns,
        CDC_ENABLED: table.cdc_enabled,
        TIMEZONE: table.timezone,
        **{key: table.merge_properties[key] for key in (DELETE_FIELD, DELETE_MARKER) if key in table.merge_properties},
    }
    if whole_table:
        fixed[VERSION] = str(table.table_version)
    if SLASH_DATES in table.raw:
        fixed[SLASH_DATES] = table.slash_dates
    if PARTITION_EXTRACTOR_CLASS in table.raw:
        fixed[EXTRACTOR] = table.raw[PARTITION_EXTRACTOR_CLASS]
    if table.stored_merge_mode is not None:
        fixed[MERGE_MODE] = table.stored_merge_mode
    if table.ordering_fields:
        fixed[ORDERING] = table.ordering_fields
    found = [(key, config.value(key), stored) for key, stored in fixed.items() if config.is_set(key)]
    if table.cdc_enabled and config.is_set(CDC_LOGGING_MODE):
        found.append((CDC_LOGGING_MODE, parse_logging_mode(config.text(CDC_LOGGING_MODE)), table.cdc_logging_mode))
    if config.is_set(PARTITION_PATH) and (fields or table.partition_fields):
        found.append((PARTITION_PATH, fields, table.partition_fields))
        if any(types) and any(stored_types):
            found.append((PARTITION_PATH, types, stored_types))
    if config.is_set(KEYGEN_CLASS) or config.is_set(KEYGEN_TYPE):
        asked = _keygen_type(config, table.record_key_fields, table.partition_fields, stored_types)
        found.append((KEYGEN_TYPE, asked.removesuffix("_AVRO"), table.keygen_type))
    return found


def _partition_fields(config: Config) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Bare names and, aligned, the types (`SIMPLE`, `TIMESTAMP`, or empty) of the partition fields."""
    if not config.is_set(PARTITION_PATH):
        return (), ()
    pairs = [text.partition(":") for text in config.list(PARTITION_PATH)]
    return tuple(name for name, _, _ in pairs), tuple(kind.upper() for _, _, kind in pairs)


def _keygen_type(
    config: Config, record_fields: tuple[str, ...], fields: tuple[str, ...], types: tuple[str, ...]
) -> str:
    """The generator asked for, else the one Hudi infers."""
    if config.is_set(KEYGEN_CLASS):
        named = config.text(KEYGEN_CLASS)
        kind = _TYPES.get(named)
        if kind is None:
            raise Unsupported(
                f"Key generator class {named} cannot run here",
                remedy=f"Use one of {', '.join(sorted(KEYGEN_CLASSES.values()))}",
                key=KEYGEN_CLASS,
            )
        return kind
    if config.is_set(KEYGEN_TYPE):
        return config.text(KEYGEN_TYPE)
    return inferred_kind(record_fields, tuple(zip(fields, types, strict=True))).value


def _ensure_columns(table: NewTable, schema: pa.Schema) -> None:
    for key, names in (
        (RECORD_KEY, table.record_key_fields),
        (PARTITION_PATH, table.partition_fields),
        (ORDERING, table.ordering_fields),
    ):
        for name in names:
            if not has_column(schema, name):
                raise Invalid(
                    f"{key} names the column {name!r}, which the input does not have",
                    remedy=f"Columns are: {', '.join(schema.names)}",
                    column=name,
                    key=key,
                )


def _ensure_consistent(table: NewTable) -> None:
    """Checks that the rows of such a table can be found and merged again.

    Raises:
        Invalid: a column that is not stored is needed later.
    """
    if not table.drop_partition_columns:
        return
    needed = [*table.ordering_fields, *(() if table.populate_meta_fields else table.record_key_fields)]
    lost = [name for name in needed if name.partition(".")[0] in table.partition_fields]
    if lost:
        raise Invalid(
            f"Column {lost[0]!r} would not be stored ({DROP_COLUMNS}), but updates need it",
            remedy="Order or key the rows by another column, or store partition columns",
            column=lost[0],
        )


def _merge_properties(config: Config, profile: FormatProfile) -> dict[str, str]:
    """What the table's properties say about merging, where they say it."""
    if not profile.capabilities.stores_delete_markers:
        return {}
    return {key: config.text(key) for key in (DELETE_FIELD, DELETE_MARKER) if config.is_set(key)}
