"""Files of a plan read in a Spark worker, through our own storage."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

import pyarrow as pa

from hoodie.slices import FileRead, RowPlan, read_rows
from hoodie.spark.failures import through_jvm
from hoodie.spark.partial_aggregate import aggregated
from hoodie.spark.worker import start, with_schema
from hoodie.storage import Storage


def read_tasks(shared: bytes, made: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of the tasks in the first column of `batches`, in the types of `made`. `shared` is what all have in common:
    storage, row plan, and the aggregation of which partial rows are wanted, or None.
    """
    start()
    storage, rows, aggregation = pickle.loads(shared)
    with through_jvm():
        for batch in batches:
            for task in batch.column(0):
                read = _rows_of(storage, rows, pickle.loads(task.as_buffer()))
                found = read if aggregation is None else aggregated(read, aggregation, rows.schema)
                yield from with_schema(found, made)


def _rows_of(storage: Storage, rows: RowPlan, files: Iterable[FileRead]) -> Iterator[pa.RecordBatch]:
    for file in files:
        yield from read_rows(storage, rows, file)


def read_pack(pack: bytes, made: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of one pickled (storage, row plan, files), in the types of `made`."""
    start()
    storage, rows, files = pickle.loads(pack)
    with through_jvm():
        yield from with_schema(_rows_of(storage, rows, files), made)
