"""Rows that Python workers read, as a relation of Spark: Catalyst says which columns and rows a query needs.

`mapInArrow` is a black box to Catalyst: every column is read, whatever is selected behind it. A table of the DataSource
V2 interfaces is asked instead, and these are interfaces, so Python objects can be them:

1. `Table` makes a `ScanBuilder`, which is told the filters and then the columns, and builds a `Scan`. All of this
   happens in the driver while a query is planned; `narrow` is called once for each scan.
2. Filters are offered, never promised: Spark applies all of them again, so using none is always right.
3. Reading is Spark's own Python reader (`PythonPartitionReaderFactory`, which Python data sources use): each Spark task
   gets its own task bytes and nothing of the others.
4. Two tables, and two scans, are equal when their texts are. Spark compares them to reuse cached data and exchanges.
5. A proxy inherits nothing: every method of an interface is here, also those with a default in Java.
6. Decimals of up to 18 digits cross as longs: Spark reads a decimal out of an Arrow batch by way of a `BigDecimal`,
   which costs more than everything else about the value. Only the reader is told that they are longs. Its rows are
   unsafe rows, in which such a decimal is its digits as a long, so the plan above may read them as what they are.
7. Aggregates are taken where the caller can compute them exactly, and then in parts: Spark aggregates the parts.

The reader and its partitions are private classes of Spark and used in this module alone; `is_worker_scan_possible` says
where they are missing, and the caller then takes `mapInArrow`.
"""

from __future__ import annotations

import functools
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from hoodie.spark.callback_connections import close_ended, note_caller
from hoodie.spark.failures import through_jvm
from hoodie.spark.filters import texts_of_catalyst
from hoodie.spark.partial_aggregate import Aggregation
from hoodie.spark.pushed_aggregate import has_inexact_mean, understood_aggregate
from hoodie.spark.unscaled import LONG_DIGITS
from hoodie.spark.view_writes import WORKER_TABLE

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

log = logging.getLogger(__name__)

