"""What steers a write, parsed once from config keys and the table's own properties.

Behaviour first, then performance. Keys and defaults are Hudi's (`hoodie config KEY` explains each).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, get_args

from hoodie.arguments import checked_text
from hoodie.config import Config
from hoodie.engine import BulkInsertSortMode
from hoodie.errors import Invalid, Unsupported
from hoodie.index import WriteIndex, is_index_named, parse_write_index
from hoodie.records import (
    COMMIT_TIME,
    EVENT_TIME,
    OVERWRITE_WITH_LATEST,
    BaseFileOptions,
    BloomOptions,
    KeyGenerator,
    MergeRule,
    parse_codec,
)
from hoodie.records.deletion import DeleteMarker, delete_marker
from hoodie.spec import BlockKind, FormatProfile, TableConfig
from hoodie.transaction.concurrency import is_non_blocking
from hoodie.write.file_sizing import SizingOptions
from hoodie.write.key_options import key_generator
from hoodie.write.log_task import LogOptions

Operation = Literal[
    "upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "insert_overwrite_table", "delete_partition"
]

Replaces = Literal["nothing", "partitions", "table"]

_REPLACED: dict[Operation, Replaces] = {
    "insert_overwrite": "partitions",
    "insert_overwrite_table": "table",
    "delete_partition": "partitions",
}
_ROW_GROUP = "hoodie.parquet.block.size"
_BLOOM_ENTRIES = "hoodie.index.bloom.num_entries"
_DROP_DUPLICATES = "hoodie.datasource.write.insert.drop.duplicates"
_BLOCK_KINDS = {"avro": BlockKind.AVRO_DATA, "parquet": BlockKind.PARQUET_DATA, "hfile": BlockKind.HFILE_DATA}
_OVERWRITING_PAYLOADS = {"OverwriteWithLatestAvroPayload"}
_EVENT_TIME_PAYLOADS = {"DefaultHoodieRecordPayload", "EventTimeAvroPayload"}


class DuplicatePolicy(Enum):
    """What `insert` does with a key the table already holds (`hoodie.datasource.insert.dup.policy`)."""

    NONE = "none"
    DROP = "drop"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of one write operation on one table.

    Behaviour: what is stored. `replaces` says what the new rows take the place of, `log` how log files are written
    (None: a copy-on-write table), `begins_in_logs` whether file groups begin with a log file, `partial` names the
    columns an update changes (None: rows are whole). Performance: `local_job_bytes` (largest input plus touched base
    files a commit handles in the driver), `inline_bytes` (rows a task keeps in memory before it spools),
    `copy_from_bytes` (what did not change in row groups of so many bytes is copied).

    `knows_buckets`: no row lies in buckets that the index does not know of, as far as options and properties tell.
    """

    operation: Operation
    replaces: Replaces
    keys: KeyGenerator
    carried_keys: bool
    index: WriteIndex
    combine: bool
    merge_rule: MergeRule
    ordering: tuple[str, ...]
    duplicate_policy: DuplicatePolicy
    sort_mode: BulkInsertSortMode
    sizing: SizingOptions
    base_file: BaseFileOptions
    log: LogOptions | None
    partial: tuple[str, ...] | None
    populate_meta_fields: bool
    dropped_columns: tuple[str, ...]
    delete_marker: DeleteMarker | None
    extra_metadata: Mapping[str, str]
    local_job_bytes: int
    inline_bytes: int
    copy_from_bytes: int
    begins_in_logs: bool = False
    knows_buckets: bool = True

    @property
    def recorded_operation(self) -> str:
        """The operation as the commit names it: rows in the place of all others are an overwrite, however made."""
        return "INSERT_OVERWRITE_TABLE" if self.replaces == "table" else self.operation.upper()

    @property
    def changes_logs(self) -> bool:
        """Whether changes of stored rows go to log files."""
        return self.log is not None and self.replaces == "nothing"

    @property
    def inserts_to_logs(self) -> bool:
        """Whether new rows go to log files, too: of file groups that are there, and of new ones if `begins_in_logs`."""
        return self.changes_logs and self.index.traits.inserts_to_logs and self.operation != "bulk_insert"

    @property
    def looks_up(self) -> bool:
        """Whether incoming keys are searched in the table."""
        if self.replaces != "nothing":
            return False
        if self.operation in ("upsert", "delete"):
            return True
        return self.operation == "insert" and self.duplicate_policy is not DuplicatePolicy.NONE

    @property
    def fills_small_files(self) -> bool:
        """Whether new rows may go to base files that are there."""
        return self.replaces == "nothing" and self.operation in ("upsert", "insert")

    @property
    def appends(self) -> bool:
        """Whether rows go to new file groups, and nobody looks at those that are there."""
        inserts = self.operation in ("insert", "bulk_insert") and self.replaces == "nothing"
        return inserts and not self.looks_up and self.sizing.small_file_bytes <= 0

    @property
    def writes_while_reading(self) -> bool:
        """An append or bulk insert that needs no look at other rows writes in its single pass over the input."""
        traits = self.index.traits
        asks_index = traits.assigns_groups or traits.follows_keys or traits.joins_commit
        return (self.operation == "bulk_insert" or self.appends) and not self.combine and not asks_index


