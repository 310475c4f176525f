"""Base files read in a Spark worker, through our own storage."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from hoodie.errors import HudiError
from hoodie.read import FileRead, RowPlan, read_rows
from hoodie.spark.failures import raise_through_jvm
from hoodie.spark.worker import start, with_schema
from hoodie.storage import Storage


def read_tasks(tasks: Sequence[bytes], made: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of the tasks whose numbers stand in the first column of `batches`, in the types of `made`."""
    start()
    try:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                storage, rows, files = pickle.loads(tasks[number])
                yield from with_schema(_rows(storage, rows, files), made)
    except HudiError as error:
        raise_through_jvm(error)


def _rows(storage: Storage, rows: RowPlan, files: Iterable[FileRead]) -> Iterator[pa.RecordBatch]:
    for file in files:
        yield from read_rows(storage, rows, file)
