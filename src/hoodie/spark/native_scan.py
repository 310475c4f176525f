"""A chosen list of parquet files as a native Spark scan: Catalyst plans it, the JVM's vectorised reader reads it.

Spark asks a `FileIndex` which files a query needs. `FileIndex` is an interface, so a Python object can be one:

1. Partition filters are evaluated by Catalyst itself over the partition values, never by a parser of ours: Spark does
   not apply them again after the scan, so they must be exact.
2. Data filters are only offered to `skip`, which may drop files that cannot hold a matching row. Spark applies them to
   the rows anyway, so forgetting to skip is always right. Floats are never compared with footers.
3. Two indexes are equal when their files and partition values are. Spark compares scans to reuse cached data and
   exchanges; identity by content can neither serve an older table nor miss a reuse.
4. Nothing is listed or opened here: sizes and times come with the files.
5. Nothing can be written through a scan, whatever SQL asks for: see `view_writes`.

This is a private interface of Spark. It is used in this module alone; `is_native_possible` says where it is missing.
"""

from __future__ import annotations

import hashlib
import struct
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql.types import DataType, DoubleType, FloatType, StructType

from hoodie.spark.arrow_types import arrow_schema
from hoodie.spark.callback_connections import close_ended, note_caller
from hoodie.spark.failures import through_jvm, watch
from hoodie.spark.filters import texts_of_catalyst
from hoodie.spark.view_writes import FILE_INDEX
from hoodie.spec.avro_container import encode_varint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Skip = Callable[[Sequence[str], "Sequence[ScanFile]"], "Iterable[ScanFile]"]

# Hudi stores dates and timestamps in the proleptic Gregorian calendar, whatever wrote the file.
PARQUET_OPTIONS = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}

_DATASOURCES = "org.apache.spark.sql.execution.datasources"
_BLOCK_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class ScanFile:
    """A file to scan. `path` is absolute or a URI, not escaped; `partition_values` fit the partition schema."""

    path: str
    size_bytes: int
    modified_ms: int
    partition_values: tuple[Hashable, ...] = ()


def is_native_possible(spark: SparkSession, scheme: str) -> bool:
    """Whether this session has a JVM at hand, and that JVM a file system for URIs of `scheme`."""
    try:
        jvm: Any = spark._jvm
    except Exception:  # Spark Connect raises its own error for every attribute of the JVM
        return False
    if jvm is None:
        return False
    known = _file_systems.setdefault(spark, {})
    if scheme not in known:
        known[scheme] = _has_file_system(spark, jvm, scheme)
    return known[scheme]


# Answers of a JVM that stay true as long as the session lives, which asking again would cost every query.
_file_systems: weakref.WeakKeyDictionary[SparkSession, dict[str, bool]] = weakref.WeakKeyDictionary()
_rows_of_partitions: weakref.WeakKeyDictionary[SparkSession, OrderedDict[object, _PartitionRows]] = (
    weakref.WeakKeyDictionary()
)
_MAX_KNOWN = 32


def _has_file_system(spark: SparkSession, jvm: Any, scheme: str) -> bool:
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    try:
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, conf)
    except Exception:  # py4j's error around UnsupportedFileSystemException
        return False
    return True


