"""`hoodie.enable`: Spark's readers and writers understand the format names `hudi` and `org.apache.hudi`.

1. The methods of PySpark's own classes are wrapped, once in a process. For any other format they do what they did.
2. A wrapped object notes what it is told (format, options, mode ...), in whatever order, beside telling Spark; only the
   final call (`save`, `load`, `start`) looks at the format.
3. What is not there yet for Hudi says so: tables of the catalog, SQL that makes or changes tables, writing into views,
   writing over Connect.

Nothing else of `hoodie` knows these classes.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hoodie.errors import Invalid, Unsupported
from hoodie.spark import failures
from hoodie.spark.view_writes import ensure_no_view, ensure_no_view_is_changed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = frozenset({"hudi", "org.apache.hudi"})

_CONNECT = "pyspark.sql.connect"
_DEFAULT_FORMAT = "spark.sql.sources.default"
_NOTES = "_hoodie_notes"
_ENABLED = "_hoodie_enabled"


@dataclass(slots=True)
class _Notes:
    """What one reader or writer was told."""

    format: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    mode: str | None = None
    partition_by: tuple[str, ...] = ()
    output_mode: str = "append"
    query_name: str | None = None
    schema: Any = None
    unfit: str | None = None
    table: str | None = None


def enable(spark: SparkSession) -> SparkSession:
    """Teaches this process the format `hudi` and returns `spark`. May be called again, and with any session.

    The classes of Spark Connect are wrapped when `spark` is a Connect session or they are loaded already.
    """
    failures.install()
    _enable_in("pyspark.sql")
    if type(spark).__module__.startswith(_CONNECT) or f"{_CONNECT}.readwriter" in sys.modules:
        _enable_in(_CONNECT)
    return spark


def _enable_in(package: str) -> None:
    readers, streams, queries, sessions, merges, catalogs = (
        importlib.import_module(f"{package}.{name}")
        for name in ("readwriter", "streaming.readwriter", "streaming.query", "session", "merge", "catalog")
    )
    for owner, wrap in (
        (readers.DataFrameReader, _wrap_reader),
        (readers.DataFrameWriter, _wrap_writer),
        (readers.DataFrameWriterV2, _wrap_table_writer),
        (streams.DataStreamReader, _wrap_stream_reader),
        (streams.DataStreamWriter, _wrap_stream_writer),
        (queries.StreamingQuery, _wrap_query),
        (merges.MergeIntoWriter, _wrap_merge),
        (sessions.SparkSession, _wrap_session),
        (catalogs.Catalog, _wrap_catalog),
    ):
        if _ENABLED not in vars(owner):
            wrap(owner)
            setattr(owner, _ENABLED, True)


# --- the wrapped classes ---------------------------------------------------------------------------------------------


def _wrap_reader(owner: type) -> None:
    _note_options(owner)
    _note_value(owner, "schema", "schema")

    def load(original: Any, self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:
        if not _is_hudi(self, format):
            return original(self, path, format, schema, **options)
        self.options(**options)
        _ensure_own_schema(self, schema)
        notes = _notes(self)
        from hoodie.spark.reader import read_frame  # noqa: PLC0415 - loaded by the first use
        from hoodie.spark.writer import path_of, without_path  # noqa: PLC0415 - loaded by the first use

        return read_frame(_session(self), path_of(_one_path(path), notes.options), without_path(notes.options))

    _replace(owner, "load", load)


def _wrap_writer(owner: type) -> None:
    _note_options(owner)
    _note_value(owner, "mode", "mode")
    _note_partitioning(owner)
    for name in ("bucketBy", "sortBy", "clusterBy"):
        _note(owner, name, functools.partial(_set_unfit, name))

    def save(  # noqa: PLR0917
        original: Any, self: Any, path: Any = None, format: Any = None, mode: Any = None, partitionBy: Any = None,
        **options: Any,
    ) -> Any:  # fmt: skip
        if not _is_hudi(self, format):
            return original(self, path, format, mode, partitionBy, **options)
        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        notes = _fit_notes(self)
        from hoodie.spark.writer import connect_unsupported, write_frame  # noqa: PLC0415 - loaded by the first use

        if _is_connect(self):  # its `_df` is a plan and no DataFrame
            raise connect_unsupported()
        write_frame(self._df, path, notes.options, notes.mode or "error", notes.partition_by)
        return None

    def insert_into(original: Any, self: Any, tableName: Any, *args: Any, **named: Any) -> Any:
        _ensure_not_hudi(self, None, "insertInto")
        _ensure_no_view(self, tableName)
        return original(self, tableName, *args, **named)

    def save_as_table(original: Any, self: Any, name: Any, format: Any = None, *args: Any, **named: Any) -> Any:
        _ensure_not_hudi(self, format, "saveAsTable")
        _ensure_no_view(self, name)
        return original(self, name, format, *args, **named)

    _replace(owner, "save", save)
    _replace(owner, "insertInto", insert_into)
    _replace(owner, "saveAsTable", save_as_table)


def _wrap_table_writer(owner: type) -> None:
    _note_value(owner, "using", "format")
    _note_table(owner)
    for name in ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions"):

        def finish(original: Any, self: Any, *args: Any, _name: str = name, **named: Any) -> Any:
            _ensure_not_hudi(self, None, f"writeTo(...).{_name}", has_default=False)
            _ensure_no_view(self, _notes(self).table)
            return original(self, *args, **named)

        _replace(owner, name, finish)


def _wrap_merge(owner: type) -> None:
    _note_table(owner)

    def merge(original: Any, self: Any, *args: Any, **named: Any) -> Any:
        _ensure_no_view(self, _notes(self).table)
        return original(self, *args, **named)

    _replace(owner, "merge", merge)


def _wrap_stream_reader(owner: type) -> None:
    _note_options(owner)
    _note_value(owner, "schema", "schema")

    def load(original: Any, self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:
        if not _is_hudi(self, format):
            return original(self, path, format, schema, **options)
        _ensure_own_schema(self, schema)
        from hoodie.spark.data_source import NAME, register  # noqa: PLC0415 - loaded by the first use
        from hoodie.spark.session_options import with_session  # noqa: PLC0415 - loaded by the first use
        from hoodie.spark.writer import path_of  # noqa: PLC0415 - loaded by the first use

        register(_session(self))
        self.options(**options)
        path_of(path, _notes(self).options)  # refuses what has none
        self.options(**with_session(_session(self), _notes(self).options))
        return original(self, path, NAME)

    _replace(owner, "load", load)


def _wrap_stream_writer(owner: type) -> None:
    _note_options(owner)
    _note_value(owner, "outputMode", "output_mode")
    _note_value(owner, "queryName", "query_name")
    partition_by = vars(owner)["partitionBy"]
    _replace(owner, "partitionBy", _hold_partitioning)
    _note(owner, "clusterBy", functools.partial(_set_unfit, "clusterBy"))

    def start(  # noqa: PLR0917
        original: Any, self: Any, path: Any = None, format: Any = None, outputMode: Any = None, partitionBy: Any = None,
        queryName: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        if not _is_hudi(self, format):
            _tell_partitioning(self, partition_by)
            return original(self, path, format, outputMode, partitionBy, queryName, **options)
        self.options(**options)
        if outputMode is not None:
            self.outputMode(outputMode)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        if queryName is not None:
            self.queryName(queryName)
        notes = _fit_notes(self)
        from hoodie.spark.session_options import with_session  # noqa: PLC0415 - loaded by the first use
        from hoodie.spark.streaming import BatchSink, ensure_checkpointed  # noqa: PLC0415 - loaded by the first use
        from hoodie.spark.writer import connect_unsupported  # noqa: PLC0415 - loaded by the first use

        if _is_connect(self):
            raise connect_unsupported()
        ensure_checkpointed(_session(self), notes.options, notes.query_name)
        given = with_session(_session(self), notes.options, writes=True)
        sink = BatchSink(path, given, notes.partition_by, notes.output_mode)
        self.foreachBatch(failures.through_jvm()(sink))
        return original(self)

    def to_table(original: Any, self: Any, tableName: Any, format: Any = None, *args: Any, **named: Any) -> Any:
        _ensure_not_hudi(self, format, "toTable")
        _ensure_no_view(self, tableName)
        _tell_partitioning(self, partition_by)
        return original(self, tableName, format, *args, **named)

    _replace(owner, "start", start)
    _replace(owner, "toTable", to_table)


def _wrap_query(owner: type) -> None:
    def exception(original: Any, self: Any) -> Any:
        found = original(self)
        return found if found is None else failures.from_text(str(found)) or found

    _replace(owner, "exception", exception)


def _wrap_session(owner: type) -> None:
    def sql(original: Any, self: Any, sqlQuery: Any, args: Any = None, **frames: Any) -> Any:
        if isinstance(sqlQuery, str) and not _is_connect(self):
            ensure_no_view_is_changed(self, sqlQuery)
        if not isinstance(sqlQuery, str) or "hudi" not in sqlQuery.lower():
            return original(self, sqlQuery, args, **frames)
        from hoodie.spark.sql import run_sql  # noqa: PLC0415 - loaded by the first use

        return run_sql(functools.partial(original, self), self, sqlQuery, args, frames)

    _replace(owner, "sql", sql)


def _wrap_catalog(owner: type) -> None:
    def create_table(
        original: Any, self: Any, tableName: Any, path: Any = None, source: Any = None, *args: Any, **named: Any
    ) -> Any:
        if isinstance(source, str):
            _ensure_not_hudi(self, source, "createTable")
        return original(self, tableName, path, source, *args, **named)

    _replace(owner, "createTable", create_table)


# --- noting and asking -----------------------------------------------------------------------------------------------


def _notes(self: Any) -> _Notes:
    notes = self.__dict__.get(_NOTES)
    if notes is None:
        notes = self.__dict__[_NOTES] = _Notes()
    return notes  # type: ignore[no-any-return]


def _fit_notes(self: Any) -> _Notes:
    notes = _notes(self)
    if notes.unfit is not None:
        raise Unsupported(
            f"{notes.unfit} is not for Hudi tables",
            remedy="Hudi lays files out by its own options, such as hoodie.bulkinsert.sort.mode",
        )
    return notes


def _is_hudi(self: Any, format: str | None, *, has_default: bool = True) -> bool:
    named = format or _notes(self).format
    if named is None and has_default:
        named = _session(self).conf.get(_DEFAULT_FORMAT, None)
    name = "" if named is None else named.strip().lower()
    if name == "hoodie":  # Spark's own error is a page of Java
        raise Invalid("There is no format hoodie: its tables are Hudi tables", remedy='Use format("hudi")')
    return name in FORMATS


def _ensure_not_hudi(self: Any, format: str | None, what: str, *, has_default: bool = True) -> None:
    if _is_hudi(self, format, has_default=has_default):
        raise Unsupported(
            f"{what} is not supported for Hudi tables yet: they are not in Spark's catalog",
            remedy='Write by path: df.write.format("hudi").options(...).save(path)',
        )


def _ensure_no_view(self: Any, name: object) -> None:
    if isinstance(name, str) and not _is_connect(self):
        ensure_no_view(_session(self), name)


def _ensure_own_schema(self: Any, schema: Any) -> None:
    if schema is not None or _notes(self).schema is not None:
        raise Invalid("A Hudi table has its own schema", remedy="Leave schema out; select and cast after load")


def _session(self: Any) -> Any:
    for name in ("_spark", "_client", "_session"):
        if name in self.__dict__:
            return self.__dict__[name]
    return self._df.sparkSession


def _is_connect(self: Any) -> bool:
    return type(self).__module__.startswith(_CONNECT)


def _one_path(path: Any) -> str | None:
    if isinstance(path, list | tuple):
        if len(path) != 1:
            raise Invalid("load takes the base path of one Hudi table", remedy="Load tables one by one and union them")
        return str(path[0])
    return None if path is None else str(path)


def _set_unfit(name: str, notes: _Notes, *_: Any) -> None:
    notes.unfit = name


# --- replacing methods -----------------------------------------------------------------------------------------------


def _replace(owner: type, name: str, wrapper: Callable[..., Any]) -> None:
    """`wrapper(original, self, ...)` instead of a method; where a version lacks the method there is nothing to do."""
    original = vars(owner).get(name)
    if original is None:
        return

    @functools.wraps(original)
    def method(self: Any, *args: Any, **named: Any) -> Any:
        return wrapper(original, self, *args, **named)

    setattr(owner, name, method)


def _note(owner: type, name: str, note: Callable[..., object]) -> None:
    """Calls `note(notes, ...)` with the arguments of a method, after Spark has accepted them."""

    def noting(original: Any, self: Any, *args: Any, **named: Any) -> Any:
        result = original(self, *args, **named)
        note(_notes(self), *args, **named)
        return result

    _replace(owner, name, noting)


def _note_value(owner: type, name: str, noted: str) -> None:
    """Notes the one argument of a method, unless it is None, which Spark takes for not given."""

    def note(notes: _Notes, *args: Any, **named: Any) -> None:
        value = next(iter((*args, *named.values())), None)
        if value is not None:
            setattr(notes, noted, value)

    _note(owner, name, note)


def _note_options(owner: type) -> None:
    def one(notes: _Notes, key: str, value: Any) -> None:
        notes.options[key] = value

    def many(notes: _Notes, **options: Any) -> None:
        notes.options.update(options)

    _note_value(owner, "format", "format")
    _note(owner, "option", one)
    _note(owner, "options", many)


def _note_table(owner: type) -> None:
    """Notes the name that a writer is made for, which is the one text it is made with."""

    def made(notes: _Notes, *args: Any, **named: Any) -> None:
        notes.table = next((one for one in (*args, *named.values()) if isinstance(one, str)), None)

    _note(owner, "__init__", made)


def _note_partitioning(owner: type) -> None:
    def partition_by(notes: _Notes, *columns: str | Iterable[str]) -> None:
        notes.partition_by = _flat(columns)

    _note(owner, "partitionBy", partition_by)


def _hold_partitioning(_: Any, self: Any, *columns: str | Iterable[str]) -> Any:
    """A stream's partition columns are kept from Spark until the format is known: `foreachBatch` refuses them."""
    _notes(self).partition_by = _flat(columns)
    return self


def _tell_partitioning(self: Any, partition_by: Callable[..., Any]) -> None:
    columns = _notes(self).partition_by
    if columns:
        partition_by(self, *columns)


def _flat(columns: Iterable[str | Iterable[str]]) -> tuple[str, ...]:
    return tuple(name for part in columns for name in ((part,) if isinstance(part, str) else tuple(part)))
