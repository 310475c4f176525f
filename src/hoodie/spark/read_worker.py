"""Files of a plan read in a Spark worker, through our own storage."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

import pyarrow as pa

from hoodie.errors import HudiError
from hoodie.read import read_rows
from hoodie.spark.failures import raise_through_jvm
from hoodie.spark.worker import start, with_schema


def read_tasks(shared: bytes, made: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of the tasks in the first column of `batches`, in the types of `made`. `shared` is what all have in common:
    storage and row plan.
    """
    start()
    storage, rows = pickle.loads(shared)
    try:
        for batch in batches:
            for task in batch.column(0):
                for file in pickle.loads(task.as_buffer()):
                    yield from with_schema(read_rows(storage, rows, file), made)
    except HudiError as error:
        raise_through_jvm(error)


def read_pack(pack: bytes, made: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of one pickled (storage, row plan, files), in the types of `made`."""
    start()
    storage, rows, files = pickle.loads(pack)
    try:
        for file in files:
            yield from with_schema(read_rows(storage, rows, file), made)
    except HudiError as error:
        raise_through_jvm(error)