def native_scan(
    spark: SparkSession,
    files: Sequence[ScanFile],
    data_schema: StructType,
    partition_schema: StructType,
    *,
    root: str,
    skip: Skip | None = None,
) -> DataFrame:
    """Rows of `files`, planned and read by Spark itself.

    Columns are those of `data_schema` in its order, then the columns of `partition_schema` it does not have. A
    partition column has the value given with the file, also where the file stores another. A column that a file lacks
    is null. `root` is what Spark shows as the location. `skip(filters, files)` gets data filters as SQL text at
    planning time.
    """
    # Not every session and worker has to load it.
    from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame  # noqa: PLC0415

    gateway: Any = spark.sparkContext._gateway
    jvm, jsession = gateway.jvm, spark._jsparkSession
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    close_ended()
    watch(root)
    index = _FileIndex(spark, tuple(files), partition_schema, root, skip)
    relation = getattr(jvm, f"{_DATASOURCES}.HadoopFsRelation")(
        index,
        index.partitionSchema(),
        _java_schema(jvm, data_schema),
        jvm.scala.Option.apply(None),
        getattr(jvm, f"{_DATASOURCES}.parquet.ParquetFileFormat")(),
        jvm.PythonUtils.toScalaMap(PARQUET_OPTIONS),
        jsession,
    )
    frame = _without_float_pushdown(jvm, jsession, jsession.baseRelationToDataFrame(relation), data_schema)
    # The projection keeps the relation from being what an INSERT into a view of this frame writes to.
    return ClassicDataFrame(frame, spark).select("*")


def _without_float_pushdown(jvm: Any, jsession: Any, frame: Any, schema: StructType) -> Any:
    """`frame` whose floating point columns Spark does not compare with the bounds of parquet files.

    To Spark NaN is greater than every number; bounds that Arrow wrote leave it out, and none tells who wrote it. A
    column within an expression is not pushed down, and `KnownNullable` is one that does nothing.
    """
    floats = {field.name for field in schema.fields if _has_floats(field.dataType)}
    if not floats:
        return frame
    catalyst = jvm.org.apache.spark.sql.catalyst
    plan = frame.queryExecution().analyzed()
    columns = [_guarded(jvm, one) if one.name() in floats else one for one in _elements(plan.output())]
    guarded = catalyst.plans.logical.Project(_scala_seq(jvm, columns), plan)
    return jvm.org.apache.spark.sql.classic.Dataset.ofRows(jsession, guarded)


def _guarded(jvm: Any, column: Any) -> Any:
    catalyst = jvm.org.apache.spark.sql.catalyst.expressions
    return catalyst.Alias(
        catalyst.KnownNullable(column),
        column.name(),
        catalyst.NamedExpression.newExprId(),
        column.qualifier(),
        jvm.scala.Option.apply(column.metadata()),
        _scala_seq(jvm, []),
    )


