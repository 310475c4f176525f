"""The façade: open a table, ask it, write to it. It composes the packages below and decides nothing itself.

Every call loads a fresh picture of the table, so a `Table` may be kept as long as one likes. Writes take the table's
writer exclusion, undo failed writes first, and either become visible as a whole or leave the table as it was.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import pyarrow as pa

from hoodie.config import Config, resolve
from hoodie.engine import ArrowSource, Engine, LocalEngine, Source
from hoodie.env import Env, SystemEnv
from hoodie.errors import CommitUnknown, Fenced, HudiError, Invalid
from hoodie.handle import TableHandle
from hoodie.read import ReadOptions, ReadPlan, load_read_plan, load_table_schema, run_read
from hoodie.read.validate import Finding, validate_table
from hoodie.records import read_footer, storable, without_meta
from hoodie.services.rollback import heal
from hoodie.spec import TableConfig, profile_of
from hoodie.storage import Storage, open_storage
from hoodie.timeline import Timeline, is_table, load_table_config, load_timeline, parse_as_of
from hoodie.view import FileSlice, list_partitions, load_view
from hoodie.write import (
    Committed,
    Engines,
    Operation,
    Write,
    WriteOptions,
    create_table,
    delete_partitions,
    drop_metadata_table,
    ensure_compatible,
    ensure_writable,
    evolve_schema,
    match_partitions,
    needs_stored_key,
    parse_operation,
    parse_write_options,
    partitions_of,
    run_write,
)

log = logging.getLogger(__name__)

SaveMode = Literal["append", "overwrite", "ignore", "error", "errorifexists"]

_OPERATION = "hoodie.datasource.write.operation"
_LOCAL = LocalEngine()


class Table:
    """A Hudi table at a base path.

    `Table.open(path)` opens one, `Table.create(path, ...)` makes one. Options given here are defaults of every call and
    use Hudi's keys; keys without the `hoodie.` prefix go to the storage (credentials, endpoints).
    """

    def __init__(self, handle: TableHandle, options: Mapping[str, str], engine: Engine) -> None:
        self._handle = handle
        self._options = dict(options)
        self._engine = engine

    @classmethod
    def open(
        cls,
        uri: str,
        *,
        options: Mapping[str, object] | None = None,
        engine: Engine | None = None,
        spark: Any = None,
        env: Env | None = None,
    ) -> Self:
        """The table at `uri`. With `spark` (a session) or `engine`, work is spread there; else this process does it.

        Raises:
            Invalid: no such table, or not a Hudi table. Corrupt: its properties are damaged.
            Unsupported: a table version `hoodie` does not know.
        """
        given = _texts(options)
        storage = open_storage(uri, _storage_options(given))
        return cls(_load_handle(storage, env or SystemEnv()), given, engine or _engine_of(spark))

    @classmethod
    def create(
        cls,
        uri: str,
        *,
        schema: pa.Schema | None = None,
        options: Mapping[str, object] | None = None,
        engine: Engine | None = None,
        spark: Any = None,
        env: Env | None = None,
    ) -> Self:
        """A new, empty table at `uri`. With `schema` (data columns) it can be read at once and has no rows.

        Raises:
            Conflict: a table is there already. Invalid: the options contradict each other or the schema.
        """
        given = _texts(options)
        storage = open_storage(uri, _storage_options(given))
        world = env or SystemEnv()
        data_schema = None if schema is None else storable(without_meta(schema))
        create_table(storage, resolve(given), data_schema, world)
        return cls(_load_handle(storage, world), given, engine or _engine_of(spark))

    @property
    def uri(self) -> str:
        return self._handle.storage.uri

    @property
    def storage(self) -> Storage:
        return self._handle.storage

    @property
    def config(self) -> TableConfig:
        """The table's own properties, read now."""
        return load_table_config(self.storage)

    @property
    def version(self) -> int:
        """Table version: 6, 8 or 9."""
        return self.config.table_version

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of a snapshot query: the meta columns, then the data columns."""
        return self.read_plan().schema

    def timeline(self) -> Timeline:
        """The active timeline, read now."""
        return _timeline(self._reload())

    def files(self, as_of: str | None = None) -> tuple[FileSlice, ...]:
        """Latest file slices (as of an instant), ordered by partition and file id."""
        handle = self._reload()
        instant = None if as_of is None else parse_as_of(as_of, handle.config.timezone)
        return load_view(handle.storage, handle.config, _timeline(handle)).slices_at(instant)

    def read_plan(self, **query: Any) -> ReadPlan:
        """What a query would read; keywords are the fields of `ReadOptions`."""
        handle = self._reload()
        columns = query.pop("columns", None)
        options = ReadOptions(columns=None if columns is None else tuple(columns), **query)
        return load_read_plan(handle.storage, handle.config, _timeline(handle), options)

    def scan(self, columns: Sequence[str] | None = None, filter: Any = None, **query: Any) -> pa.RecordBatchReader:
        """Rows of a query as a stream of Arrow batches in the table's schema (or its `columns`).

        `filter` is a SQL condition or a `pyarrow.compute` expression. Other keywords: `query` (snapshot, incremental, ...),
        `as_of`, `begin`, `end`.

        Raises:
            Invalid: an unknown column, a malformed instant. Unsupported: slices with log files.
        """
        plan = self.read_plan(columns=columns, filter=filter, **query)
        return run_read(plan, self.storage, _LOCAL)

    def upsert(self, data: Any, **options: object) -> Committed:
        """Insert new keys, update known ones. `data`: Arrow table or reader, pandas or Spark DataFrame."""
        return self.write("upsert", data, options)

    def insert(self, data: Any, **options: object) -> Committed:
        """Insert rows without looking for their keys."""
        return self.write("insert", data, options)

    def bulk_insert(self, data: Any, **options: object) -> Committed:
        """Insert many rows: new files only, written while the input is read."""
        return self.write("bulk_insert", data, options)

    def delete(self, data: Any, **options: object) -> Committed:
        """Delete the keys in `data`, which needs the key and partition columns only."""
        return self.write("delete", data, options)

    def insert_overwrite(self, data: Any, **options: object) -> Committed:
        """Replace the partitions that occur in `data` by its rows."""
        return self.write("insert_overwrite", data, options)

    def insert_overwrite_table(self, data: Any, **options: object) -> Committed:
        """Replace all rows of the table by `data`."""
        return self.write("insert_overwrite_table", data, options)

    def delete_partition(self, partitions: Sequence[str] | str, **options: object) -> Committed:
        """Remove all rows of the named partition paths; `*` stands for any text."""
        named = partitions if isinstance(partitions, str) else ",".join(partitions)
        key = "hoodie.datasource.write.partitions.to.delete"
        return self.write("delete_partition", None, {**options, key: named})

    def write(self, operation: str, data: Any, options: Mapping[str, object] | None = None) -> Committed:
        """The outcome of one write operation (Hudi's names) with `data` and Hudi's option keys.

        Raises:
            Conflict: another writer is at work. Invalid: bad rows or options; nothing was written.
        """
        config = resolve({**self._options, **_texts(options)})
        return self._write(parse_operation(operation), None if data is None else self._source(data), config)

    def validate(self) -> list[Finding]:
        """What is wrong with the table's files and timeline; empty when nothing is."""
        return validate_table(self._reload())

    def drop(self) -> None:
        """Delete the table with all its files. There is no way back."""
        with self.storage.exclusive("drop"):
            self.storage.delete_dir("")

    def __repr__(self) -> str:
        config = self._handle.config
        return f"Table({config.name!r}, {config.table_type}, version {config.table_version}, {self.uri!r})"

    def _reload(self) -> TableHandle:
        self._handle = _load_handle(self.storage, self._handle.env)
        return self._handle

    def _source(self, data: Any) -> Source:
        return as_source(data)

    def _write(self, operation: Operation, source: Source | None, config: Config) -> Committed:
        with self.storage.exclusive(operation):
            handle = ensure_writable(self._reload(), config)
            ensure_compatible(config, handle.config)
            handle = drop_metadata_table(handle, config)
            timeline = heal(handle, _LOCAL)
            stored_key = _stored_key(handle, timeline)
            options = parse_write_options(operation, config, handle.config, handle.profile, stored_key)
            write = _planned(handle, timeline, options, source, config, Engines(_LOCAL, self._engine))
            try:
                if operation == "delete_partition":
                    return delete_partitions(write, self._named_partitions(write, source, config))
                if source is None:
                    raise Invalid(f"Operation {operation} needs rows", remedy="Pass them as data")
                return run_write(write, source)
            except (CommitUnknown, Fenced):
                raise
            except Exception:
                _undo(handle)
                raise

    def _named_partitions(self, write: Write, source: Source | None, config: Config) -> tuple[str, ...]:
        existing = list_partitions(self.storage)
        key = "hoodie.datasource.write.partitions.to.delete"
        if config.is_set(key):
            return match_partitions([text.strip() for text in config.text(key).split(",")], existing)
        if source is None:
            raise Invalid("delete_partition names no partition", remedy=f"Set {key} or pass rows of the partitions")
        return match_partitions(partitions_of(write, source), existing)


def write(
    source: Source,
    uri: str,
    options: Mapping[str, object],
    mode: SaveMode = "error",
    *,
    engine: Engine | None = None,
    env: Env | None = None,
) -> Committed | None:
    """What `df.write.format("hudi").options(...).mode(mode).save(uri)` does; None when mode `ignore` found a table.

    Mode overwrite of an existing table replaces all its rows in one commit: its history stays readable and a failed write
    loses nothing. When the options ask for another kind of table (key, partitioning, version ...) the old one is dropped
    once the new rows are in hand.
    """
    given = _texts(options)
    config = resolve(given)
    world = env or SystemEnv()
    storage = open_storage(uri, _storage_options(given))
    exists = is_table(storage)
    if exists and mode in ("error", "errorifexists"):
        raise Invalid(
            f"A Hudi table exists at {storage.uri}", remedy='Use mode "append" to write to it', path=storage.uri
        )
    if exists and mode == "ignore":
        return None
    operation = _default_operation(config, storage if exists and mode == "append" else None)
    if exists and mode == "overwrite" and operation not in ("insert_overwrite", "insert_overwrite_table"):
        source, operation = _replacing(storage, source, config, operation, world)
    if not is_table(storage):
        create_table(storage, config, storable(without_meta(source.schema)), world)
    table = Table(_load_handle(storage, world), given, engine or _LOCAL)
    return table._write(operation, source, config)


def as_source(data: Any) -> Source:
    """`data` as the input of a write: Arrow table, batch or reader, pandas, polars or Spark DataFrame, or a `Source`.

    Raises:
        Invalid: anything else.
    """
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return ArrowSource(data)
    if isinstance(data, pa.RecordBatch):
        return ArrowSource(pa.Table.from_batches([data]))
    if all(hasattr(data, verb) for verb in ("consume", "arranged", "mapped", "small")):
        return data  # type: ignore[no-any-return]
    module = type(data).__module__
    if module.startswith("pyspark."):
        return importlib.import_module("hoodie.spark").FrameSource(data)  # type: ignore[no-any-return]
    if module.startswith("pandas."):
        return ArrowSource(pa.Table.from_pandas(data, preserve_index=False))
    if hasattr(data, "__arrow_c_stream__"):
        return ArrowSource(pa.table(data))
    raise Invalid(
        f"Cannot write a {module}.{type(data).__qualname__}",
        remedy="Pass an Arrow table or reader, or a pandas, polars or Spark DataFrame",
    )


def _default_operation(config: Config, existing: Storage | None) -> Operation:
    """The operation asked for; upsert otherwise, or insert where keys are made automatically."""
    if config.is_set(_OPERATION):
        return parse_operation(config.text(_OPERATION))
    if existing is not None:
        keyed = bool(load_table_config(existing).record_key_fields)
    else:
        keyed = config.is_set("hoodie.datasource.write.recordkey.field")
    return parse_operation(config.text(_OPERATION)) if keyed else "insert"


def _replacing(
    storage: Storage, source: Source, config: Config, operation: Operation, env: Env
) -> tuple[Source, Operation]:
    try:
        ensure_compatible(config, load_table_config(storage), whole_table=True)
    except HudiError as difference:
        log.info("overwrite makes a new table: %s", difference)
    else:
        return source, "insert_overwrite_table"
    held = ArrowSource(pa.Table.from_batches(source.consume(_all_batches, "read input"), source.schema))
    with storage.exclusive("overwrite"):
        storage.delete_dir("")
    return held, operation


def _all_batches(_: Any, batches: Any) -> Any:
    yield from batches


def _planned(
    handle: TableHandle,
    timeline: Timeline,
    options: WriteOptions,
    source: Source | None,
    config: Config,
    engines: Engines,
) -> Write:
    current = load_table_schema(handle.storage, handle.config, load_view(handle.storage, handle.config, timeline))
    evolution = evolve_schema(options, current, None if source is None else source.schema, config)
    return Write(handle, timeline, options, engines, evolution.write_schema, evolution.table_schema)


def _stored_key(handle: TableHandle, timeline: Timeline) -> str | None:
    """A record key the table holds, where its spelling decides how new keys are spelled."""
    if not needs_stored_key(handle.config, handle.profile):
        return None
    slices = load_view(handle.storage, handle.config, timeline).slices_at()
    footers = (read_footer(handle.storage, one.base.path) for one in slices if one.base is not None)
    return next((footer.min_key for footer in footers if footer.min_key is not None), None)


def _timeline(handle: TableHandle) -> Timeline:
    return load_timeline(handle.storage, handle.profile, handle.config.timezone)


def _undo(handle: TableHandle) -> None:
    """Roll the failed write back now; if that fails too, the next write does it."""
    cause = sys.exc_info()[1]
    try:
        heal(handle, _LOCAL)
    except HudiError as error:
        log.warning("the failed write (%s) could not be rolled back now: %s; the next write will do it", cause, error)


def _load_handle(storage: Storage, env: Env) -> TableHandle:
    config = load_table_config(storage)
    return TableHandle(storage, config, profile_of(config), env)


def _engine_of(spark: Any) -> Engine:
    return _LOCAL if spark is None else importlib.import_module("hoodie.spark").SparkEngine(spark)


def _texts(options: Mapping[str, object] | None) -> dict[str, str]:
    return {key: _text(value) for key, value in (options or {}).items() if value is not None}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _storage_options(options: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if not key.startswith("hoodie.")}
