"""What a table says about itself: `hoodie.properties` with types.

1. The config is the raw properties plus typed views of them; unknown keys are kept.
2. Old spellings are read everywhere, written only by `new_table` for the versions that need them.
3. `hoodie.table.checksum` is the CRC-32 of `<database>.<table>`; a file without one is accepted, a wrong one is not.

It does not know storage, nor what is done with a value. All keys: `docs/format/properties.md`.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from hoodie.errors import Corrupt
from hoodie.spec import keys
from hoodie.spec.instant import COMMIT, DELTA_COMMIT
from hoodie.spec.instant_time import TimeZone
from hoodie.spec.merge_rules import MERGE_MODES, MergeMode, inferred_mode
from hoodie.spec.profile import FormatProfile, profile_for
from hoodie.spec.properties import encode_properties_text, java_date, parse_properties_text
from hoodie.spec.typed_values import inside_table

TableType = Literal["COPY_ON_WRITE", "MERGE_ON_READ"]

KEYGEN_CLASSES: dict[str, str] = {
    "SIMPLE": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "SIMPLE_AVRO": "org.apache.hudi.keygen.SimpleAvroKeyGenerator",
    "COMPLEX": "org.apache.hudi.keygen.ComplexKeyGenerator",
    "COMPLEX_AVRO": "org.apache.hudi.keygen.ComplexAvroKeyGenerator",
    "TIMESTAMP": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "TIMESTAMP_AVRO": "org.apache.hudi.keygen.TimestampBasedAvroKeyGenerator",
    "CUSTOM": "org.apache.hudi.keygen.CustomKeyGenerator",
    "CUSTOM_AVRO": "org.apache.hudi.keygen.CustomAvroKeyGenerator",
    "NON_PARTITION": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "NON_PARTITION_AVRO": "org.apache.hudi.keygen.NonpartitionedAvroKeyGenerator",
    "GLOBAL_DELETE": "org.apache.hudi.keygen.GlobalDeleteKeyGenerator",
    "GLOBAL_DELETE_AVRO": "org.apache.hudi.keygen.GlobalAvroDeleteKeyGenerator",
    "AUTO_RECORD": "org.apache.hudi.keygen.AutoRecordGenWrapperKeyGenerator",
    "AUTO_RECORD_AVRO": "org.apache.hudi.keygen.AutoRecordGenWrapperAvroKeyGenerator",
    "HOODIE_TABLE_METADATA": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
    "SPARK_SQL": "org.apache.spark.sql.hudi.command.SqlKeyGenerator",
    "SPARK_SQL_UUID": "org.apache.spark.sql.hudi.command.UuidKeyGenerator",
}
"""Key generator type → the class Hudi uses for it."""

USER_PROVIDED = "USER_PROVIDED"
_KEYGEN_TYPES = {name: kind for kind, name in KEYGEN_CLASSES.items()}
_SQL_KEYGENS = ("SPARK_SQL", "SPARK_SQL_UUID")
_REMEDY = "Restore the file from a copy"
_MAX_DIGITS = 19


@dataclass(frozen=True, slots=True)
class TableConfig:
    """Typed views of a table's properties. `raw` holds every key as it stands in the file, values unescaped."""

    raw: Mapping[str, str]

    # Identity

    @property
    def name(self) -> str:
        return self._text(keys.NAME)

    @property
    def database(self) -> str:
        """Empty when the table belongs to none."""
        return self._text(keys.DATABASE)

    @property
    def table_type(self) -> TableType:
        said = self._text(keys.TYPE).upper().removesuffix(keys.FEDERATED_SUFFIX)
        return "MERGE_ON_READ" if said == "MERGE_ON_READ" else "COPY_ON_WRITE"

    @property
    def is_federated(self) -> bool:
        """Whether data files may lie outside the base path: see `hoodie.layout`."""
        return keys.STORAGE_VERSIONS in self.raw or self._text(keys.TYPE).upper().endswith(keys.FEDERATED_SUFFIX)

    @property
    def is_merge_on_read(self) -> bool:
        return self.table_type == "MERGE_ON_READ"

    @property
    def write_action(self) -> str:
        """Action of writes that replace nothing."""
        return DELTA_COMMIT if self.is_merge_on_read else COMMIT

    def has_version(self, version: int) -> bool:
        """Whether it is a table of this version."""
        return self.table_version == version

    @property
    def table_version(self) -> int:
        """0 when the file says nothing (tables older than Hudi 0.6) or no number."""
        return _number(self._text(keys.VERSION)) or 0

    @property
    def checksum(self) -> int | None:
        """The stored checksum; None when there is none or it is no number."""
        return _number(self.raw.get(keys.CHECKSUM, ""))

    # Keys and partitions

    @property
    def record_key_fields(self) -> tuple[str, ...]:
        """Empty: keys are made by the writer (auto keys)."""
        return self._list(keys.RECORD_KEY_FIELDS)

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """Bare column names, in path order; empty for a table without partitions."""
        return tuple(field.partition(":")[0] for field in self._list(keys.PARTITION_FIELDS))

    @property
    def partition_field_types(self) -> tuple[str, ...]:
        """`SIMPLE` or `TIMESTAMP` for each partition field that names its type (CUSTOM generator), else empty text."""
        return tuple(field.partition(":")[2].upper() for field in self._list(keys.PARTITION_FIELDS))

    @property
    def keygen_type(self) -> str:
        """The canonical kind of key generator, without the `_AVRO` variants and SQL wrappers.

        Read from the stored type, else from the stored class, else inferred from the fields as Hudi does. A class
        nobody knows is `USER_PROVIDED`.
        """
        stored = self._text(keys.KEYGEN_TYPE).upper()
        known = self._text(keys.KEYGEN_CLASS)
        if not stored and known:
            stored = _KEYGEN_TYPES.get(known, USER_PROVIDED)
        kind = stored.removesuffix("_AVRO")
        return infer_keygen_type(self) if not kind or kind in _SQL_KEYGENS else kind

    @property
    def has_known_keygen(self) -> bool:
        """Whether the table says who makes its keys and partition paths, and it is one of Hudi's own."""
        is_said = bool(self._text(keys.KEYGEN_TYPE) or self._text(keys.KEYGEN_CLASS))
        return is_said and self.keygen_type in KEYGEN_CLASSES

    @property
    def keygen_class(self) -> str | None:
        """The stored generator class, else the one that belongs to the stored type."""
        return self.raw.get(keys.KEYGEN_CLASS) or KEYGEN_CLASSES.get(self._text(keys.KEYGEN_TYPE).upper())

    @property
    def hive_style(self) -> bool:
        return self._flag(keys.HIVE_STYLE)

    @property
    def url_encode(self) -> bool:
        return self._flag(keys.URL_ENCODE)

    @property
    def slash_dates(self) -> bool:
        return self._flag(keys.SLASH_DATES)

    @property
    def drop_partition_columns(self) -> bool:
        return self._flag(keys.DROP_PARTITION_COLUMNS)

    @property
    def partition_metafile_in_base_format(self) -> bool:
        return self._flag(keys.PARTITION_METAFILE_BASE_FORMAT)

    @property
    def timestamp_options(self) -> dict[str, str]:
        """Stored options of the timestamp key generator under their newer names, prefix included."""
        found = {
            keys.TIMEBASED_PREFIX + key.removeprefix(keys.OLD_TIMEBASED_PREFIX): value
            for key, value in self.raw.items()
            if key.startswith(keys.OLD_TIMEBASED_PREFIX)
        }
        return found | {
            key: value
            for key, value in self.raw.items()
            if key.startswith(keys.TIMEBASED_PREFIX) or key == keys.DATETIME_PARSER
        }

    # Ordering and merging

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """Columns that decide which of two rows is newer, most significant first."""
        return self._list(keys.ORDERING_FIELDS)

    @property
    def payload_class(self) -> str | None:
        """The payload class, current or replaced by a merge mode."""
        return self.raw.get(keys.PAYLOAD_CLASS) or self.raw.get(keys.LEGACY_PAYLOAD_CLASS) or None

    @property
    def stored_merge_mode(self) -> MergeMode | None:
        """The mode as the file has it, None where it has none (before version 8)."""
        text = self._text(keys.MERGE_MODE).upper()
        return next((mode for mode in MERGE_MODES if mode == text), None)

    @property
    def merge_mode(self) -> MergeMode:
        """The stored mode, else the one Hudi 1.2 infers from payload and ordering."""
        return self.stored_merge_mode or inferred_mode(self.payload_class, has_ordering=bool(self.ordering_fields))

    @property
    def merge_strategy_id(self) -> str | None:
        return self._text(keys.MERGE_STRATEGY_ID) or None

    @property
    def partial_update_mode(self) -> str | None:
        """`IGNORE_DEFAULTS` or `FILL_UNAVAILABLE`, None for whole-row updates."""
        return self._text(keys.PARTIAL_UPDATE_MODE).upper() or None

    @property
    def merge_properties(self) -> dict[str, str]:
        """Properties for merging (delete marker and the like), without their prefix."""
        prefix = keys.MERGE_PROPERTY_PREFIX
        return {key.removeprefix(prefix): value for key, value in self.raw.items() if key.startswith(prefix)}

    # Files

    @property
    def base_file_format(self) -> str:
        """`PARQUET`, `ORC`, `HFILE` or `LANCE`."""
        return self._text(keys.BASE_FILE_FORMAT, "PARQUET").upper()

    @property
    def populate_meta_fields(self) -> bool:
        return self._flag(keys.POPULATE_META_FIELDS, default=True)

    @property
    def create_schema(self) -> str | None:
        """Avro schema JSON given when the table was made by SQL."""
        return self.raw.get(keys.CREATE_SCHEMA) or None

    @property
    def cdc_enabled(self) -> bool:
        return self._flag(keys.CDC_ENABLED)

    @property
    def cdc_logging_mode(self) -> str:
        """`OP_KEY_ONLY`, `DATA_BEFORE` or `DATA_BEFORE_AFTER`."""
        return self._text(keys.CDC_LOGGING_MODE, "DATA_BEFORE_AFTER").upper()

    # Timeline

    @property
    def timezone(self) -> TimeZone:
        """The zone instant times are written in."""
        return "UTC" if self._text(keys.TIMELINE_TIMEZONE).upper() == "UTC" else "LOCAL"

    # Metadata table

    @property
    def metadata_partitions(self) -> tuple[str, ...]:
        """Partitions of the metadata table that are ready for readers."""
        return self._list(keys.METADATA_PARTITIONS)

    @property
    def metadata_partitions_inflight(self) -> tuple[str, ...]:
        """Partitions of the metadata table that are being built."""
        return self._list(keys.METADATA_PARTITIONS_INFLIGHT)

    @property
    def has_metadata_table(self) -> bool:
        """Whether a writer must keep a metadata table up to date: some of its partitions are ready or being built."""
        return bool(self.metadata_partitions or self.metadata_partitions_inflight)

    @property
    def is_metadata_table_ready(self) -> bool:
        """Whether the metadata table lists the table's files: without that no other partition of it counts."""
        return "files" in self.metadata_partitions

    # Edits

    def with_changes(self, changes: Mapping[str, str], *, drop: Collection[str] = ()) -> TableConfig:
        """The config with some properties set and some removed."""
        kept = {key: value for key, value in self.raw.items() if key not in drop}
        return replace(self, raw=kept | dict(changes))

    def _text(self, key: str, default: str = "") -> str:
        spellings = keys.READ_ALIASES.get(key, (key,))
        return next((value.strip() for name in spellings if (value := self.raw.get(name, ""))), default)

    def _flag(self, key: str, *, default: bool = False) -> bool:
        text = self._text(key).lower()
        return text == "true" if text else default

    def _list(self, key: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in self._text(key).split(",") if part.strip())


