"""Files of a plan that Spark's workers read: slices with log files, and storages that the JVM does not know.

1. Where this session has a JVM at hand, Catalyst tells which columns are needed and which rows (see `worker_scan`);
   elsewhere every column of the plan is read, by `mapInArrow`.
2. A query that only aggregates all rows gets partial aggregates of them, where these are exact.
3. A file is never split: merging needs it whole. Tasks are packed to about equal size, at least one for each core.
"""

from __future__ import annotations

import hashlib
import heapq
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie.errors import HudiError
from hoodie.filters import RowFilter
from hoodie.filters.row_filter import joined
from hoodie.query import ReadPlan, narrowed
from hoodie.slices import FileRead, RowPlan
from hoodie.spark.arrow_types import arrow_schema, spark_schema
from hoodie.spark.engine import Runner, SparkEngine, numbered, pickled
from hoodie.spark.partial_aggregate import Aggregation, aggregated_schema
from hoodie.spark.worker_scan import Aggregates, Work, is_worker_scan_possible, with_longs, worker_scan
from hoodie.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_MIN_TASK_BYTES = 4 << 20
_AGGREGATED_ROWS = 128 * 1024
"""Rows that are aggregated together."""
_ROW_BYTES = 1024


Prune = Callable[[ReadPlan], ReadPlan]
"""The plan without slices that cannot hold a row of its filter, as far as statistics and indexes can tell."""


def worker_frame(spark: SparkSession, storage: Storage, plan: ReadPlan, prune: Prune | None = None) -> DataFrame:
    """The rows of `plan`, read by workers through our storage."""
    told = spark_schema(plan.schema)
    if not plan.files:
        return spark.createDataFrame([], told)
    cores = SparkEngine(spark).parallelism
    max_bytes = bytes_of(spark.conf.get("spark.sql.files.maxPartitionBytes") or "")
    if not is_worker_scan_possible(spark):
        tasks = plan_tasks(plan, cores, max_bytes)
        reader = numbered(reader_of(storage, plan.rows, told), tasks)
        return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(reader, told)

    def narrow(columns: tuple[str, ...], filters: tuple[str, ...]) -> Work:
        # A batch of no columns has no place for its number of rows: one column is read to count.
        less = narrowed(plan, columns or (_narrowest(plan.schema),), understood(filters, plan.schema, zone))
        if prune is not None:
            less = prune(less)
        kept, share = spark_schema(less.schema), len(less.schema) / len(plan.schema)
        condition = "" if less.rows.filter is None else f", where {less.rows.filter.text}"
        return Work(
            kept,
            reader_of(storage, less.rows, with_longs(kept)),
            plan_tasks(less, cores, max_bytes),
            int(less.size_bytes * share),
            f"slices: {len(less.files)} of {len(plan.files)}{condition}",
        )

    def aggregate(aggregation: Aggregation) -> Work:
        less = narrowed(plan, aggregation.columns or (_narrowest(plan.schema),))
        made = spark_schema(aggregated_schema(aggregation, less.schema))
        rows = replace(less.rows, batch_rows=max(less.rows.batch_rows, _AGGREGATED_ROWS))
        return Work(
            made,
            reader_of(storage, rows, with_longs(made), aggregation),
            plan_tasks(less, cores, max_bytes),
            _ROW_BYTES * len(less.files),
            f"slices: {len(less.files)}, aggregated",
        )

    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    return worker_scan(
        spark,
        told,
        narrow,
        name=f"hudi {storage.uri}",
        identity=lambda: scan_identity(storage, plan),
        aggregates=Aggregates(plan.schema, aggregate),
    )


def plan_tasks(plan: ReadPlan, cores: int, max_bytes: int) -> tuple[bytes, ...]:
    """The files of a plan as tasks of workers."""
    return tuple(pickled(pack) for pack in packed(plan.files, cores, max_bytes))


def reader_of(storage: Storage, rows: RowPlan, told: StructType, aggregation: Aggregation | None = None) -> Runner:
    """What reads such tasks in a worker, in the types of `told`. A nested function, so that workers import
    `read_worker` and not this module.
    """
    shared, made = pickled((storage, rows, aggregation)), arrow_schema(told)

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        from hoodie.spark.read_worker import read_tasks  # noqa: PLC0415 - runs in a worker

        yield from read_tasks(shared, made, batches)

    return read


def packed(files: Sequence[FileRead], cores: int, max_bytes: int) -> list[list[FileRead]]:
    """Files in groups of about equal size: as few as `max_bytes` allows, but work for every core."""
    total = sum(file.size_bytes for file in files)
    aim = min(max_bytes, max(_MIN_TASK_BYTES, -(-total // max(cores, 1))))
    count = min(len(files), max(1, -(-total // max(aim, 1))))
    groups: list[tuple[int, int, list[FileRead]]] = [(0, number, []) for number in range(count)]
    for file in sorted(files, key=lambda one: one.size_bytes, reverse=True):
        size, number, group = groups[0]
        group.append(file)
        heapq.heapreplace(groups, (size + file.size_bytes, number, group))
    return [group for _, _, group in sorted(groups, key=lambda one: one[1]) if group]


def understood(filters: Sequence[str], schema: pa.Schema, timezone: str) -> RowFilter | None:
    if not filters:
        return None
    # Loads sqlglot, which a query without conditions does not need.
    from hoodie.filters.sql import parse_row_filter  # noqa: PLC0415

    found = []
    for text in filters:
        try:
            found.append(parse_row_filter(text, schema, timezone=timezone))
        except HudiError:
            continue
    return joined(found)


def _narrowest(schema: pa.Schema) -> str:
    """A column that costs little to read."""
    fixed = (field.name for field in schema if pa.types.is_primitive(field.type))
    return str(next(fixed, schema.names[0]))


def scan_identity(storage: Storage, plan: ReadPlan) -> str:
    """Equal for plans that give equal rows, different for plans that may not: whatever workers are told of rows counts,
    rules of merging, columns by id and images of changes included.
    """
    what = (storage.uri, plan.query, plan.files, _content(plan.rows))
    return hashlib.sha256(repr(what).encode()).hexdigest()


def _content(value: Any) -> object:
    """Something with a `repr` that says all about `value`, the same for equal values."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = ((field.name, _content(getattr(value, field.name))) for field in fields(value))
        return (type(value).__qualname__, *parts)
    match value:
        case None | str() | bytes() | int() | float():
            return value
        case tuple() | list():
            return tuple(_content(one) for one in value)
        case frozenset() | set():
            return sorted(repr(_content(one)) for one in value)
        case Mapping():
            return sorted(repr((_content(key), _content(one))) for key, one in value.items())
    return hashlib.sha256(pickled(value)).digest()  # schemas, expressions, mergers of the user's


def bytes_of(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([kmg]?)b?", text.strip().lower())
    return 128 << 20 if found is None else int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2]]
