"""What runs in Spark's Python workers: tasks and batches in, pickled outcomes out.

1. An error of the work is an outcome like any other. The Spark job succeeds, so when the driver hears of the error all
   tasks have ended and none still writes files that are about to be rolled back.
2. Rows are seen as the caller's schema says, whatever Spark does to them on the way: time zone and metadata are undone.
3. A worker imports this module, pyarrow and what the work itself needs. Nothing of PySpark but the task's context.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.arrow_start import start_without_pandas
from hoodie.engine import BatchMap, BatchWork, TaskId
from hoodie.spark.batch_size import joined, unmarked
from hoodie.spark.unscaled import decimals, digits_of

OUTCOME_SCHEMA = pa.schema([pa.field("done", pa.bool_()), pa.field("outcome", pa.binary())])
OUTCOME_DDL = "done boolean, outcome binary"


class RemoteError(Exception):
    """The traceback of an error in a worker, as text: the cause of the error that is raised in the driver."""


def run_tasks(work: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One outcome for each task in the first column of `batches`."""
    task_id = start()
    run = pickle.loads(work)
    for batch in batches:
        for task in batch.column(0):
            try:
                outcome = _done(run(task_id, pickle.loads(task.as_buffer())))
            except Exception as error:
                outcome = _failed(error)
            yield outcome


def tasks_of(tasks: Sequence[bytes], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The tasks whose numbers stand in the first column of `batches`."""
    for batch in batches:
        chosen = [tasks[number] for number in batch.column(0).to_pylist()]
        yield pa.RecordBatch.from_arrays([pa.array(chosen, pa.binary())], ["task"])


def consume_batches(
    work: bytes, maps: bytes, schema: pa.Schema, batches: Iterator[pa.RecordBatch], *, is_marked: bool
) -> Iterator[pa.RecordBatch]:
    """One outcome for everything the work yields over `batches`, after `maps`; the first error is the last outcome.
    `is_marked`: they are those of a frame of `batch_size.unless_wide`.
    """
    task_id = start()
    run: BatchWork[Any] = pickle.loads(work)
    steps: tuple[BatchMap, ...] = pickle.loads(maps)
    try:
        rows = with_schema(joined(unmarked(batches)) if is_marked else batches, schema)
        for result in run(task_id, _mapped(task_id, steps, rows)):
            yield _done(result)
    except Exception as error:
        yield _failed(error)


def map_batches(
    maps: bytes, schema: pa.Schema, made: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """`batches` after `maps`, in the types of `made`, which Spark was told. Errors end the job."""
    from hoodie.spark.failures import through_jvm  # noqa: PLC0415 - loaded by the first use

    task_id = start()
    steps: tuple[BatchMap, ...] = pickle.loads(maps)
    with through_jvm():
        yield from with_schema(_mapped(task_id, steps, with_schema(batches, schema)), made)


def start() -> TaskId:
    """Prepares this worker for its task and says which it is."""
    from pyspark import TaskContext  # noqa: PLC0415 - not every session and worker has to load it

    start_without_pandas()
    pa.set_cpu_count(1)  # Spark runs one task per core already
    context = TaskContext.get()
    if context is None:
        return TaskId(0, 0, 0)
    return TaskId(context.partitionId(), context.stageId(), int(context.taskAttemptId()))


def outcomes(table: pa.Table) -> list[Any]:
    """Results in a table of `OUTCOME_SCHEMA`, in order.

    Raises:
        the first error among them, with the worker's traceback as its cause.
    """
    results = []
    for done, data in zip(table.column("done").to_pylist(), table.column("outcome"), strict=True):
        if not done:
            error, trace = pickle.loads(data.as_buffer())
            raise error from RemoteError(f"\n{trace}")
        results.append(pickle.loads(data.as_buffer()))
    return results


def with_schema(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """`batches` with exactly the names, types and metadata of `schema`; columns go by position. A decimal for which
    `schema` has a long gives its digits, and a long for which it has a decimal is taken for them.
    """
    for batch in batches:
        columns = [_in_type(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _in_type(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if column.type.equals(wanted, check_metadata=True):
        return column
    if pa.types.is_decimal128(column.type) and pa.types.is_int64(wanted):
        return _digits(column)
    if pa.types.is_int64(column.type) and pa.types.is_decimal128(wanted):
        return _decimals(column, wanted)
    return column.cast(wanted)


def _digits(column: pa.Array) -> pa.Array:
    missing = None if column.null_count == 0 else column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(digits_of(column), mask=missing)


def _decimals(column: pa.Array, wanted: pa.Decimal128Type) -> pa.Array:
    longs = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column)]
    present = None if column.null_count == 0 else pa.concat_arrays([column.is_valid()]).buffers()[1]
    return decimals(longs, present, wanted)


def _mapped(task_id: TaskId, steps: Iterable[BatchMap], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for step in steps:
        batches = step(task_id, batches)
    return batches


def _done(result: object) -> pa.RecordBatch:
    return _row(True, pickle.dumps(result, pickle.HIGHEST_PROTOCOL))


def _failed(error: Exception) -> pa.RecordBatch:
    trace = traceback.format_exc()
    try:
        data = pickle.dumps((error, trace))
        pickle.loads(data)
    except Exception:  # an exception that does not survive pickling is told by its text
        data = pickle.dumps((RuntimeError(f"{type(error).__name__}: {error}"), trace))
    return _row(False, data)


def _row(done: bool, data: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([done]), pa.array([data], pa.binary())], schema=OUTCOME_SCHEMA)
