"""`spark.read.format("hudi")`: a read plan as a DataFrame.

Where the rows of a slice come from, best first; what comes from different places is united:

1. A native scan, for slices that are one parquet file, where this session has a JVM that knows the table's storage:
   Spark prunes, pushes down and reads.
2. Spark's parquet source over the plain list of such files, on Spark Connect.
3. Workers that read through our own storage: slices with log files, and whatever Spark cannot read (`worker_frame`).

The plan is made when `load` is called: a DataFrame shows the table of that moment, however often it is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, TypeGuard

import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.given_options import resolve_given
from hoodie.layout import physicals, stores_of
from hoodie.query import ReadPlan, narrowed, parse_read_options
from hoodie.slices import FileRead, SliceRead
from hoodie.spark.arrow_types import spark_schema
from hoodie.spark.differing_types import DifferingTypes, is_cast_as_ours, load_differing_types
from hoodie.spark.engine import is_classic
from hoodie.spark.native_scan import PARQUET_OPTIONS, ScanFile, Skip, is_native_possible, native_scan
from hoodie.spark.pruning import pruner
from hoodie.spark.session_options import with_session
from hoodie.spark.sql_text import quoted
from hoodie.spark.worker_frame import Prune, understood, worker_frame
from hoodie.spec import InstantTime
from hoodie.storage import Storage
from hoodie.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GLOB = re.compile(r"([{}\[\]*?\\])")
_JVM_SCHEMES = {"s3": ("s3a", "s3"), "az": ("abfss", "abfs", "wasbs")}


def read_frame(spark: SparkSession, path: str, options: Mapping[str, object]) -> DataFrame:
    """The rows of a Hudi table at `path` as `options` (Hudi's keys) ask for them.

    Raises:
        Invalid: no such table, or options that do not fit. Unsupported: a kind of query that is not there yet.
    """
    options = with_session(spark, options)
    asked = parse_read_options(resolve_given(options, purpose="read"))
    table = Table.open(_without_globs(path), options=options)
    prune = pruner(table, asked)
    plan = table.read_plan(conditions=())
    frame = plan_frame(spark, table.storage, plan, prune)  # the storage that the plan was made with: files may move
    # Spark decides conditions itself: with all its functions and its session's time zone, and the scan stays native.
    conditions = asked.conditions if asked.query == "incremental" else ()
    return reduce(lambda rows, condition: rows.where(condition), conditions, frame)


def plan_frame(spark: SparkSession, storage: Storage, plan: ReadPlan, prune: Prune | None = None) -> DataFrame:
    """The rows of `plan` as a DataFrame with the columns of the plan's result, in its order. `prune` may leave out
    slices when a query has filters.
    """
    names = _jvm_names(spark, storage) if is_classic(spark) else None
    by_spark = names is not None or (not is_classic(spark) and {one.scheme for one in stores_of(storage)} == {"file"})
    plain: list[SliceRead] = []
    others: list[FileRead] = []
    for file in plan.files:
        if by_spark and _is_plain(file, plan):
            plain.append(file)
        else:
            others.append(file)
    differing = load_differing_types(storage, plain, plan.table_schema)
    cast_otherwise = {time for time, types in differing.items() if not is_cast_as_ours(types, plan.table_schema)}
    others += [file for file in plain if file.instant in cast_otherwise]
    kinds = _by_kind([file for file in plain if file.instant not in cast_otherwise], differing, plan)
    frames = []
    if names is not None and (kinds or not others):
        frames.append(_restricted(_native_frame(spark, kinds, plan, names, prune), plan))
    elif kinds:
        frames.append(_restricted(_listed_frame(spark, storage, kinds, plan), plan))
    if others or not frames:
        frames.append(worker_frame(spark, storage, replace(plan, files=tuple(others)), prune))
    return reduce(lambda one, other: one.unionByName(other), frames)


def _is_plain(file: FileRead, plan: ReadPlan) -> TypeGuard[SliceRead]:
    """Whether the slice is one parquet file which Spark reads by column names, with nothing left to decide on rows."""
    by_name = plan.rows.ids is None and plan.rows.filter is None
    return by_name and isinstance(file, SliceRead) and file.is_plain and file.path.endswith(".parquet")


def _without_globs(path: str) -> str:
    """`path` without trailing `/*`: scripts for old Hudi versions name partitions that way."""
    base = re.sub(r"(/\*)+/?$", "", path)
    if "*" in base:
        raise Invalid(f"{path} has wildcards", remedy="Name the table's base path, and filter by partition columns")
    return base


def _restricted(frame: DataFrame, plan: ReadPlan) -> DataFrame:
    if plan.rows.commit_times is not None:
        frame = frame.where(plan.rows.commit_times.sql)
    return frame if frame.columns == plan.schema.names else frame.select(*[quoted(name) for name in plan.schema.names])


@dataclass(frozen=True, slots=True)
class _JvmNames:
    """How the JVM names what a storage has: `schemes` are its own by ours."""

    storage: Storage
    schemes: Mapping[str, str]

    @property
    def of_table(self) -> str:
        """The name of the table."""
        return self._named(self.storage.absolute(""))

    def of(self, files: Sequence[SliceRead]) -> list[str]:
        """The full names under which the base files really lie, in their order."""
        return [self._named(name) for name in physicals(self.storage, [file.path for file in files])]

    def _named(self, name: str) -> str:
        scheme, slashes, rest = name.partition("://")
        return f"{self.schemes[scheme]}://{rest}" if slashes else name


def _jvm_names(spark: SparkSession, storage: Storage) -> _JvmNames | None:
    """The names for the JVM; None when it knows no file system for a store in which the table has files."""
    schemes: dict[str, str] = {}
    for store in stores_of(storage):
        scheme, slashes, _ = store.absolute("").partition("://")
        if not slashes and is_native_possible(spark, "file"):
            continue
        known = dict.fromkeys((scheme, *_JVM_SCHEMES.get(store.scheme, ()))) if slashes else ()
        found = next((one for one in known if is_native_possible(spark, one)), None)
        if found is None:
            return None
        schemes[scheme] = found
    return _JvmNames(storage, schemes)


# --- 1: native scans -------------------------------------------------------------------------------------------------


def _native_frame(
    spark: SparkSession, kinds: _Kinds, plan: ReadPlan, names: _JvmNames, prune: Prune | None = None
) -> DataFrame:
    """One scan for all files that Spark reads as the table is today, one more for each other kind of file."""
    frames = []
    root = names.of_table
    for (given, stored), files in kinds.items():
        wanted = plan.table_schema
        read = pa.schema([_as_stored(field, stored) for field in wanted])
        frame = native_scan(
            spark,
            [_scan_file(name, file, given) for name, file in zip(names.of(files), files, strict=True)],
            spark_schema(read),
            spark_schema(pa.schema([wanted.field(name) for name in given])),
            root=root,
            skip=None if prune is None else _skip(spark, plan, files, names, prune),
        )
        frames.append(frame if read.equals(wanted) else frame.to(spark_schema(wanted)))
    if not frames:
        return native_scan(spark, (), spark_schema(plan.table_schema), spark_schema(pa.schema([])), root=root)
    return reduce(lambda one, other: one.unionByName(other), frames)


def _skip(spark: SparkSession, plan: ReadPlan, files: Sequence[SliceRead], names: _JvmNames, prune: Prune) -> Skip:
    """Asks `prune` about the files of a native scan."""
    slices = dict(zip(names.of(files), files, strict=True))
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"

    def skip(filters: Sequence[str], files: Sequence[ScanFile]) -> Iterable[ScanFile]:
        asked = replace(plan, files=tuple(slices[file.path] for file in files))
        condition = understood(filters, plan.table_schema, zone)
        if condition is None:
            return files
        kept = {file.path for file in prune(narrowed(asked, plan.schema.names, condition)).files}
        return [file for file in files if slices[file.path].path in kept]

    return skip


_Kinds = Mapping[tuple[tuple[str, ...], DifferingTypes], Sequence[SliceRead]]
"""Files by what they need to be read: names of the columns their path gives, and columns of another type."""


def _by_kind(files: Iterable[SliceRead], differing: Mapping[InstantTime, DifferingTypes], plan: ReadPlan) -> _Kinds:
    kinds: dict[tuple[tuple[str, ...], DifferingTypes], list[SliceRead]] = {}
    for file in files:
        names = {name for name, _ in file.partition_values}
        given = tuple(name for name in plan.table_schema.names if name in names)
        stored = tuple((name, kind) for name, kind in differing[file.instant] if name not in names)
        kinds.setdefault((given, stored), []).append(file)
    return kinds


def _as_stored(field: pa.Field, stored: Iterable[tuple[str, pa.DataType]]) -> pa.Field:
    return field.with_type(dict(stored).get(field.name, field.type))


def _scan_file(name: str, file: SliceRead, given: Sequence[str]) -> ScanFile:
    values = dict(file.partition_values)
    return ScanFile(name, file.size_bytes, 0, tuple(values[name] for name in given))


# --- 2: plain file lists ---------------------------------------------------------------------------------------------


def _listed_frame(spark: SparkSession, storage: Storage, kinds: _Kinds, plan: ReadPlan) -> DataFrame:
    """Spark's parquet source over the files. Partition values of paths are joined by file name, which is unique."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - not every session and worker has to load it

    frames = []
    for (given, stored), files in kinds.items():
        wanted = plan.table_schema
        read = pa.schema([_as_stored(field, stored) for field in wanted if field.name not in given])
        names = physicals(storage, [file.path for file in files])
        paths = [_GLOB.sub(r"\\\1", f"file:{name}") for name in names]
        reader = spark.read.options(**PARQUET_OPTIONS).option("recursiveFileLookup", "true")
        frame = reader.schema(spark_schema(read)).parquet(*paths)
        if given:
            values = F.broadcast(_path_values(spark, files, wanted, given))
            frame = frame.withColumn(_FILE, F.col("_metadata.file_name")).join(values, _FILE).drop(_FILE)
        frame = frame.select(*[quoted(name) for name in wanted.names])
        frames.append(frame.to(spark_schema(wanted)) if stored else frame)
    if not frames:
        return spark.createDataFrame([], spark_schema(plan.table_schema))
    return reduce(lambda one, other: one.unionByName(other), frames)


_FILE = "__hoodie_file"


def _path_values(spark: SparkSession, files: Sequence[SliceRead], wanted: pa.Schema, given: Sequence[str]) -> DataFrame:
    rows = [dict(file.partition_values) for file in files]
    columns = {_FILE: pa.array([file.path.rpartition("/")[2] for file in files])}
    columns |= {name: pa.array([row[name] for row in rows], wanted.field(name).type) for name in given}
    return spark.createDataFrame(pa.table(columns))