def profile_of(config: TableConfig) -> FormatProfile:
    """The format profile of a table, with its own folder names.

    Raises:
        Unsupported: the table has a version that is not read.
        Corrupt: one of the folders lies outside the table.
    """
    profile = profile_for(config.table_version)
    if profile.layout_version == 1:
        # Tables written by 1.x or downgraded carry `hoodie.timeline.path` too; layout 1 does not look at it.
        folder = config.raw.get(keys.ARCHIVE_FOLDER) or "archived"
        return replace(profile, history_dir=_folder(keys.HOODIE_DIR, folder, keys.ARCHIVE_FOLDER))
    timeline = _folder(keys.HOODIE_DIR, config.raw.get(keys.TIMELINE_PATH) or "timeline", keys.TIMELINE_PATH)
    history = config.raw.get(keys.TIMELINE_HISTORY_PATH) or "history"
    return replace(profile, timeline_dir=timeline, history_dir=_folder(timeline, history, keys.TIMELINE_HISTORY_PATH))


def infer_keygen_type(config: TableConfig) -> str:
    """The key generator Hudi takes when none is named: by the numbers of key and partition fields."""
    if not config.partition_fields:
        return "NON_PARTITION"
    if any(config.partition_field_types):
        return "CUSTOM"
    one_each = len(config.partition_fields) == 1 and len(config.record_key_fields) <= 1
    return "SIMPLE" if one_each else "COMPLEX"


