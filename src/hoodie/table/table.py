"""The façade: open a table, ask it, write to it. It composes the packages below and decides nothing itself.

Every call loads the table's state anew, so a `Table` may be kept as long as one likes. Writes take the table lock, roll
back failed writes first, and either become visible as a whole or leave the table as it was. The modules that write are
imported with the first write: who only reads does not wait for them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from hoodie.arguments import checked_flag, checked_text, checked_texts, kind_of
from hoodie.engine import Engine, LocalEngine
from hoodie.env import Env, SystemEnv
from hoodie.errors import Conflict, Invalid
from hoodie.fileview import FileSystemView
from hoodie.given_options import resolve_given
from hoodie.layout import open_table_storage, physical
from hoodie.locks import options_to_wait, parse_lock_options
from hoodie.notebook import Displayed
from hoodie.query import (
    BucketHint,
    Finding,
    Progress,
    ReadOptions,
    ReadPlan,
    Rows,
    load_lookup_plan,
    load_read_plan,
    parse_read_options,
)
from hoodie.query.lookup_keys import lookup_keys
from hoodie.query.settled import PlannedRead, settled, settled_rows
from hoodie.records import storable, without_meta
from hoodie.remote import ServerAddress, asked_options, open_asked_view
from hoodie.spec import TableConfig
from hoodie.state.handle import TableHandle, load_handle, open_handle, timeline_of
from hoodie.storage import Storage
from hoodie.table.history import TableHistory
from hoodie.table.indexes import TableIndexes
from hoodie.table.keywords import read_keywords
from hoodie.table.opened import OpenedTable, checked_engine, option_texts
from hoodie.table.save import as_source
from hoodie.table.savepoints import TableSavepoints
from hoodie.table.services import TableServices
from hoodie.timeline import Timeline, instant_text, load_table_config, parse_as_of
from hoodie.view import FileSlice, collecting_later

if TYPE_CHECKING:
    from hoodie.services.health import TableHealth
    from hoodie.services.overview.writers import Writer
    from hoodie.transaction import Committed
    from hoodie.write import Operation

_LOCAL = LocalEngine()
_QUERY = "hoodie.datasource.query.type"
_BUCKETS = "hoodie.bucket.index.num.buckets"
_SMALL_FILE_LIMIT = "hoodie.parquet.small.file.limit"
_HASH_FIELDS = "hoodie.bucket.index.hash.field"


class Table(Displayed):
    """A Hudi table at a base path.

    `Table.open(path)` opens one, `Table.create(path, ...)` makes one. Options given here are defaults of every call and
    use Hudi's keys; keys without the `hoodie.` prefix go to the storage (credentials, endpoints).

    Its methods are about rows; `services`, `indexes`, `savepoints` and `history` have what else there is to do.

    Threads may share one: every call looks at the table anew. Reads run side by side, also beside a write; a write or
    service that meets another one, of whatever thread or process, waits for its turn (`wait`), then raises `Conflict`.
    """

    def __init__(self, handle: TableHandle, options: Mapping[str, str], engine: Engine) -> None:
        self._opened = OpenedTable(handle, dict(options), engine)

    @classmethod
    def open(
        cls,
        uri: str,
        *,
        options: Mapping[str, object] | None = None,
        engine: Engine | None = None,
        spark: Any = None,
        env: Env | None = None,
        server: str | ServerAddress | None = None,
        wait: float | None = None,
    ) -> Self:
        """Opens the table at `uri`. Its work runs on `spark` (a session) or `engine`; without one, in this process.
        Rows of `scan` and `lookup` are read by threads of this process, as many as a `LocalEngine` given here has.

        `server` (`host:port`) is a timeline server, Hudi's or `hoodie serve`: reads, writes and services ask it which
        files the table has. What it does not answer they ask the table itself, with a warning. Options can name it,
        too (`hoodie.filesystem.view.type`, `hoodie.filesystem.view.remote.host`).

        `wait` is how many seconds a write or service waits for its turn when another is at work (0: not at all);
        without it options say so (`hoodie.write.lock.wait_time_ms` and its like), whose defaults are Hudi's: most of an
        hour.

        Raises:
            Invalid: no such table, or not a Hudi table; no address. Corrupt: its properties are damaged.
            Unsupported: a table version `hoodie` does not know.
        """
        given = option_texts(options)
        if server is not None:
            given |= asked_options(server, given)
        if wait is not None:
            given |= options_to_wait(wait)
        return cls(open_handle(uri, given, env), given, _engine_of(engine, spark))

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
        """Creates an empty table at `uri` and opens it. With `schema` (data columns) it can be read at once.

        Raises:
            Conflict: a table is there already. Invalid: the options contradict each other or the schema.
        """
        from hoodie.write import create_table  # noqa: PLC0415 - loads what writes

        given = option_texts(options)
        storage = open_table_storage(uri, given)
        world = env or SystemEnv()
        if schema is not None and not isinstance(schema, pa.Schema):
            raise Invalid(
                f"A schema is one of Arrow's, not a {type(schema).__name__}",
                remedy="Pass pyarrow.schema([...]), or the schema of an Arrow table",
            )
        data_schema = None if schema is None else storable(without_meta(schema))
        try:
            create_table(storage, resolve_given(given), data_schema, world, keep_schema=True)
        except Conflict as error:
            if str(error.facts.get("path")).endswith("hoodie.properties"):
                remedy = "Open it with Table.open, or choose another path"
                raise Conflict(f"There is a table at {uri} already", remedy=remedy, **error.facts) from error
            raise
        return cls(load_handle(storage, world), given, _engine_of(engine, spark))

    @property
    def uri(self) -> str:
        """Base path of the table: a local path, or a URL with its scheme."""
        return self._opened.handle.storage.uri

    @property
    def storage(self) -> Storage:
        """Storage of the files under the base path."""
        return self._opened.handle.storage

    @property
    def config(self) -> TableConfig:
        """Table properties (`hoodie.properties`), read now."""
        return load_table_config(self.storage)

    @property
    def version(self) -> int:
        """Table version: 6, 8 or 9."""
        return self.config.table_version

    @property
    def services(self) -> TableServices:
        """Table services: compaction, cleaning, rollback and others, each with a preview of its plan."""
        return TableServices(self._opened)

    @property
    def indexes(self) -> TableIndexes:
        """Indexes of the metadata table, by name."""
        return TableIndexes(self._opened)

    @property
    def savepoints(self) -> TableSavepoints:
        """Savepoints, oldest first."""
        return TableSavepoints(self._opened)

    @property
    def history(self) -> TableHistory:
        """All instants: the archived timeline, then the active one."""
        return TableHistory(self._opened)

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of a snapshot query: meta columns, then data columns."""
        return self._planned(ReadOptions())[0].schema

    def timeline(self) -> Timeline:
        """Loads the active timeline."""
        return timeline_of(self._opened.fresh())

    def writers(self) -> tuple[Writer, ...]:
        """Loads who is at work: who holds the table lock or waits for it, who writes, who carries out a plan, with
        process, machine, since when and the last heartbeat; nobody gives an empty tuple.
        """
        from hoodie.services.overview.writers import load_writers  # noqa: PLC0415 - loads what writes

        config = self._opened.config({})
        return load_writers(self._opened.fresh(), config, parse_lock_options(config))

    def files(self, as_of: Any = None) -> tuple[FileSlice, ...]:
        """Lists the latest file slices (as of an instant), ordered by partition and file id; from the metadata table
        where there is one, else from the folders of all partitions.

        Raises:
            Invalid: `as_of` is neither an instant nor a time.
        """
        handle = self._opened.fresh()
        instant = (
            None if as_of is None else parse_as_of(instant_text(as_of, handle.config.timezone), handle.config.timezone)
        )
        use_metadata = parse_read_options(resolve_given(self._opened.options, purpose="read")).use_metadata
        with collecting_later():
            source = open_asked_view(self._opened.server, handle, timeline_of(handle), use_metadata=use_metadata)
            return source.load().slices_at(instant)

    def physical(self, path: str) -> str:
        """The full name under which a file of the table lies, by its path below the table. No call."""
        return physical(self.storage, checked_text("path", path, "Pass the path of a file below the table"))

    def read_plan(self, **query: Any) -> ReadPlan:
        """Plans a query without reading rows: files, filters, schema. Keywords are the fields of `ReadOptions`."""
        return self._planned(self._read_options(**query))[0]

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        *,
        progress: Progress | None = None,
        **query: Any,
    ) -> Rows:
        """Runs a query and returns its rows in the table's schema (or its `columns`): a stream of Arrow batches, with
        `.read_all()`, `.to_pandas()`, `.to_polars()` and `.to_duckdb()`.

        `filter` is a SQL condition or a `pyarrow.compute` expression. Other keywords: `query` (snapshot, incremental,
        cdc, ...), `as_of`, `begin` and `end` (which ask for an incremental query), times as texts or datetimes.
        `progress(done, all)` is called with bytes of files, as they are read.

        Raises:
            Invalid: an unknown column, a malformed instant. Unsupported: a merge rule nobody registered.
        """
        if progress is not None and not callable(progress):
            raise Invalid(
                f"progress is a function, not {kind_of(progress)}", remedy="Pass progress=lambda done, all: …"
            )
        options = self._read_options(columns=columns, filter=filter, **query)
        return self._rows(lambda: self._planned(options), progress)

    def lookup(self, keys: Any, columns: Sequence[str] | None = None, **query: Any) -> Rows:
        """Looks up records by key and returns the newest row of each (as of an instant with `as_of`), in no certain
        order.

        `keys`: one or many, as texts that stand in `_hoodie_record_key`, or as values of the key field; of several
        fields as tuples, mappings or a frame of these columns. Files that cannot hold them are not read: by the record
        index, a bucket index (where the table does not say how many simple buckets it has,
        `hoodie.bucket.index.num.buckets` does), or key ranges and bloom filters.

        Raises:
            Invalid: no list of keys. Unsupported: rows carry no keys and they are made of several fields.
        """
        options = self._read_options(columns=columns, **query)
        config = resolve_given(self._opened.options, purpose="read")
        count = config.integer(_BUCKETS) if config.is_set(_BUCKETS) else None
        buckets = BucketHint(count, config.list(_HASH_FIELDS) if config.is_set(_HASH_FIELDS) else ())
        given = list(keys) if isinstance(keys, Iterator) else keys  # whoever plans again needs them again

        def plan(handle: TableHandle, timeline: Timeline) -> PlannedRead:
            wanted = lookup_keys(given, handle.config.record_key_fields)
            view = self._asked_view(handle, timeline, options)
            storage, config = handle.storage, handle.config
            planned = load_lookup_plan(storage, config, timeline, wanted, options, buckets=buckets, file_view=view)
            return planned, storage

        return self._rows(lambda: self._settled(plan))

    def upsert(self, data: Any, **options: object) -> Committed:
        """Inserts records with new keys, updates those with known ones. `data`: Arrow table or reader, `Rows` of a
        scan, pandas, polars or Spark DataFrame. Returns and raises as `write`.
        """
        return self.write("upsert", data, options)

    def update(self, data: Any, **options: object) -> Committed:
        """Updates some columns: rows of `data` have key and partition columns and new values for the columns that
        change (with the ordering columns, if the table has any). Rows with unknown keys are left out.

        Raises:
            Unsupported: only log files can store such rows, in merge-on-read tables of version 8 and later.
        """
        return self._write("upsert", data, options, partial=True)

    def insert(self, data: Any, **options: object) -> Committed:
        """Inserts records without tagging: no key is looked up."""
        return self.write("insert", data, options)

    def append(self, data: Any, **options: object) -> Committed:
        """Appends records: no key is looked up and no small file filled, each task writes one new file for each
        partition. An `insert` with `hoodie.parquet.small.file.limit=0`. Where an index says which file group a key
        belongs to (buckets), it goes there. `services.compact_base_files` and `services.cluster` make the files large.
        """
        return self.write("insert", data, {_SMALL_FILE_LIMIT: 0, **options})

    def bulk_insert(self, data: Any, **options: object) -> Committed:
        """Inserts many records into new file groups, written while the input is read."""
        return self.write("bulk_insert", data, options)

    def delete(self, data: Any, **options: object) -> Committed:
        """Deletes the records whose keys are in `data`, which needs the key and partition columns only."""
        return self.write("delete", data, options)

    def insert_overwrite(self, data: Any, **options: object) -> Committed:
        """Replaces the partitions that occur in `data` by its rows."""
        return self.write("insert_overwrite", data, options)

    def insert_overwrite_table(self, data: Any, **options: object) -> Committed:
        """Replaces all rows of the table by `data`."""
        return self.write("insert_overwrite_table", data, options)

    def delete_partition(self, partitions: Sequence[str] | str, **options: object) -> Committed:
        """Deletes all rows of the named partition paths; `*` stands for any text."""
        return self._write("delete_partition", None, options, checked_texts("partitions", partitions))

    def write(self, operation: str, data: Any, options: Mapping[str, object] | None = None) -> Committed:
        """Runs one write operation (Hudi's names) with `data` and Hudi's option keys. Returns instant and completion
        time, counts of rows inserted, updated and deleted, files written and their bytes, partitions.

        Raises:
            Conflict: another writer is at work. Invalid: bad rows or options; nothing was written.
        """
        from hoodie.write import parse_operation  # noqa: PLC0415 - loads what writes

        return self._write(parse_operation(operation), data, {} if options is None else options)

    def validate(self, *, deep: bool = False) -> list[Finding]:
        """Checks files, timeline and indexes and returns what is wrong; empty when nothing is. Where there are indexes,
        rows are read to compare them with. `deep` reads and decodes every file to its end, where else sizes and footers
        are looked at, and looks which rows lie in another bucket than their keys say.
        """
        from hoodie.services.validate import validate  # noqa: PLC0415 - loads the writers of the metadata table

        checked_flag("deep", deep)
        return self._opened.looked_at(lambda handle: validate(handle, deep=deep), lambda found: not found)

    def doctor(self, **options: object) -> TableHealth:
        """Examines the table: sizes, log debt, stuck instants, what is wrong, each concern with its remedy."""
        from hoodie.services.health import examine  # noqa: PLC0415 - loads what writes

        config = self._opened.config(options)
        return self._opened.looked_at(lambda handle: examine(handle, config), lambda health: not health.has_errors)

    def report(self, path: str | None = None, **options: object) -> str:
        """Makes an HTML page about the table: how it is, what happened to it, what waits, where its bytes lie. It
        stands alone; also stored in the local file `path` when given. Costs what `doctor` does.

        Raises:
            Invalid: the file cannot be written.
        """
        from hoodie.present.page.table import table_page  # noqa: PLC0415 - loads what writes
        from hoodie.services.overview.table_overview import examined_overview  # noqa: PLC0415 - loads what writes

        config = self._opened.config(options)
        overview = self._opened.looked_at(
            lambda handle: examined_overview(handle, config), lambda found: not found.health.has_errors
        )
        page = table_page(overview)
        if path is not None:
            try:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(page)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                raise Invalid(
                    f"Cannot write {path}: {reason}", remedy="Name a file in a folder that is there"
                ) from error
        return page

    def drop(self) -> None:
        """Deletes the table with all its files. There is no way back."""
        from hoodie.services.dropping import drop_table  # noqa: PLC0415 - loads what writes

        drop_table(self.storage, self._opened.env, parse_lock_options(self._opened.config({})))

    def __repr__(self) -> str:
        config = self._opened.handle.config
        return f"Table({config.name!r}, {config.table_type}, version {config.table_version}, {self.uri!r})"

    def _read_options(self, **query: Any) -> ReadOptions:
        config = resolve_given(self._opened.options, purpose="read")
        said = config.text(_QUERY) if config.is_set(_QUERY) else None
        return replace(parse_read_options(config), **read_keywords(query, self._opened.handle.config.timezone, said))

    def _planned(self, options: ReadOptions) -> PlannedRead:
        def plan(handle: TableHandle, timeline: Timeline) -> PlannedRead:
            view, storage = self._asked_view(handle, timeline, options), handle.storage
            return load_read_plan(storage, handle.config, timeline, options, file_view=view), storage

        return self._settled(plan)

    def _asked_view(self, handle: TableHandle, timeline: Timeline, options: ReadOptions) -> FileSystemView | None:
        """The view by the timeline server that options name; None where they name none."""
        server = self._opened.server
        if server is None:
            return None
        return open_asked_view(server, handle, timeline, use_metadata=options.use_metadata)

    def _settled(self, plan: Callable[[TableHandle, Timeline], PlannedRead]) -> PlannedRead:
        return settled(self._opened.fresh, plan, self._opened.env.sleep)

    def _rows(self, plan: Callable[[], PlannedRead], progress: Progress | None = None) -> Rows:
        # Rows come to this process, whoever else the engine has: its own threads read them.
        engine = self._opened.engine if isinstance(self._opened.engine, LocalEngine) else _LOCAL
        return Rows(settled_rows(plan, engine, progress))

    def _write(
        self,
        operation: Operation,
        data: Any,
        options: Mapping[str, object],
        partitions: tuple[str, ...] | None = None,
        *,
        partial: bool = False,
    ) -> Committed:
        from hoodie.services.ingest import Request  # noqa: PLC0415 - loads what writes
        from hoodie.services.save import write_table  # noqa: PLC0415 - loads what writes

        config = self._opened.config(options)
        source = None if data is None else as_source(data)
        request = Request(operation, source, config, self._opened.engine, partitions, partial=partial)
        return write_table(self.storage, request, self._opened.env)


def _engine_of(engine: Engine | None, spark: Any) -> Engine:
    if engine is not None or spark is None:
        return _LOCAL if engine is None else checked_engine(engine)
    if not any(kind.__module__.startswith("pyspark.") for kind in type(spark).__mro__):
        raise Invalid(f"spark is a session of Spark, not {kind_of(spark)}", remedy="Pass spark=hoodie.session('app')")
    made: Engine = importlib.import_module("hoodie.spark").SparkEngine(spark)
    return made
