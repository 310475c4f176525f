"""How large the Arrow batches are in which a job sends rows to Python.

1. Larger ones than Spark's default suit parquet; a larger setting of the session stays. Spark also ends a batch at
   64 MB, and for that it adds up the buffers of all columns after each row: with many columns that costs as much as all
   else about the batch.
2. Rows of a scan of files are nearly always narrow. They travel in batches of `_ROWS_UNCOUNTED` rows whose bytes nobody
   counts, because `unless_wide` keeps back the texts of a row that is wider than its share of 64 MB, and marks it. So a
   batch is no larger than a counted one, whatever is in the files.
3. A worker that meets a marked row says so (`WideRow`), what the job has written is dropped as that of any job that
   failed, and the frame is evaluated again with bytes counted. Who reads files can read them twice; other frames, and
   those with nested columns, are counted at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import BATCH_ROWS
from hoodie.spark.sql_text import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_BYTES: Final = 64 * 1024 * 1024

_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_DEFAULT_BYTES: Final = (f"{BATCH_BYTES}b", "64MB")
_UNCOUNTED: Final = str((1 << 31) - 1)
"""Spark counts no bytes with this limit."""
_ROWS_UNCOUNTED: Final = 1024
_FIXED_BYTES: Final = 16
"""No value of fixed width has more."""

_MARK: Final = "_hoodie_is_wide"
_TEXTS: Final = frozenset({"StringType", "BinaryType", "VarcharType", "CharType"})
_FIXED: Final = frozenset(
    {
        "BooleanType", "ByteType", "ShortType", "IntegerType", "LongType", "FloatType", "DoubleType", "DecimalType",
        "DateType", "TimestampType", "TimestampNTZType",
    }
)  # fmt: skip


class WideRow(Exception):
    """A row had more bytes than its share of a batch, and came without its texts."""


@contextmanager
def large_batches(spark: SparkSession, *, counted: bool = True) -> Iterator[None]:
    """Batches of a good size for the jobs started inside. Not `counted`: for frames of `unless_wide`."""
    wanted = {_ROWS: str(_ROWS_UNCOUNTED), _BYTES: _UNCOUNTED}
    if counted:
        rows = int(spark.conf.get(_ROWS) or 0)
        wanted = {_ROWS: str(BATCH_ROWS)} if 0 < rows < BATCH_ROWS else {}
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


def unless_wide(frame: DataFrame) -> DataFrame | None:
    """`frame` with a last column that marks rows wider than their share of a batch, which come without their texts.
    None where bytes have to be counted.
    """
    kinds = [type(field.dataType).__name__ for field in frame.schema.fields]
    room = BATCH_BYTES // _ROWS_UNCOUNTED - _FIXED_BYTES * len(kinds)
    if room <= 0 or not set(kinds) <= _TEXTS | _FIXED or not (_has_default_limit(frame) and _reads_files(frame)):
        return None
    from pyspark.sql import functions as F  # noqa: PLC0415 - not every session and worker has to load it

    names = [quoted(name) for name in frame.columns]
    texts = [name for name, kind in zip(names, kinds, strict=True) if kind in _TEXTS]
    size = " + ".join(["0L", *(f"coalesce(cast(octet_length({name}) as bigint), 0L)" for name in texts)])
    sent = [f"if({size} > {room}, null, {name}) as {name}" if name in texts else name for name in names]
    return frame.select(*(F.expr(column) for column in [*sent, f"{size} > {room} as {_MARK}"]))


def _has_default_limit(frame: DataFrame) -> bool:
    """Whether Spark has a limit for bytes, and the user has left it as it is."""
    try:
        return frame.sparkSession.conf.get(_BYTES) in _DEFAULT_BYTES
    except Exception:  # Spark's own error for a setting that it does not know
        return False


def _reads_files(frame: DataFrame) -> bool:
    """Whether the rows are those of a scan of files, with conditions and expressions over it and nothing else."""
    plan: Any = frame._jdf.queryExecution().optimizedPlan()
    while (kind := _class(plan)) in ("Filter", "Project"):
        plan = plan.child()
    return kind == "LogicalRelation" and _class(plan.relation()) == "HadoopFsRelation"


def _class(thing: Any) -> str:
    return str(thing.getClass().getSimpleName())


def unmarked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of a frame of `unless_wide` as they were before it, in large batches.

    Raises:
        WideRow: one of them is marked.
    """
    for batch in batches:
        columns, mark = batch.columns[:-1], batch.columns[-1]
        if pc.any(mark).as_py():
            raise WideRow
        yield pa.RecordBatch.from_arrays(columns, batch.schema.names[:-1])


def joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, with small batches joined to ones of at most `BATCH_ROWS` rows and half of `BATCH_BYTES`."""
    held: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for batch in batches:
        if held and (rows + batch.num_rows > BATCH_ROWS or size_bytes + batch.nbytes > BATCH_BYTES // 2):
            yield pa.concat_batches(held)
            held, rows, size_bytes = [], 0, 0
        held.append(batch)
        rows += batch.num_rows
        size_bytes += batch.nbytes
    if held:
        yield pa.concat_batches(held)
