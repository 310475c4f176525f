"""The properties of a table that is about to exist, exactly the keys Hudi writes for it.

1. Version 6 follows Hudi 0.15.0, versions 8 and 9 follow Hudi 1.2.0, both as their Spark writers create tables.
2. One departure: `slash_dates` is stored when it is on. Hudi 1.2's writer leaves it out and relies on every later
   write to repeat the option.

It does not know storage. Key by key: `docs/format/properties.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hoodie.errors import Invalid
from hoodie.spec import keys
from hoodie.spec.instant_time import TimeZone
from hoodie.spec.merge_rules import EVENT_TIME_STRATEGY, PAYLOAD_STRATEGY, MergeChoice, MergeMode, merge_properties
from hoodie.spec.profile import FormatProfile, profile_for
from hoodie.spec.table_config import KEYGEN_CLASSES, USER_PROVIDED, TableConfig, TableType, table_checksum

_EXTRACTOR = "org.apache.hudi.hive."
_METADATA_PAYLOAD = "org.apache.hudi.metadata.HoodieMetadataPayload"
_METADATA_KEYGEN = "HOODIE_TABLE_METADATA"
_UNPARTITIONED_KEYGENS = ("NON_PARTITION", "GLOBAL_DELETE")
_TIMEBASED_V6 = (
    "input.dateformat",
    "input.dateformat.list.delimiter.regex",
    "input.timezone",
    "output.dateformat",
    "output.timezone",
    "timezone",
)
_TIMEBASED = (*_TIMEBASED_V6, "timestamp.type", "timestamp.scalar.time.unit")


@dataclass(frozen=True, slots=True)
class NewTable:
    """All choices that end up in a new table's properties; defaults are Hudi's.

    `partition_fields` are bare names; `partition_field_types` (`simple`, `timestamp`, spelled as the user did) go with
    them for the CUSTOM generator. `keygen_class` is for user-defined generators only. `timestamp_options` have bare
    names (`output.dateformat`) or full ones. `merge_properties` have bare names (`hoodie.payload.delete.field`).
    `extra` is added as it is, last.
    """

    name: str
    table_type: TableType = "COPY_ON_WRITE"
    database: str = ""
    record_key_fields: tuple[str, ...] = ()
    partition_fields: tuple[str, ...] = ()
    partition_field_types: tuple[str, ...] = ()
    keygen_type: str = "SIMPLE"
    keygen_class: str | None = None
    ordering_fields: tuple[str, ...] = ()
    merge_mode: MergeMode | None = None
    payload_class: str | None = None
    merge_strategy_id: str | None = None
    merge_properties: Mapping[str, str] = field(default_factory=dict)
    hive_style: bool = False
    url_encode: bool = False
    slash_dates: bool = False
    drop_partition_columns: bool = False
    partition_extractor_class: str | None = None
    timestamp_options: Mapping[str, str] = field(default_factory=dict)
    populate_meta_fields: bool = True
    base_file_format: str = "PARQUET"
    partition_metafile_in_base_format: bool = False
    timezone: TimeZone = "LOCAL"
    cdc_enabled: bool = False
    cdc_logging_mode: str = "DATA_BEFORE_AFTER"
    create_schema: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)


def new_table_properties(profile: FormatProfile, table: NewTable) -> dict[str, str]:
    """The properties of a new table, checksum included.

    Raises:
        Invalid: no table name, an unknown key generator, or contradicting merge choices.
    """
    if not table.name:
        raise Invalid("A new table needs a name", remedy=f"Set {keys.NAME}")
    return {
        **_common(profile, table),
        **(_of_version_6(table) if profile.table_version == 6 else _since_version_8(profile, table)),
        **merge_properties(
            MergeChoice(
                table.merge_mode,
                table.payload_class,
                table.merge_strategy_id,
                table.ordering_fields,
                table.merge_properties,
            ),
            table_version=profile.table_version,
            merge_on_read=table.table_type == "MERGE_ON_READ",
        ),
        **table.extra,
    }


def metadata_table_properties(table: TableConfig) -> dict[str, str]:
    """The properties of the metadata table of `table`, as Hudi 0.15 (version 6) and 1.2 (8 and later) write them."""
    profile = profile_for(table.table_version)
    name = f"{table.name}_metadata"
    common = {
        keys.NAME: name,
        keys.TYPE: "MERGE_ON_READ",
        keys.VERSION: str(profile.table_version),
        keys.TIMELINE_LAYOUT_VERSION: str(profile.layout_version),
        keys.BASE_FILE_FORMAT: "HFILE",
        keys.RECORD_KEY_FIELDS: "key",
        keys.POPULATE_META_FIELDS: "false",
        keys.DROP_PARTITION_COLUMNS: "false",
        keys.PAYLOAD_CLASS: _METADATA_PAYLOAD,
        keys.CHECKSUM: str(table_checksum(name)),
    }
    if profile.layout_version == 1:
        return {
            **common,
            keys.ARCHIVE_FOLDER: "archived",
            keys.KEYGEN_CLASS: KEYGEN_CLASSES[_METADATA_KEYGEN],
            keys.OLD_MERGE_STRATEGY: EVENT_TIME_STRATEGY,
        }
    return {
        **common,
        keys.INITIAL_VERSION: str(profile.table_version),
        keys.ARCHIVE_FOLDER: "history",
        keys.TIMELINE_PATH: "timeline",
        keys.TIMELINE_HISTORY_PATH: "history",
        keys.KEYGEN_TYPE: _METADATA_KEYGEN,
        keys.MERGE_MODE: "CUSTOM",
        keys.MERGE_STRATEGY_ID: PAYLOAD_STRATEGY,
    }


def _common(profile: FormatProfile, table: NewTable) -> dict[str, str]:
    found = {
        keys.NAME: table.name,
        keys.TYPE: table.table_type,
        keys.VERSION: str(profile.table_version),
        keys.TIMELINE_LAYOUT_VERSION: str(profile.layout_version),
        keys.TIMELINE_TIMEZONE: table.timezone,
        keys.CHECKSUM: str(table_checksum(table.name, table.database)),
        keys.PARTITION_FIELDS: _partition_fields(profile, table),
        keys.HIVE_STYLE: _bool(table.hive_style),
        keys.URL_ENCODE: _bool(table.url_encode),
        keys.DROP_PARTITION_COLUMNS: _bool(table.drop_partition_columns),
        keys.PARTITION_METAFILE_BASE_FORMAT: _bool(table.partition_metafile_in_base_format),
        keys.POPULATE_META_FIELDS: _bool(table.populate_meta_fields),
        keys.BASE_FILE_FORMAT: table.base_file_format.upper(),
        keys.CDC_ENABLED: _bool(table.cdc_enabled),
    }
    if table.record_key_fields:
        found[keys.RECORD_KEY_FIELDS] = ",".join(table.record_key_fields)
    if table.cdc_enabled:
        found[keys.CDC_LOGGING_MODE] = table.cdc_logging_mode.upper()
    if table.create_schema:
        found[keys.CREATE_SCHEMA] = table.create_schema
    return found


def _of_version_6(table: NewTable) -> dict[str, str]:
    return {
        keys.DATABASE: table.database,
        keys.ARCHIVE_FOLDER: "archived",
        keys.KEYGEN_CLASS: _keygen_class(table),
        **_timebased(table, _TIMEBASED_V6),
    }


def _since_version_8(profile: FormatProfile, table: NewTable) -> dict[str, str]:
    found = {
        keys.INITIAL_VERSION: str(profile.table_version),
        keys.FORMAT: "native",
        keys.ARCHIVE_FOLDER: "history",
        keys.TIMELINE_PATH: "timeline",
        keys.TIMELINE_HISTORY_PATH: "history",
        keys.MULTIPLE_BASE_FILE_FORMATS: "false",
        keys.PARTITION_EXTRACTOR_CLASS: table.partition_extractor_class or _extractor(table),
        **_timebased(table, _TIMEBASED),
    }
    if table.database:
        found[keys.DATABASE] = table.database
    if table.slash_dates:
        found[keys.SLASH_DATES] = "true"
    if table.keygen_class and table.keygen_class not in KEYGEN_CLASSES.values():
        return found | {keys.KEYGEN_CLASS: table.keygen_class, keys.KEYGEN_TYPE: USER_PROVIDED}
    _keygen_class(table)
    return found | {keys.KEYGEN_TYPE: table.keygen_type.upper()}


def _partition_fields(profile: FormatProfile, table: NewTable) -> str:
    if table.keygen_type.upper() in _UNPARTITIONED_KEYGENS:
        return ""
    if not profile.capabilities.typed_partition_fields or not table.partition_field_types:
        return ",".join(table.partition_fields)
    typed = zip(table.partition_fields, table.partition_field_types, strict=True)
    return ",".join(f"{name}:{kind}" if kind else name for name, kind in typed)


def _keygen_class(table: NewTable) -> str:
    if table.keygen_class:
        return table.keygen_class
    known = KEYGEN_CLASSES.get(table.keygen_type.upper())
    if known is None:
        raise Invalid(
            f"Unknown key generator type {table.keygen_type!r}",
            remedy=f"Use one of {', '.join(KEYGEN_CLASSES)}",
            keygen_type=table.keygen_type,
        )
    return known


def _timebased(table: NewTable, names: tuple[str, ...]) -> dict[str, str]:
    """Options Hudi persists, for the TIMESTAMP generator only; a CUSTOM one must be told again at each write."""
    if table.keygen_type.upper().removesuffix("_AVRO") != "TIMESTAMP":
        return {}
    given = {
        key.removeprefix(keys.TIMEBASED_PREFIX).removeprefix(keys.OLD_TIMEBASED_PREFIX): value
        for key, value in table.timestamp_options.items()
    }
    found = {keys.TIMEBASED_PREFIX + name: given[name] for name in names if name in given}
    parser = table.timestamp_options.get(keys.DATETIME_PARSER)
    return found | ({keys.DATETIME_PARSER: parser} if parser else {})


def _extractor(table: NewTable) -> str:
    """The Hive class Hudi infers for reading partition values from paths. It looks at the fields alone."""
    if len(table.partition_fields) != 1:
        return _EXTRACTOR + "MultiPartKeysValueExtractor"
    if table.slash_dates:
        return _EXTRACTOR + "SlashEncodedDayPartitionValueExtractor"
    return _EXTRACTOR + (
        "HiveStylePartitionValueExtractor" if table.hive_style else "SinglePartPartitionValueExtractor"
    )


def _bool(value: bool) -> str:
    return "true" if value else "false"