def table_checksum(name: str, database: str = "") -> int:
    """What `hoodie.table.checksum` must be."""
    return zlib.crc32(f"{database}.{name}".encode())


def verify_checksum(config: TableConfig) -> bool:
    """Whether the stored checksum is right; a table without one passes."""
    if keys.CHECKSUM not in config.raw:
        return True
    return config.checksum == table_checksum(config.raw.get(keys.NAME, ""), config.raw.get(keys.DATABASE, ""))


def parse_table_config(data: bytes, path: str) -> TableConfig:
    """The config in the bytes of `hoodie.properties` or its backup.

    Raises:
        Corrupt: broken text, no table name (an empty or cut-off file), or a wrong checksum.
    """
    config = TableConfig(parse_properties_text(data, path))
    if not config.name:
        raise Corrupt(f"{path} is damaged: it has no {keys.NAME}", remedy=_REMEDY, path=path)
    if not verify_checksum(config):
        expected = table_checksum(config.raw.get(keys.NAME, ""), config.raw.get(keys.DATABASE, ""))
        raise Corrupt(
            f"{path} is damaged: its checksum is {config.raw[keys.CHECKSUM]} instead of {expected}",
            remedy=f"{_REMEDY}, or correct {keys.NAME}, {keys.DATABASE} or {keys.CHECKSUM} in it",
            path=path,
        )
    return config


def _folder(parent: str, said: str, key: str) -> str:
    return f"{parent}/{inside_table(said, key, keys.PROPERTIES_FILE)}"


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else None


def encode_table_config(config: TableConfig, saved_at: datetime) -> bytes:
    """The bytes of `hoodie.properties`, with a right checksum."""
    is_right = keys.CHECKSUM in config.raw and verify_checksum(config)
    checksum = str(table_checksum(config.raw.get(keys.NAME, ""), config.raw.get(keys.DATABASE, "")))
    moment = saved_at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    comment = f"Updated at {moment}" if is_right else f"Properties saved on {moment}"
    return encode_properties_text({**config.raw, keys.CHECKSUM: checksum}, (comment, java_date(saved_at)))