def parse_operation(text: str) -> Operation:
    """The operation named `text` (case does not matter).

    Raises:
        Invalid: no such operation.
    """
    lowered = checked_text("The operation", text, "Use one of " + ", ".join(get_args(Operation))).lower()
    for name in get_args(Operation):
        if lowered == name:
            return name  # type: ignore[no-any-return]
    raise Invalid(
        f"Unknown write operation {text!r}",
        remedy="Use one of " + ", ".join(get_args(Operation)),
        key="hoodie.datasource.write.operation",
    )


def parse_write_options(
    operation: Operation,
    config: Config,
    table: TableConfig,
    profile: FormatProfile,
    stored_key: str | None = None,
    *,
    whole_table: bool = False,
    rows_have_keys: bool = False,
    partial: Collection[str] | None = None,
) -> WriteOptions:
    """Options for `operation` on the table described by `table`; `stored_key` is any record key it already holds.

    With `whole_table` the rows take the place of all the table has (save mode overwrite). `rows_have_keys`: the rows
    carry `_hoodie_record_key`, which names them in a table that makes its keys automatically. `partial` are the columns
    of rows that do not have all of the table's: an update of these.

    Raises:
        Invalid: a value outside its range. Unsupported: a value `hoodie` cannot honour.
    """
    carried_keys = rows_have_keys and not table.record_key_fields and operation in ("upsert", "delete")
    _ensure_possible(operation, config, table, carried_keys)
    index = parse_write_index(config, table)
    if table.is_merge_on_read and not index.traits.tells_stored_keys:
        _ensure_keys_not_asked(operation, config, table, index, partial)
    rule = _merge_rule(config, table)
    ordering = _ordering(config, table, rule)
    return WriteOptions(
        operation=operation,
        replaces="table" if whole_table else _REPLACED.get(operation, "nothing"),
        keys=key_generator(table, profile, config, stored_key),
        carried_keys=carried_keys,
        index=index,
        combine=_combines(operation, config),
        merge_rule=rule,
        ordering=ordering,
        duplicate_policy=_duplicate_policy(config),
        sort_mode=BulkInsertSortMode(config.text("hoodie.bulkinsert.sort.mode")),
        sizing=_sizing(config),
        base_file=base_file_options(config, table),
        log=_log(config, table, profile, ordering),
        partial=None if partial is None else _partial(operation, table, profile, partial),
        populate_meta_fields=table.populate_meta_fields,
        dropped_columns=table.partition_fields if table.drop_partition_columns else (),
        delete_marker=_delete_marker(config, table),
        extra_metadata=config.commit_metadata(),
        local_job_bytes=config.integer("hoodie.engine.local.max.bytes"),
        copy_from_bytes=config.integer("hoodie.row.group.copy.min.bytes"),
        begins_in_logs=is_non_blocking(config),
        knows_buckets=index.traits.assigns_groups or is_index_named(config, table),
        inline_bytes=min(64 * 1024 * 1024, max(1, config.integer("hoodie.engine.local.max.bytes"))),
    )


