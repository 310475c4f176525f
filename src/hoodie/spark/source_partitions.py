"""What reads and streams of the Python data source share: the table that options name, and its plan in partitions.

Spark calls these in Python processes of its own, planning in one and reading in others, so everything that is needed
stands in the options and in a partition's bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from hoodie.engine import usable_cores
from hoodie.query import ReadPlan
from hoodie.spark.arrow_types import arrow_schema
from hoodie.spark.engine import pickled
from hoodie.spark.writer import path_of, without_path
from hoodie.table import Table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

# Spark hands options over in lower case.
START = "hoodie.datasource.streaming.startOffset".lower()
MAX_FILES = "maxFilesPerTrigger".lower()
MAX_BYTES = "maxBytesPerTrigger".lower()

_FORMAT = "hoodie.datasource.query.incremental.format"
_MAX_TASK_BYTES = 128 << 20


class FilePartition(InputPartition):
    """Some files of a plan and how to read them. Pickled by Spark."""

    def __init__(self, value: bytes) -> None:
        super().__init__(value)


def open_table(options: Mapping[str, str]) -> Table:
    """The table the options name; what only streams know is left out."""
    named = {name: value for name, value in options.items() if name.lower() not in (START, MAX_FILES, MAX_BYTES)}
    return Table.open(path_of(None, named), options=without_path(named))


def is_change_query(options: Mapping[str, str]) -> bool:
    """Whether changes with their images are asked for, rather than changed rows."""
    formats = (value for name, value in options.items() if name.lower() == _FORMAT)
    return next(formats, "").lower() == "cdc"


def partitions_of(table: Table, plan: ReadPlan) -> Iterator[FilePartition]:
    """The files of a plan in packs of about equal size."""
    from hoodie.spark.worker_frame import packed  # noqa: PLC0415 - loaded by the first use

    for pack in packed(plan.files, usable_cores(), _MAX_TASK_BYTES):
        yield FilePartition(pickled((table.storage, plan.rows, pack)))


def read_partition(partition: InputPartition, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Rows of a partition in the types of `schema`; runs in a worker."""
    from hoodie.spark.read_worker import read_pack  # noqa: PLC0415 - loaded by the first use

    if isinstance(partition, FilePartition):  # a plan without files makes Spark invent a partition
        yield from read_pack(partition.value, arrow_schema(schema))
