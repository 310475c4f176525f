"""The Python data source `hudi`: what Spark asks where no wrapped reader stands in between.

That is SQL over Spark Connect (`CREATE TEMPORARY VIEW v USING hudi OPTIONS (path '...')`) and every streaming read.
DataFrame readers and SQL of a classic session do not come here: `reader` gives them native scans.

1. Spark plans such a read in a Python process of its own, so everything needed is in the options. They are the ones of
   `spark.read.format("hudi")`; names of options may have lost their case.
2. A batch read shows the table of the moment when the first query on the view or DataFrame is planned.
3. Spark offers a Python data source filters but not columns, so all columns are read. Where a release of Spark gives a
   filtered read to later queries without the filter (4.3.0 does), filters are not taken; see `is_filtering_safe`.
4. Errors of ours cross the JVM as text (see `failures`).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)

from hoodie.errors import Unsupported
from hoodie.query import narrowed
from hoodie.spark.arrow_types import spark_schema
from hoodie.spark.failures import through_jvm
from hoodie.spark.filters import texts_of
from hoodie.spark.source_partitions import is_change_query, open_table, partitions_of, read_partition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

NAME = "hudi"
LONG_NAME = "org.apache.hudi"

_QUERY_TYPE = "hoodie.datasource.query.type"
_NEVER = "9" * 17
_BUILDER = "org.apache.spark.sql.execution.datasources.v2.python.PythonScanBuilder"
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"

_registered: weakref.WeakSet[Any] = weakref.WeakSet()


def register(spark: SparkSession) -> None:
    """Makes the format known to Spark itself, by both names, in this session. Once is enough; again does no harm."""
    if spark in _registered:
        return
    sources: tuple[type[DataSource], ...] = (HudiSource, LongNamedSource)
    if is_filtering_safe(spark):
        spark.conf.set(_PUSHDOWN, True)
        sources = (FilteringSource, LongNamedFilteringSource)
    for source in sources:
        spark.dataSource.register(source)
    _registered.add(spark)


def is_filtering_safe(spark: SparkSession) -> bool:
    """Whether this Spark keeps what filters left of a read to the scan they belong to; False where nobody can say."""
    try:
        jvm: Any = spark._jvm
        fields = jvm.java.lang.Class.forName(_BUILDER).getDeclaredFields()
        return any(str(field.getName()) == "readInfo" for field in fields)
    except Exception:  # Spark Connect has no JVM at hand
        return False


class HudiSource(DataSource):
    """A Hudi table, by its options."""

    @classmethod
    def name(cls) -> str:
        return NAME

    @through_jvm()
    def schema(self) -> StructType:
        query: dict[str, Any] = {"query": "cdc"} if is_change_query(self.options) else {}
        if query or "incremental" in self.options.get(_QUERY_TYPE, ""):
            query |= {"begin": _NEVER, "end": None}  # the schema needs no commits
        return spark_schema(open_table(self.options).read_plan(conditions=(), **query).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return TableReader(dict(self.options), schema)

    @through_jvm()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Refuses: SQL writes into a view of a table come here, and would know nothing of keys and commits."""
        raise Unsupported(
            "Hudi tables are not written through views of them",
            remedy='Write by path from a classic session: df.write.format("hudi").save(path), or with hoodie.Table',
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from hoodie.spark.stream_source import TableStream  # noqa: PLC0415 - loaded by the first use

        return TableStream(dict(self.options), schema)


class FilteringSource(HudiSource):
    """The same for a Spark with which filters can be taken."""

    def reader(self, schema: StructType) -> DataSourceReader:
        return FilteringReader(dict(self.options), schema)


class LongNamedSource(HudiSource):
    """The same under the other name Hudi has for Spark."""

    @classmethod
    def name(cls) -> str:
        return LONG_NAME


class LongNamedFilteringSource(FilteringSource):
    """The same under the other name Hudi has for Spark."""

    @classmethod
    def name(cls) -> str:
        return LONG_NAME


class TableReader(DataSourceReader):
    """One batch read."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._filters: tuple[str, ...] = ()

    @through_jvm()
    def partitions(self) -> list[InputPartition]:
        from hoodie.spark.worker_frame import understood  # noqa: PLC0415 - loaded by the first use

        table = open_table(self._options)
        plan = table.read_plan()
        less = narrowed(plan, self._schema.names, understood(self._filters, plan.schema, "UTC"))
        return list(partitions_of(table, less))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition, self._schema)


class FilteringReader(TableReader):
    """One batch read that looks at filters. Spark applies them again."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        self._filters = texts_of(filters)
        return list(filters)
