"""`spark.read.format("hudi")`: a read plan as a DataFrame.

Where the rows come from, best first:

1. A native scan, where this session has a JVM that knows the table's storage: Spark prunes, pushes down and reads.
2. Spark's parquet source over the plain list of files, on Spark Connect.
3. Workers that read through our own storage, where Spark does not know it. Columns are not pruned there.

The plan is made when `load` is called: a DataFrame shows the table of that moment, however often it is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie.config import resolve
from hoodie.errors import Invalid
from hoodie.read import FileRead, ReadPlan, parse_read_options
from hoodie.records import read_footer
from hoodie.spark.arrow_types import arrow_schema, is_natively_readable, spark_schema
from hoodie.spark.engine import is_classic, pickled
from hoodie.spark.native_scan import PARQUET_OPTIONS, ScanFile, is_native_possible, native_scan
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
    asked = parse_read_options(resolve(options, purpose="read"))
    table = Table.open(_without_globs(path), options=options)
    frame = plan_frame(spark, table.storage, table.read_plan(conditions=()))
    # Spark decides conditions itself: with all its functions and its session's time zone, and the scan stays native.
    conditions = asked.conditions if asked.query == "incremental" else ()
    return reduce(lambda rows, condition: rows.where(condition), conditions, frame)


def plan_frame(spark: SparkSession, storage: Storage, plan: ReadPlan) -> DataFrame:
    """The rows of `plan` as a DataFrame with the columns of the plan's result, in its order."""
    parquet = all(file.path.endswith(".parquet") for file in plan.files)
    if parquet and plan.rows.filter is None:
        if is_classic(spark) and (root := _jvm_root(spark, storage)) is not None:
            return _restricted(_native_frame(spark, storage, plan, root), plan)
        if not is_classic(spark) and storage.scheme == "file":
            return _restricted(_listed_frame(spark, storage, plan), plan)
    return _worker_frame(spark, storage, plan)


def _without_globs(path: str) -> str:
    """`path` without trailing `/*`: scripts for old Hudi versions name partitions that way."""
    base = re.sub(r"(/\*)+/?$", "", path)
    if "*" in base:
        raise Invalid(f"{path} has wildcards", remedy="Name the table's base path, and filter by partition columns")
    return base


def _restricted(frame: DataFrame, plan: ReadPlan) -> DataFrame:
    if plan.rows.commit_times is not None:
        frame = frame.where(plan.rows.commit_times.sql)
    return frame if frame.columns == plan.schema.names else frame.select(*[_quoted(name) for name in plan.schema.names])


def _jvm_root(spark: SparkSession, storage: Storage) -> str | None:
    """The table's base as the JVM must name it; None when it knows no file system for it."""
    scheme, slashes, rest = storage.absolute("").partition("://")
    if not slashes:
        return storage.absolute("") if is_native_possible(spark, "file") else None
    for known in dict.fromkeys((scheme, *_JVM_SCHEMES.get(storage.scheme, ()))):
        if is_native_possible(spark, known):
            return f"{known}://{rest}"
    return None


# --- 1: native scans -------------------------------------------------------------------------------------------------


def _native_frame(spark: SparkSession, storage: Storage, plan: ReadPlan, root: str) -> DataFrame:
    """One scan for all files that Spark reads as the table is today, one more for each other kind of file."""
    frames = []
    for kind, files in _by_kind(storage, plan).items():
        given, stored = kind
        wanted = plan.table_schema
        read = pa.schema([_as_stored(field, stored) for field in wanted])
        frame = native_scan(
            spark,
            [_scan_file(root, file, given) for file in files],
            spark_schema(read),
            spark_schema(pa.schema([wanted.field(name) for name in given])),
            root=root,
        )
        frames.append(frame if read.equals(wanted) else frame.to(spark_schema(wanted)))
    if not frames:
        return native_scan(spark, (), spark_schema(plan.table_schema), spark_schema(pa.schema([])), root=root)
    return reduce(lambda one, other: one.unionByName(other), frames)


_Kind = tuple[tuple[str, ...], tuple[tuple[str, pa.DataType], ...]]


def _by_kind(storage: Storage, plan: ReadPlan) -> dict[_Kind, list[FileRead]]:
    """Files by what they need to be read: names of the columns their path gives, and columns of another type."""
    schemas = _Schemas(storage, plan)
    kinds: dict[_Kind, list[FileRead]] = {}
    for file in plan.files:
        names = {name for name, _ in file.partition_values}
        given = tuple(name for name in plan.table_schema.names if name in names)
        kinds.setdefault((given, schemas.differing(file, given)), []).append(file)
    return kinds