_CONNECTOR = "org.apache.spark.sql.connector"
_READ = f"{_CONNECTOR}.read"
_V2 = "org.apache.spark.sql.execution.datasources.v2"
_CATALYST_FILTERS = "org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters"
_NEEDED = (
    f"{_V2}.python.PythonPartitionReaderFactory",
    f"{_V2}.python.PythonInputPartition",
    f"{_V2}.python.UserDefinedPythonDataSource",
    f"{_V2}.DataSourceV2Relation$",
    "org.apache.spark.sql.classic.Dataset$",
)


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What workers do for one scan.

    `read` gets, in a worker, batches of one binary column that hold one task, and yields rows of `schema` with longs
    for short decimals (`with_longs`). `size_bytes` is what will be read, for the planning of joins. `text` says in a
    plan what is left of the table.
    """

    schema: StructType
    read: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    tasks: tuple[bytes, ...]
    size_bytes: int
    text: str = ""


Narrow = Callable[[tuple[str, ...], tuple[str, ...]], Work]
"""The work for some columns and for rows that satisfy all filters (SQL text). It may return more of both."""


@dataclass(frozen=True, slots=True, eq=False)
class Aggregates:
    """Aggregates that the caller can compute. `schema` are the columns it has, `work` gives partial rows (see
    `partial_aggregate`) of an aggregation that is exact over them.
    """

    schema: pa.Schema
    work: Callable[[Aggregation], Work]


def is_worker_scan_possible(spark: SparkSession) -> bool:
    """Whether this session has a JVM at hand, with the classes that this module needs."""
    try:
        jvm: Any = spark._jvm
    except Exception:  # Spark Connect raises its own error for every attribute of the JVM
        return False
    return jvm is not None and bool(_is_fit(jvm))


def worker_scan(
    spark: SparkSession,
    schema: StructType,
    narrow: Narrow,
    *,
    name: str,
    identity: Callable[[], str],
    aggregates: Aggregates | None = None,
) -> DataFrame:
    """The rows `narrow` describes, as a DataFrame with the columns of `schema`.

    `name` is what plans show. `identity` is equal for equal rows, and for no others; it is asked for at most once.
    With `aggregates`, queries that only aggregate get no rows but parts of the aggregates.
    """
    # Not every session and worker has to load it.
    from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame  # noqa: PLC0415

    gateway: Any = spark.sparkContext._gateway
    jvm = gateway.jvm
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    close_ended()
    none = jvm.scala.Option.apply(None)
    table = _Table(_Origin(spark, schema, narrow, name=name, identity=identity, aggregates=aggregates))
    relation = getattr(jvm, f"{_V2}.DataSourceV2Relation").create(table, none, none)
    frame = getattr(jvm, "org.apache.spark.sql.classic.Dataset").ofRows(spark._jsparkSession, relation)
    return ClassicDataFrame(frame, spark)


def with_longs(schema: StructType) -> StructType:
    """`schema` with longs for the decimals that cross as such."""
    # Not every session and worker has to load it.
    from pyspark.sql.types import LongType, StructField, StructType  # noqa: PLC0415

    kinds = ((field, LongType() if is_short(field.dataType) else field.dataType) for field in schema.fields)
    return StructType([StructField(field.name, kind, field.nullable, field.metadata) for field, kind in kinds])


def is_short(kind: Any) -> bool:
    """Whether a Spark type is a decimal that crosses between Spark and Python as a long."""
    return bool(kind.typeName() == "decimal" and kind.precision <= LONG_DIGITS)


class _Origin:
    """What a table and its scans share."""

    def __init__(
        self,
        spark: SparkSession,
        schema: StructType,
        narrow: Narrow,
        *,
        name: str,
        identity: Callable[[], str],
        aggregates: Aggregates | None,
    ) -> None:
        self.gateway: Any = spark.sparkContext._gateway
        self.jvm: Any = spark._jvm
        self.context: Any = spark.sparkContext
        self.schema = schema
        self.java_schema = self.java_type(schema)
        self.narrow = narrow
        self.name = name
        self.aggregates = aggregates
        self._identity = identity

    @functools.cached_property
    def identity(self) -> str:
        return self._identity()

    def java_type(self, schema: StructType) -> Any:
        return self.jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())

    def array(self, kind: str, elements: Sequence[Any] = ()) -> Any:
        """A Java array of elements of a class, by its full name."""
        made = self.gateway.new_array(_java_class(self.jvm, kind), len(elements))
        for at, element in enumerate(elements):
            made[at] = element
        return made


class _Same:
    """Identity by text. `other` comes as a Java object even when a Python one is behind it."""

    def toString(self) -> str:
        raise NotImplementedError

    def hashCode(self) -> int:
        return zlib.crc32(self.toString().encode()) - (1 << 31)

    def equals(self, other: Any) -> bool:
        return other is self or (other is not None and str(other.toString()) == self.toString())


class _Table(_Same):
    """`SupportsRead`, a `Table` that can be read."""

    def __init__(self, origin: _Origin) -> None:
        self._origin = origin

    def name(self) -> str:
        note_caller(self._origin.gateway)
        return self._origin.name

    def schema(self) -> Any:
        return self._origin.java_schema

    def columns(self) -> Any:
        column = f"{_CONNECTOR}.catalog.Column"
        make = _java_class(self._origin.jvm, column).create
        pairs = zip(self._origin.schema.fields, self._origin.java_schema.fields(), strict=True)
        made = [make(own.name, java.dataType(), own.nullable, own.metadata.get("comment"), None) for own, java in pairs]
        return self._origin.array(column, made)

    def partitioning(self) -> Any:
        return self._origin.array(f"{_CONNECTOR}.expressions.Transform")

    def properties(self) -> Any:
        return self._origin.jvm.java.util.HashMap()

    def constraints(self) -> Any:
        return self._origin.array(f"{_CONNECTOR}.catalog.constraints.Constraint")

    def capabilities(self) -> Any:
        found = self._origin.jvm.java.util.HashSet()
        found.add(_java_class(self._origin.jvm, f"{_CONNECTOR}.catalog.TableCapability").BATCH_READ)
        return found

    def id(self) -> None:
        """None: the table is in no catalog."""

    def version(self) -> None:
        """None: the rows never change, see `identity`."""

    currentVersion = version

    def newScanBuilder(self, _: Any) -> _ScanBuilder:
        return _ScanBuilder(self._origin)

    def toString(self) -> str:
        return f"{WORKER_TABLE}({self._origin.name}, {self._origin.identity})"

    class Java:
        implements = (f"{_CONNECTOR}.catalog.SupportsRead",)


class _ScanBuilder(_Same):
    """Takes what Catalyst pushes down, in its order: filters, then an aggregate or columns."""

    def __init__(self, origin: _Origin) -> None:
        self._origin = origin
        self._is_filtered = False
        self._filters: tuple[str, ...] = ()
        self._columns = tuple(origin.schema.names)
        self._has_inexact_mean = False
        self._aggregation: Aggregation | None = None

    def pushFilters(self, filters: Any) -> Any:
        self._is_filtered = True
        self._filters = texts_of_catalyst(filters.apply(at) for at in range(filters.size()))
        return filters

    def pushedFilters(self) -> Any:
        return self._origin.array(f"{_CONNECTOR}.expressions.filter.Predicate")

    def supportCompletePushDown(self, offered: Any) -> bool:
        """Never: each task knows its own rows. Asked first for averages, which are offered as sum and count later."""
        aggregates = self._origin.aggregates
        if aggregates is not None and not self._is_filtered:
            self._has_inexact_mean = self._has_inexact_mean or has_inexact_mean(offered, aggregates.schema)
        return False

    def pushAggregation(self, offered: Any) -> bool:
        aggregates = self._origin.aggregates
        if aggregates is None or self._is_filtered or self._has_inexact_mean:
            return False  # Spark applies every filter again, to rows
        self._aggregation = understood_aggregate(offered, aggregates.schema)
        return self._aggregation is not None

    def pruneColumns(self, schema: Any) -> None:
        self._columns = tuple(str(name) for name in schema.fieldNames())

    @through_jvm()
    def build(self) -> _Scan:
        if self._aggregation is not None and self._origin.aggregates is not None:
            return _Scan(self._origin, self._origin.aggregates.work(self._aggregation), repr(self._aggregation))
        work = self._origin.narrow(self._columns, self._filters)
        return _Scan(self._origin, work, repr((self._columns, self._filters)))

    def toString(self) -> str:
        asked = (self._columns, self._filters, self._aggregation)
        return f"WorkerScanBuilder({self._origin.identity}, {asked})"

    class Java:
        implements = (
            f"{_READ}.SupportsPushDownRequiredColumns",
            f"{_READ}.SupportsPushDownAggregates",
            _CATALYST_FILTERS,
        )


class _Scan(_Same):
    """`Scan` with its statistics, and the `Batch` of it."""

    def __init__(self, origin: _Origin, work: Work, asked: str) -> None:
        self._origin = origin
        self._asked = asked
        self._work = work
        self._source = _reader_source(origin)

    def readSchema(self) -> Any:
        return self._origin.java_type(self._work.schema)

    def description(self) -> str:
        note_caller(self._origin.gateway)
        return self._work.text

    def toBatch(self) -> _Scan:
        return self

    def toMicroBatchStream(self, _: Any) -> NoReturn:
        raise NotImplementedError("a scan of one state of a table is no stream")

    toContinuousStream = toMicroBatchStream

    def supportedCustomMetrics(self) -> Any:
        return self._source.createPythonMetrics()

    def reportDriverMetrics(self) -> Any:
        return self._origin.array(f"{_CONNECTOR}.metric.CustomTaskMetric")

    def columnarSupportMode(self) -> Any:
        note_caller(self._origin.gateway)
        return _java_class(self._origin.jvm, f"{_READ}.Scan$ColumnarSupportMode").UNSUPPORTED

    def estimateStatistics(self) -> _Statistics:
        return _Statistics(self._origin, self._work.size_bytes)

    def estimateSizeInBytes(self) -> Any:
        return self._origin.jvm.java.util.OptionalLong.of(self._work.size_bytes)

    def reflectsFullyPushedDownFilters(self) -> bool:
        return False

    def planInputPartitions(self) -> Any:
        make = _java_class(self._origin.jvm, f"{_V2}.python.PythonInputPartition")
        partitions = [make(number, task) for number, task in enumerate(self._work.tasks)]
        return self._origin.array(f"{_READ}.InputPartition", partitions)

    def createReaderFactory(self) -> Any:
        factory = f"{_V2}.python.PythonPartitionReaderFactory"
        jvm = self._origin.jvm
        taken = jvm.java.lang.Class.forName(factory).getConstructors()[0].getParameterCount()
        none = jvm.scala.Option.apply(None)  # artifacts and sessions of Spark Connect
        from pyspark import cloudpickle  # noqa: PLC0415 - not every session and worker has to load it

        sent = with_longs(self._work.schema)
        command = bytes(cloudpickle.dumps((self._work.read, sent)))  # type: ignore[no-untyped-call]
        return _java_class(jvm, factory)(self._source, command, self._origin.java_type(sent), *[none] * (taken - 3))

    def toString(self) -> str:
        return f"WorkerScan({self._origin.identity}, {self._asked})"

    class Java:
        implements = (f"{_READ}.SupportsReportStatistics", f"{_READ}.Batch")


class _Statistics:
    """`Statistics`: a size and nothing else."""

    def __init__(self, origin: _Origin, size_bytes: int) -> None:
        self._jvm = origin.jvm
        self._size_bytes = size_bytes

    def sizeInBytes(self) -> Any:
        return self._jvm.java.util.OptionalLong.of(self._size_bytes)

    def numRows(self) -> Any:
        return self._jvm.java.util.OptionalLong.empty()

    def columnStats(self) -> Any:
        return self._jvm.java.util.HashMap()

    class Java:
        implements = (f"{_READ}.Statistics",)


def _reader_source(origin: _Origin) -> Any:
    """Spark's holder of a Python data source. It only lends environment and interpreter to the readers."""
    from pyspark.sql.udf import _wrap_function  # noqa: PLC0415 - not every session and worker has to load it

    wrapped = _wrap_function(origin.context, _nothing)
    return _java_class(origin.jvm, f"{_V2}.python.UserDefinedPythonDataSource")(wrapped)


def _nothing(_: Iterable[Any]) -> Iterator[Any]:
    return iter(())


def _java_class(jvm: Any, name: str) -> Any:
    return getattr(jvm, name)


@functools.cache
def _is_fit(jvm: Any) -> bool:
    """Whether the classes are there, and their interfaces want nothing that is not here."""
    try:
        for name in _NEEDED:
            loaded_class(jvm, name)
        for proxy in (_Table, _ScanBuilder, _Scan, _Statistics):
            for interface in proxy.Java.implements:
                wanted = {str(method.getName()) for method in loaded_class(jvm, interface).getMethods()}
                if missing := sorted(name for name in wanted if not hasattr(proxy, name)):
                    log.warning("this Spark asks %s for %s, so its scans are not pruned", interface, missing)
                    return False
    except Exception:  # py4j's error around ClassNotFoundException
        return False
    return True


def loaded_class(jvm: Any, name: str) -> Any:
    """A class of Spark, found where Spark finds it. Raises py4j's error when there is none."""
    return jvm.java.lang.Class.forName(name, False, jvm.java.lang.Thread.currentThread().getContextClassLoader())
