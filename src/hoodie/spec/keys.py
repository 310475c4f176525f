"""Names of properties in `hoodie.properties`, of folders and of well-known files: the only place with Hudi's prefix.

1. A constant holds exactly what stands in the bytes.
2. Old spellings that must still be read stand in `READ_ALIASES`, new spelling first.

It does not know what the values mean; see `table_config` and `docs/format/properties.md`.
"""

from __future__ import annotations

# Folders and files
HOODIE_DIR = ".hoodie"
PROPERTIES_FILE = ".hoodie/hoodie.properties"
PROPERTIES_BACKUP_FILE = ".hoodie/hoodie.properties.backup"
TEMP_DIR = ".hoodie/.temp"
LOCKS_DIR = ".hoodie/.locks"
LOG_RENAMES_FILE = f"{TEMP_DIR}/log-names.upgrade"
"""A file of ours: while a downgrade gives log files other names, what they were called."""
LOG_RENAMES = "hoodie.table.log.renames"
"""A property of ours: when a downgrade last began to give log files other names, whatever became of it."""
HEARTBEAT_DIR = ".hoodie/.heartbeat"
OVERWRITE_SUFFIX = ".overwrite"
"""Ends the name of a file of ours in `TEMP_DIR`: how to finish putting one table in the place of another."""
METADATA_TABLE_DIR = ".hoodie/metadata"
PARTITION_METAFILE_PREFIX = ".hoodie_partition_metadata"

# Identity and version
NAME = "hoodie.table.name"
DATABASE = "hoodie.database.name"
TYPE = "hoodie.table.type"
VERSION = "hoodie.table.version"
INITIAL_VERSION = "hoodie.table.initial.version"
CHECKSUM = "hoodie.table.checksum"
FORMAT = "hoodie.table.format"

# Timeline
TIMELINE_LAYOUT_VERSION = "hoodie.timeline.layout.version"
TIMELINE_PATH = "hoodie.timeline.path"
TIMELINE_HISTORY_PATH = "hoodie.timeline.history.path"
ARCHIVE_FOLDER = "hoodie.archivelog.folder"
TIMELINE_TIMEZONE = "hoodie.table.timeline.timezone"

# Keys and partitions
RECORD_KEY_FIELDS = "hoodie.table.recordkey.fields"
PARTITION_FIELDS = "hoodie.table.partition.fields"
KEYGEN_CLASS = "hoodie.table.keygenerator.class"
KEYGEN_TYPE = "hoodie.table.keygenerator.type"
PARTITION_EXTRACTOR_CLASS = "hoodie.table.partition_extractor_class"
HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
SLASH_DATES = "hoodie.datasource.write.slash.separated.date.partitioning"
DROP_PARTITION_COLUMNS = "hoodie.datasource.write.drop.partition.columns"
PARTITION_METAFILE_BASE_FORMAT = "hoodie.partition.metafile.use.base.format"
TIMEBASED_PREFIX = "hoodie.keygen.timebased."
OLD_TIMEBASED_PREFIX = "hoodie.deltastreamer.keygen.timebased."
DATETIME_PARSER = "hoodie.keygen.datetime.parser.class"

# Ordering and merging
ORDERING_FIELDS = "hoodie.table.ordering.fields"
PRECOMBINE_FIELD = "hoodie.table.precombine.field"
MERGE_MODE = "hoodie.record.merge.mode"
MERGE_STRATEGY_ID = "hoodie.record.merge.strategy.id"
OLD_MERGE_STRATEGY = "hoodie.compaction.record.merger.strategy"
PAYLOAD_CLASS = "hoodie.compaction.payload.class"
LEGACY_PAYLOAD_CLASS = "hoodie.table.legacy.payload.class"
PARTIAL_UPDATE_MODE = "hoodie.table.partial.update.mode"
MERGE_PROPERTY_PREFIX = "hoodie.record.merge.property."
DELETE_FIELD = "hoodie.payload.delete.field"
DELETE_MARKER = "hoodie.payload.delete.marker"
UNAVAILABLE_VALUE = "hoodie.write.partial.update.unavailable.value"

# Storage layout (ours, but for the first two names, which are RFC-60's)
STORAGE_PATH = "hoodie.storage.path"
STORAGE_STRATEGY_CLASS = "hoodie.storage.strategy.class"
STORAGE_VERSIONS = "hoodie.storage.strategy.versions"
STORAGE_UUID = "hoodie.storage.table.uuid"
STORAGE_GUARD = "hoodie.storage.guard"
FEDERATED_SUFFIX = "_FEDERATED"
"""Ends the table type of a table whose files lie elsewhere: Hudi, which would see no files, refuses such a type."""

# Files
BASE_FILE_FORMAT = "hoodie.table.base.file.format"
OLD_BASE_FILE_FORMAT = "hoodie.table.ro.file.format"
LOG_FILE_FORMAT = "hoodie.table.log.file.format"
OLD_LOG_FILE_FORMAT = "hoodie.table.rt.file.format"
MULTIPLE_BASE_FILE_FORMATS = "hoodie.table.multiple.base.file.formats.enable"
POPULATE_META_FIELDS = "hoodie.populate.meta.fields"
CREATE_SCHEMA = "hoodie.table.create.schema"
CDC_ENABLED = "hoodie.table.cdc.enabled"
CDC_LOGGING_MODE = "hoodie.table.cdc.supplemental.logging.mode"

# Metadata table and indexes
METADATA_PARTITIONS = "hoodie.table.metadata.partitions"
METADATA_PARTITIONS_INFLIGHT = "hoodie.table.metadata.partitions.inflight"
INDEX_DEFS_PATH = "hoodie.table.index.defs.path"

# Bootstrap
BOOTSTRAP_BASE_PATH = "hoodie.bootstrap.base.path"
BOOTSTRAP_INDEX_ENABLE = "hoodie.bootstrap.index.enable"
BOOTSTRAP_INDEX_CLASS = "hoodie.bootstrap.index.class"
BOOTSTRAP_INDEX_TYPE = "hoodie.bootstrap.index.type"

READ_ALIASES: dict[str, tuple[str, ...]] = {
    ORDERING_FIELDS: (ORDERING_FIELDS, PRECOMBINE_FIELD),
    MERGE_STRATEGY_ID: (MERGE_STRATEGY_ID, OLD_MERGE_STRATEGY),
    BASE_FILE_FORMAT: (BASE_FILE_FORMAT, OLD_BASE_FILE_FORMAT),
    LOG_FILE_FORMAT: (LOG_FILE_FORMAT, OLD_LOG_FILE_FORMAT),
}
"""Key → the spellings that are looked up for it, in order."""

# Extra metadata of a commit
SCHEMA_EXTRA = "schema"
LATEST_SCHEMA_EXTRA = "latest_schema"