class _Schemas:
    """Physical schemas of base files. All files of one commit have the same, so one footer of each is read."""

    def __init__(self, storage: Storage, plan: ReadPlan) -> None:
        self._storage = storage
        self._wanted = plan.table_schema
        self._found: dict[str, tuple[tuple[str, pa.DataType], ...]] = {}

    def differing(self, file: FileRead, given: Collection[str]) -> tuple[tuple[str, pa.DataType], ...]:
        """Columns (name, stored type) that Spark cannot read as the table has them."""
        if file.instant not in self._found:
            schema = read_footer(self._storage, file.path).schema
            self._found[file.instant] = tuple(
                (field.name, schema.field(field.name).type)
                for field in self._wanted
                if schema.get_field_index(field.name) >= 0
                and not is_natively_readable(schema.field(field.name).type, field.type)
            )
        return tuple(one for one in self._found[file.instant] if one[0] not in given)


def _as_stored(field: pa.Field, stored: Iterable[tuple[str, pa.DataType]]) -> pa.Field:
    return field.with_type(dict(stored).get(field.name, field.type))


def _scan_file(root: str, file: FileRead, given: Sequence[str]) -> ScanFile:
    values = dict(file.partition_values)
    return ScanFile(f"{root}/{file.path}", file.size_bytes, 0, tuple(values[name] for name in given))


# --- 2: plain file lists ---------------------------------------------------------------------------------------------


def _listed_frame(spark: SparkSession, storage: Storage, plan: ReadPlan) -> DataFrame:
    """Spark's parquet source over the files. Partition values of paths are joined by file name, which is unique."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    frames = []
    for (given, stored), files in _by_kind(storage, plan).items():
        wanted = plan.table_schema
        read = pa.schema([_as_stored(field, stored) for field in wanted if field.name not in given])
        paths = [_GLOB.sub(r"\\\1", f"file:{storage.absolute(file.path)}") for file in files]
        reader = spark.read.options(**PARQUET_OPTIONS).option("recursiveFileLookup", "true")
        frame = reader.schema(spark_schema(read)).parquet(*paths)
        if given:
            values = F.broadcast(_path_values(spark, files, wanted, given))
            frame = frame.withColumn(_FILE, F.col("_metadata.file_name")).join(values, _FILE).drop(_FILE)
        frame = frame.select(*[_quoted(name) for name in wanted.names])
        frames.append(frame.to(spark_schema(wanted)) if stored else frame)
    if not frames:
        return spark.createDataFrame([], spark_schema(plan.table_schema))
    return reduce(lambda one, other: one.unionByName(other), frames)


_FILE = "__hoodie_file"


def _path_values(spark: SparkSession, files: Sequence[FileRead], wanted: pa.Schema, given: Sequence[str]) -> DataFrame:
    rows = [dict(file.partition_values) for file in files]
    columns = {_FILE: pa.array([file.path.rpartition("/")[2] for file in files])}
    columns |= {name: pa.array([row[name] for row in rows], wanted.field(name).type) for name in given}
    return spark.createDataFrame(pa.table(columns))


# --- 3: workers ------------------------------------------------------------------------------------------------------


def _worker_frame(spark: SparkSession, storage: Storage, plan: ReadPlan) -> DataFrame:
    """Tasks of about equal size read the files through our storage."""
    told = spark_schema(plan.schema)
    if not plan.files:
        return spark.createDataFrame([], told)
    tasks = [pickled((storage, plan.rows, files)) for files in _packed(plan.files, spark)]
    reader = _file_reader(tasks, arrow_schema(told))
    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(reader, told)


def _packed(files: Sequence[FileRead], spark: SparkSession) -> list[list[FileRead]]:
    """Files in their order, cut where about `spark.sql.files.maxPartitionBytes` are reached."""
    limit = _bytes_of(spark.conf.get("spark.sql.files.maxPartitionBytes") or "")
    packs: list[list[FileRead]] = [[]]
    size = 0
    for file in files:
        if packs[-1] and size + file.size_bytes > limit:
            packs.append([])
            size = 0
        packs[-1].append(file)
        size += file.size_bytes
    return packs


def _bytes_of(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([kmg]?)b?", text.strip().lower())
    return 128 << 20 if found is None else int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2]]


def _file_reader(tasks: Sequence[bytes], made: pa.Schema) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def read(batches: Iterator[Any]) -> Iterator[Any]:
        from hoodie.spark.read_worker import read_tasks  # noqa: PLC0415

        yield from read_tasks(tasks, made, batches)

    return read


def _quoted(column: str) -> str:
    return f"`{column.replace('`', '``')}`"