def _ensure_possible(operation: Operation, config: Config, table: TableConfig, carried_keys: bool) -> None:
    """Checks that the operation goes together with the table's keys and the duplicate options."""
    if operation in ("upsert", "delete") and not table.record_key_fields and not carried_keys:
        raise Invalid(
            f"Table {table.name} has no record key fields: its keys are made when rows are inserted, so {operation} "
            "cannot find a row again",
            remedy="Pass rows read from the table, with their _hoodie_record_key; or use insert; or make a table with "
            "hoodie.datasource.write.recordkey.field",
            operation=operation,
        )
    if operation == "bulk_insert" and config.flag(_DROP_DUPLICATES):
        raise Invalid(
            f"bulk_insert does not look for keys, so {_DROP_DUPLICATES} cannot be honoured",
            remedy="Use operation insert, or leave the option out",
            key=_DROP_DUPLICATES,
        )


def _ensure_keys_not_asked(
    operation: Operation, config: Config, table: TableConfig, index: WriteIndex, partial: Collection[str] | None
) -> None:
    """Checks that nothing depends on whether log files have a key."""
    asks = config.flag(_DROP_DUPLICATES) or _duplicate_policy(config) is not DuplicatePolicy.NONE
    if partial is not None or (operation == "insert" and asks):
        raise Unsupported(
            f"Table {table.name} has index {index.traits.name}, which knows where a key belongs and not whether log "
            "files have it",
            remedy="Use operation upsert with whole rows",
        )


def _log(config: Config, table: TableConfig, profile: FormatProfile, ordering: tuple[str, ...]) -> LogOptions | None:
    if not table.is_merge_on_read:
        return None
    late = profile.capabilities.late_log_headers
    if len(ordering) > 1 and not late:
        raise Unsupported(
            f"Table {table.name} has {len(ordering)} ordering fields, and deletes in log files of version "
            f"{table.table_version} can have one ordering value",
            remedy="Use one ordering field, or make the table with version 8 or later",
        )
    return LogOptions(
        kind=_BLOCK_KINDS[config.text("hoodie.logfile.data.block.format")],
        positions=config.flag("hoodie.write.record.positions"),
        late_headers=late,
        marker=profile.log_naming.marker,
        block_bytes=config.integer("hoodie.logfile.data.block.max.size"),
        file_bytes=config.integer("hoodie.logfile.max.size"),
    )


def _partial(
    operation: Operation, table: TableConfig, profile: FormatProfile, columns: Collection[str]
) -> tuple[str, ...]:
    """The columns among `columns` that an update changes: not those that name the row and its place."""
    if operation != "upsert":
        raise Invalid(f"Rows with some of the columns can only update, not {operation}", remedy="Pass whole rows")
    if not (table.is_merge_on_read and profile.capabilities.late_log_headers):
        raise Unsupported(
            f"Table {table.name} ({table.table_type}, version {table.table_version}) cannot store updates of some "
            "columns: only log files of version 8 and later can",
            remedy="Read the rows, change them, and upsert them whole",
        )
    named = {*table.record_key_fields, *table.partition_fields}
    changed = tuple(name for name in columns if name not in named)
    if not changed:
        raise Invalid("The rows have no column to update beside keys and partitions", remedy="Add the new values")
    return changed


def _combines(operation: Operation, config: Config) -> bool:
    if operation == "upsert":
        return config.flag("hoodie.combine.before.upsert")
    if operation == "delete":
        return config.flag("hoodie.combine.before.delete")
    # In Hudi leaving out duplicates of stored rows leaves out those within the input; the newer policy option does not.
    return config.flag("hoodie.combine.before.insert") or config.flag(_DROP_DUPLICATES)


