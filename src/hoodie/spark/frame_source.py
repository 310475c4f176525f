"""`FrameSource`: a Spark DataFrame as the input of a write.

1. The rows that are written come from one evaluation of the frame, by a job that `consume` or `small` starts. (A global
   sort first samples its input to find ranges, as Spark's sort does. A scan of files with a very wide row is evaluated
   again, and nothing of its first evaluation is kept: `batch_size`.)
2. Maps are fused into the Python function of that job: rows go from Spark to Python once, unless a shuffle lies
   between.
3. Timestamps with a zone are UTC in the schema, whatever the session's time zone.

Works with classic sessions; writing over Spark Connect is refused where the writer is wrapped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from hoodie.engine import ArrowSource, BatchMap, BatchWork, BulkInsertSortMode, Source
from hoodie.errors import Invalid
from hoodie.spark.arrow_types import arrow_schema, spark_schema
from hoodie.spark.batch_size import WideRow, large_batches, unless_wide
from hoodie.spark.engine import described, pickled
from hoodie.spark.failures import translated
from hoodie.spark.frame_size import max_size_bytes
from hoodie.spark.sent_decimals import with_unscaled
from hoodie.spark.sql_text import quoted
from hoodie.spark.worker import OUTCOME_DDL, outcomes, with_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

R = TypeVar("R")

_READ = "read input"


class FrameSource:
    """Rows of a DataFrame on their way into a table.

    Once `small` has taken the rows, everything else works on them: the frame is not evaluated again.
    """

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame
        self._frame_schema = _without_twins(arrow_schema(frame.schema))
        self._maps: tuple[BatchMap, ...] = ()
        self._schema = self._frame_schema
        self._held: ArrowSource | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def in_process(self) -> bool:
        return self._held is not None

    def small(self, limit_bytes: int) -> pa.Table | None:
        """All rows by one job, when they are surely few: at most `limit_bytes` by Catalyst's statistics."""
        if self._held is not None:
            return self._held.small(sys.maxsize)
        with translated(_READ):  # Spark decides parts of a plan that depend on no row, and they may fail
            is_small = not self._maps and max_size_bytes(self._frame) <= limit_bytes
        if not is_small:
            return None
        with translated(_READ), large_batches(self._frame.sparkSession), described(self._frame.sparkSession, _READ):
            table = self._frame.toArrow()
        rows = pa.Table.from_batches(with_schema(table.to_batches(), self._schema), self._schema)
        self._held = ArrowSource(rows)
        return rows

    def mapped(self, work: BatchMap, schema: pa.Schema) -> Source:
        if self._held is not None:
            return self._held.mapped(work, schema)
        return self._copy(self._frame, self._frame_schema, (*self._maps, work), schema)

    def in_sort_mode(self, sort_mode: BulkInsertSortMode, partition_column: str, key_column: str) -> Source:
        if self._held is not None:
            return self._held.in_sort_mode(sort_mode, partition_column, key_column)
        if sort_mode is BulkInsertSortMode.NONE:
            return self
        by = (quoted(partition_column), quoted(key_column))
        frame = self._applied()
        match sort_mode:
            case BulkInsertSortMode.GLOBAL_SORT:
                frame = frame.sort(*by)
            case BulkInsertSortMode.PARTITION_SORT:
                frame = frame.sortWithinPartitions(*by)
            case BulkInsertSortMode.PARTITION_PATH_REPARTITION:
                frame = frame.repartition(by[0])
            case BulkInsertSortMode.PARTITION_PATH_REPARTITION_AND_SORT:
                frame = frame.repartition(by[0]).sortWithinPartitions(*by)
        return self._copy(frame, self._schema, (), self._schema)

    def consume(self, work: BatchWork[R], label: str) -> list[R]:
        if self._held is not None:
            return self._held.consume(work, label)
        frame = with_unscaled(self._frame)
        with translated(label):  # see `small`
            marked = unless_wide(frame)
        if marked is not None:
            with suppress(WideRow):
                return self._consume(marked, work, label, is_marked=True)
        return self._consume(frame, work, label, is_marked=False)

    def _consume(self, frame: DataFrame, work: BatchWork[R], label: str, *, is_marked: bool) -> list[R]:
        """One job. Raises: WideRow: where wide rows are marked, and there is one."""
        consumer = _consumer(pickled(work), pickled(self._maps), self._frame_schema, is_marked=is_marked)
        spark = frame.sparkSession
        with translated(label), large_batches(spark, counted=not is_marked), described(spark, label):
            table = frame.mapInArrow(consumer, OUTCOME_DDL).toArrow()
        return outcomes(table)

    def _applied(self) -> DataFrame:
        """The frame after the maps, still lazy."""
        if not self._maps:
            return self._frame
        told = spark_schema(self._schema)
        mapper = _mapper(pickled(self._maps), self._frame_schema, arrow_schema(told))
        return with_unscaled(self._frame).mapInArrow(mapper, told)

    @staticmethod
    def _copy(frame: DataFrame, frame_schema: pa.Schema, maps: tuple[BatchMap, ...], schema: pa.Schema) -> FrameSource:
        made = FrameSource.__new__(FrameSource)
        made._frame, made._frame_schema = frame, frame_schema
        made._maps, made._schema, made._held = maps, schema, None
        return made


def _without_twins(schema: pa.Schema) -> pa.Schema:
    """`schema`, when no two columns have the same name for Spark, which does not look at case."""
    seen: set[str] = set()
    for name in schema.names:
        if name.lower() in seen:
            raise Invalid(f"Column {name!r} occurs twice", remedy="Drop or rename one of them", column=name)
        seen.add(name.lower())
    return schema


def _consumer(
    work: bytes, maps: bytes, schema: pa.Schema, *, is_marked: bool
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def consume(batches: Iterator[Any]) -> Iterator[Any]:
        from hoodie.spark.worker import consume_batches  # noqa: PLC0415 - runs in a worker

        yield from consume_batches(work, maps, schema, batches, is_marked=is_marked)

    return consume


def _mapper(maps: bytes, schema: pa.Schema, made: pa.Schema) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def apply(batches: Iterator[Any]) -> Iterator[Any]:
        from hoodie.spark.worker import map_batches  # noqa: PLC0415 - runs in a worker

        yield from map_batches(maps, schema, made, batches)

    return apply
