"""How large the Arrow batches are in which a job sends rows to Python.

1. Larger ones than Spark's default suit parquet; a larger setting of the session stays. Spark also ends a batch at
   64 MB, and for that it adds up the buffers of all columns after each row: with many columns that costs as much as all
   else about the batch.
2. So rows that come straight out of a vectorized reader travel in batches of as many rows as that reader decodes at
   once (which no number of bytes limits either), and nobody counts bytes: a batch needs about the memory that the
   reader has taken for such rows already. The worker joins small batches (`worker.in_large_batches`).
3. Rows from anywhere else (objects, shuffles, expressions that make text) may be of any width: there bytes are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from hoodie.engine import BATCH_ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_DEFAULT_BYTES: Final = ("67108864b", "64MB")
_NO_LIMIT: Final = (1 << 31) - 1
"""Spark counts no bytes with this limit."""

_FORMATS: Final = ("parquet", "orc")
_ROW_READERS: Final = "spark.sql.{}.columnarReaderBatchSize"
_FIXED: Final = frozenset(
    {"boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "date", "timestamp", "timestamp_ntz"}
)


@contextmanager
def large_batches(spark: SparkSession, scanned_rows: int | None = None) -> Iterator[None]:
    """Batches of a good size for the jobs started inside. `scanned_rows`: see `rows_scanned_at_once`."""
    wanted = _wanted(spark, scanned_rows)
    before = {name: spark.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def _wanted(spark: SparkSession, scanned_rows: int | None) -> dict[str, str]:
    """Settings to make for a job."""
    if scanned_rows is not None and _setting(spark, _BYTES) in _DEFAULT_BYTES:
        return {_ROWS: str(scanned_rows), _BYTES: str(_NO_LIMIT)}
    rows = int(_setting(spark, _ROWS) or 0)
    return {_ROWS: str(BATCH_ROWS)} if 0 < rows < BATCH_ROWS else {}


def _setting(spark: SparkSession, name: str) -> str | None:
    """A setting or its default; None where Spark knows no such setting."""
    try:
        return spark.conf.get(name)
    except Exception:  # Spark's own error for it
        return None


def rows_scanned_at_once(frame: DataFrame) -> int | None:
    """Rows that the vectorized reader below `frame` decodes at once, where the frame's rows are no wider than its: a
    scan with conditions, and with columns of it, constants and values of fixed width. None for every other frame.
    """
    plan: Any = frame._jdf.queryExecution().optimizedPlan()
    while (kind := _class(plan)) in ("Filter", "Project"):
        if kind == "Project" and not all(_is_narrow(column) for column in _elements(plan.projectList())):
            return None
        plan = plan.child()
    if kind != "LogicalRelation" or _class(plan.relation()) != "HadoopFsRelation":
        return None
    files = plan.relation().fileFormat()
    name = next((name for name in _FORMATS if _class(files).lower() == f"{name}fileformat"), None)
    spark = frame.sparkSession
    if name is None or not files.supportBatch(spark._jsparkSession, plan.schema()):
        return None
    rows = int(spark.conf.get(_ROW_READERS.format(name)) or 0)
    return rows if rows > 0 else None


def _is_narrow(column: Any) -> bool:
    """Whether the column of a projection is one of the scan, a constant, or of a type of fixed width."""
    value = column.child() if _class(column) == "Alias" else column
    return _class(value) in ("AttributeReference", "Literal") or _type_name(column.dataType()) in _FIXED


def _type_name(kind: Any) -> str:
    return str(kind.typeName()).partition("(")[0]


def _elements(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(at) for at in range(sequence.size()))


def _class(thing: Any) -> str:
    return str(thing.getClass().getSimpleName())