def _ordering(config: Config, table: TableConfig, rule: MergeRule) -> tuple[str, ...]:
    """The table's ordering fields. Where no merge mode is stored (version 6) a write may name them itself."""
    if not (rule.ordered_in_input or rule.ordered_against_stored):
        return ()
    if table.ordering_fields or table.stored_merge_mode is not None:
        return table.ordering_fields
    return config.list("hoodie.table.ordering.fields")


def _merge_rule(config: Config, table: TableConfig) -> MergeRule:
    """The rule of the stored merge mode; of the payload class where there is no mode (version 6).

    A version 6 copy-on-write table stores no payload class: each write names it, and Hudi 0.15 overwrites without one.
    """
    if table.partial_update_mode is None:
        if table.stored_merge_mode == "COMMIT_TIME_ORDERING":
            return COMMIT_TIME
        if table.stored_merge_mode == "EVENT_TIME_ORDERING":
            return EVENT_TIME
    if table.stored_merge_mode is None:
        named = table.payload_class or config.explicit.get("hoodie.datasource.write.payload.class") or ""
        payload = named.rsplit(".", 1)[-1]
        if payload in _EVENT_TIME_PAYLOADS:
            return EVENT_TIME
        if not payload or payload in _OVERWRITING_PAYLOADS:
            return OVERWRITE_WITH_LATEST
    raise Unsupported(
        f"Table {table.name} merges rows with {table.payload_class or table.merge_mode}, which hoodie cannot run yet",
        remedy="Write it with Apache Hudi, or make a table with EVENT_TIME_ORDERING or COMMIT_TIME_ORDERING",
    )


def _delete_marker(config: Config, table: TableConfig) -> DeleteMarker | None:
    """Column and text that mark deletes: the table's merge properties, else the options; both or neither are set."""
    return delete_marker({**config.explicit, **table.merge_properties})


def _duplicate_policy(config: Config) -> DuplicatePolicy:
    if config.flag(_DROP_DUPLICATES):
        return DuplicatePolicy.DROP
    return DuplicatePolicy(config.text("hoodie.datasource.insert.dup.policy"))


def _sizing(config: Config) -> SizingOptions:
    return SizingOptions(
        max_file_bytes=config.integer("hoodie.parquet.max.file.size"),
        small_file_bytes=config.integer("hoodie.parquet.small.file.limit"),
        record_size_estimate=config.integer("hoodie.copyonwrite.record.size.estimate"),
        estimation_threshold=config.number("hoodie.record.size.estimation.threshold"),
        split_rows=config.integer("hoodie.copyonwrite.insert.split.size"),
        auto_split=config.flag("hoodie.copyonwrite.insert.auto.split"),
        looked_at_commits=config.integer("_hoodie.record.size.estimator.max.commits"),
        footer_bytes=config.integer("hoodie.record.size.estimator.average.metadata.size"),
        log_ratio=config.number("hoodie.logfile.to.parquet.compression.ratio"),
        fills_beside_logs=max(0, config.integer("hoodie.merge.small.file.group.candidates.limit")),
    )


def base_file_options(config: Config, table: TableConfig) -> BaseFileOptions:
    """How base files of the table are written, whoever writes them."""
    bloom = BloomOptions(
        filter_type=config.text("hoodie.bloom.index.filter.type"),  # type: ignore[arg-type]
        entries=config.integer(_BLOOM_ENTRIES),
        fpp=config.number("hoodie.index.bloom.fpp"),
        max_entries=config.integer("hoodie.bloom.index.filter.dynamic.max.entries"),
        fitted=not config.is_set(_BLOOM_ENTRIES),
    )
    wanted = table.populate_meta_fields and config.flag("hoodie.parquet.bloom.filter.enabled")
    return BaseFileOptions(
        bloom=bloom if wanted else None,
        codec=parse_codec(config.text("hoodie.parquet.compression.codec")),
        page_bytes=config.integer("hoodie.parquet.page.size"),
        dictionary=config.flag("hoodie.parquet.dictionary.enabled"),
        # Hudi's default is for its JVM writer; ours bounds the memory of a task.
        **({"row_group_bytes": config.integer(_ROW_GROUP)} if config.is_set(_ROW_GROUP) else {}),
    )