def _has_floats(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return any(_has_floats(field.dataType) for field in data_type.fields)
    return isinstance(data_type, FloatType | DoubleType)


class _Partition(NamedTuple):
    """Files that share partition values; `number` is the place of those values among all partitions of the scan."""

    number: int
    files: tuple[ScanFile, ...]


class _FileIndex:
    """Spark's `FileIndex`, with every method of it: a py4j proxy inherits no default methods.

    Methods named like the interface are called by the JVM, on any of its threads, and may call back into it.
    """

    def __init__(
        self,
        spark: SparkSession,
        files: tuple[ScanFile, ...],
        partition_schema: StructType,
        root: str,
        skip: Skip | None,
    ) -> None:
        self._gateway: Any = spark.sparkContext._gateway
        self._jvm: Any = spark._jvm
        self._root = root
        self._skip = skip
        self._partitions = _grouped(files)
        self._size_bytes = sum(file.size_bytes for file in files)
        self._identity = _identity(files, partition_schema)
        self._partition_schema = _java_schema(self._jvm, partition_schema)
        self._values = _partition_rows(spark, self._partitions, partition_schema)
        self._everything: Any = None

    def rootPaths(self) -> Any:
        """The root, twice: Spark writes into relations with one root only, and would delete all there is in it."""
        note_caller(self._gateway)
        root = self._jvm.org.apache.hadoop.fs.Path(_uri(self._root))
        return _scala_seq(self._jvm, [root, root])

    @through_jvm()
    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        note_caller(self._gateway)
        return self._list_files(_elements(partition_filters), _elements(data_filters))

    def inputFiles(self) -> Any:
        uris = [_uri(file.path) for partition in self._partitions for file in partition.files]
        jpaths = self._jvm.org.apache.hadoop.util.StringUtils.getStrings("\n".join(uris), "\n")
        return self._jvm.PythonUtils.toArray([]) if jpaths is None else jpaths

    def refresh(self) -> None:
        """The files were chosen when the table was read; reading it again makes another index."""

    def sizeInBytes(self) -> int:
        return self._size_bytes

    def partitionSchema(self) -> Any:
        return self._partition_schema

    def isTimeTravel(self) -> bool:
        return False

    def metadataOpsTimeNs(self) -> Any:
        return self._jvm.scala.Option.apply(None)

    def hashCode(self) -> int:
        return int.from_bytes(self._identity[:4], "big", signed=True)

    def equals(self, other: Any) -> bool:
        # `other` comes as a Java object even when a Python index is behind it: the text is all there is to compare.
        return other is self or (other is not None and str(other.toString()) == self.toString())

    def toString(self) -> str:
        return f"{FILE_INDEX}({self._root}, {self._identity.hex()})"

    def _list_files(self, partition_filters: list[Any], data_filters: list[Any]) -> Any:
        partitions: Sequence[_Partition] = self._partitions
        if partition_filters and self._values is not None:
            partitions = [self._partitions[n] for n in self._values.matching(partition_filters)]
        if data_filters and self._skip is not None:
            partitions = _skipped(partitions, texts_of_catalyst(data_filters), self._skip)
        if partitions is not self._partitions:
            return self._directories(partitions)
        if self._everything is None:
            self._everything = self._directories(partitions)
        return self._everything

    def _directories(self, partitions: Sequence[_Partition]) -> Any:
        """Scala sequence of `PartitionDirectory`: about five calls into the JVM for each partition."""
        make = getattr(self._jvm, f"{_DATASOURCES}.PartitionDirectory").apply
        copy = self._jvm.java.lang.System.arraycopy
        status_class = self._jvm.org.apache.hadoop.fs.FileStatus
        statuses = _file_statuses(self._jvm, [file for partition in partitions for file in partition.files])
        no_values = self._jvm.org.apache.spark.sql.catalyst.InternalRow.empty()
        made, start = [], 0
        for partition in partitions:
            row = no_values if self._values is None else self._values.row(partition.number)
            own = self._gateway.new_array(status_class, len(partition.files))
            copy(statuses, start, own, 0, len(partition.files))
            made.append(make(row, own))
            start += len(partition.files)
        return _scala_seq(self._jvm, made)

    class Java:
        implements = (f"{_DATASOURCES}.FileIndex",)


class _PartitionRows:
    """Partition values as rows of Catalyst local relations, with and without the number of the partition at the end."""

    def __init__(self, jvm: Any, values: Any, numbered: Any) -> None:
        self._jvm = jvm
        self._values = values.data()
        self._numbered = numbered.data()
        self._output = _elements(numbered.output())

    def row(self, number: int) -> Any:
        return self._values.apply(number)

    def matching(self, filters: Sequence[Any]) -> list[int]:
        """Numbers of the partitions whose values satisfy all `filters`, which are Catalyst expressions."""
        catalyst = self._jvm.org.apache.spark.sql.catalyst
        condition = filters[0]
        for other in filters[1:]:
            condition = catalyst.expressions.And(condition, other)
        asked = {one.name(): one for one in _elements(condition.references().toSeq())}
        output = [asked.get(one.name(), one) for one in self._output]
        relation = catalyst.plans.logical.LocalRelation(
            _scala_seq(self._jvm, output), self._numbered, False, self._jvm.scala.Option.apply(None)
        )
        kept = catalyst.optimizer.ConvertToLocalRelation.apply(catalyst.plans.logical.Filter(condition, relation))
        last = len(output) - 1
        return [row.getInt(last) for row in _elements(kept.data())]


def _grouped(files: Iterable[ScanFile]) -> tuple[_Partition, ...]:
    groups: dict[tuple[Hashable, ...], list[ScanFile]] = {}
    for file in files:
        groups.setdefault(file.partition_values, []).append(file)
    return tuple(_Partition(number, tuple(group)) for number, group in enumerate(groups.values()))


def _skipped(partitions: Sequence[_Partition], filters: Sequence[str], skip: Skip) -> list[_Partition]:
    """`partitions` with only the files that `skip` keeps, without those left empty."""
    kept = set(skip(filters, [file for partition in partitions for file in partition.files]))
    thinned = (_Partition(part.number, tuple(file for file in part.files if file in kept)) for part in partitions)
    return [partition for partition in thinned if partition.files]


def _identity(files: Iterable[ScanFile], partition_schema: StructType) -> bytes:
    digest = hashlib.sha256(partition_schema.json().encode())
    for file in files:
        digest.update(repr((file.path, file.size_bytes, file.partition_values)).encode())
    return digest.digest()


def _partition_rows(
    spark: SparkSession, partitions: Sequence[_Partition], partition_schema: StructType
) -> _PartitionRows | None:
    """All partition values in the JVM; None for a scan without partition columns or files. Queries of a table that has
    the same partitions share them.
    """
    if not partition_schema.fields or not partitions:
        return None
    known = _rows_of_partitions.setdefault(spark, OrderedDict())
    key = (partition_schema.json(), tuple(partition.files[0].partition_values for partition in partitions))
    found = known.pop(key, None) or _new_partition_rows(spark, partitions, partition_schema)
    known[key] = found
    while len(known) > _MAX_KNOWN:
        known.popitem(last=False)
    return found


def _new_partition_rows(
    spark: SparkSession, partitions: Sequence[_Partition], partition_schema: StructType
) -> _PartitionRows:
    schema = arrow_schema(partition_schema).append(pa.field("__partition", pa.int32()))
    rows = [(*partition.files[0].partition_values, partition.number) for partition in partitions]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    table = pa.Table.from_arrays(columns, names=[f"__{n}" for n in range(len(schema))])
    frame = spark.createDataFrame(table).toDF(*schema.names)
    values, numbered = (one._jdf.queryExecution().optimizedPlan() for one in (frame.drop("__partition"), frame))
    return _PartitionRows(spark._jvm, values, numbered)


def _file_statuses(jvm: Any, files: Sequence[ScanFile]) -> Any:
    """A Java array (of `Writable`) of Hadoop `FileStatus`, sent at once as bytes it reads itself from."""
    data = struct.pack(">i", len(files)) + b"".join(_status_bytes(file) for file in files)
    stream = jvm.java.io.DataInputStream(jvm.java.io.ByteArrayInputStream(data))
    array = jvm.org.apache.hadoop.io.ArrayWritable(jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileStatus"))
    array.readFields(stream)
    return array.get()


def _status_bytes(file: ScanFile) -> bytes:
    """`FileStatusProto` of Hadoop's FSProtos.proto, length first: type 1, path 2, length 3, permission 4, time 7,
    replication 10, block size 11."""
    path, permission = _uri(file.path).encode(), b"\x08" + encode_varint(0o644)
    message = (
        b"\x08\x02\x12"
        + encode_varint(len(path))
        + path
        + b"\x18"
        + encode_varint(file.size_bytes)
        + b"\x22"
        + encode_varint(len(permission))
        + permission
        + b"\x38"
        + encode_varint(file.modified_ms)
        + b"\x50\x01\x58"
        + encode_varint(_BLOCK_BYTES)
    )
    return struct.pack(">i", len(message)) + message


def _uri(path: str) -> str:
    """A bare path means this machine's disk, whatever the JVM's default file system is."""
    return f"file:{path}" if path.startswith("/") else path


def _java_schema(jvm: Any, schema: StructType) -> Any:
    return jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())


def _scala_seq(jvm: Any, elements: list[Any]) -> Any:
    return jvm.PythonUtils.toSeq(elements)


def _elements(seq: Any) -> list[Any]:
    return [seq.apply(n) for n in range(seq.size())]
