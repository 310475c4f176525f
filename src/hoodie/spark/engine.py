"""`SparkEngine`: the engine seam on a Spark session, classic or Connect.

One Spark task for each task: where the JVM is at hand by a worker scan, so that each Spark task carries its own bytes
only; elsewhere, and for very many tasks, by `mapInArrow` over `spark.range`, where all tasks travel pickled inside the
function. Outcomes come back as binary rows (see `worker`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from hoodie.engine import Work as TaskWork
from hoodie.spark.arrow_types import spark_schema
from hoodie.spark.failures import translated
from hoodie.spark.worker import OUTCOME_DDL, OUTCOME_SCHEMA, outcomes
from hoodie.spark.worker_scan import Work, is_worker_scan_possible, worker_scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
R = TypeVar("R")

Runner = Callable[[Iterator[Any]], Iterator[Any]]
"""Runs in a worker: batches of one binary column that hold tasks in, batches of rows out."""

MAX_SCANNED_TASKS = 1000
"""With more tasks, two calls into the JVM for each cost more than sending all of them along with the function."""

_LOOPBACK = "127.0.0.1"
_DESCRIPTION = "spark.job.description"


class SparkEngine:
    """Runs tasks in the Python workers of a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    @property
    def parallelism(self) -> int:
        """Tasks that run at the same time, as far as the session can say."""
        if is_classic(self.spark):
            return int(self.spark.sparkContext.defaultParallelism)
        named = self.spark.conf.get("spark.default.parallelism", None)
        return int(named or self.spark.conf.get("spark.sql.shuffle.partitions", "8") or 8)

    @property
    def runs_tasks_once(self) -> bool:
        """No: Spark repeats tasks of lost workers, and slow ones."""
        return False

    @property
    def driver_host(self) -> str | None:
        """Where executors reach the driver; None over Spark Connect, whose driver is elsewhere."""
        if not is_classic(self.spark):
            return None
        if (self.spark.sparkContext.master or "").startswith("local"):
            return _LOOPBACK  # also `local-cluster`: its executors are processes of this machine
        return self.spark.conf.get("spark.driver.host", None)

    def run(self, work: TaskWork[T, R], tasks: Sequence[T], label: str) -> list[R]:
        """Results in the order of `tasks`. Errors of the work are raised as they were, when all tasks have ended.

        Raises:
            Unavailable: Spark lost a worker. HudiError: the Spark job itself failed.
        """
        if not tasks:
            return []
        frame = self._frame(pickled(work), tuple(pickled(task) for task in tasks), label)
        with translated(label), described(self.spark, label):
            table = frame.toArrow()
        return outcomes(table)

    def _frame(self, work: bytes, tasks: tuple[bytes, ...], label: str) -> DataFrame:
        runner = _task_runner(work)
        if len(tasks) <= MAX_SCANNED_TASKS and is_worker_scan_possible(self.spark):
            schema = spark_schema(OUTCOME_SCHEMA)
            whole = Work(schema, runner, tasks, sum(len(task) for task in tasks))
            return worker_scan(self.spark, schema, lambda _columns, _filters: whole, name=label, identity=lambda: label)
        numbers = self.spark.range(0, len(tasks), 1, len(tasks))
        return numbers.mapInArrow(numbered(runner, tasks), OUTCOME_DDL)


def is_classic(spark: SparkSession) -> bool:
    """Whether the JVM of this session is at hand (py4j), as opposed to Spark Connect."""
    return not type(spark).__module__.startswith("pyspark.sql.connect")


def pickled(value: object) -> bytes:
    """`value` for a worker. Functions of scripts and notebooks may travel, too."""
    from pyspark import cloudpickle  # noqa: PLC0415 - not every session and worker has to load it

    return bytes(cloudpickle.dumps(value))  # type: ignore[no-untyped-call]


@contextmanager
def described(spark: SparkSession, label: str) -> Iterator[None]:
    """Jobs started inside carry `label` in Spark's own pages."""
    if not is_classic(spark):
        yield
        return
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, f"hoodie: {label}")
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]


def numbered(runner: Runner, tasks: Sequence[bytes]) -> Runner:
    """`runner`, which takes batches of tasks, for batches of their numbers: all tasks travel with the function."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from hoodie.spark.worker import tasks_of  # noqa: PLC0415 - runs in a worker

        yield from runner(tasks_of(tasks, batches))

    return run


def _task_runner(work: bytes) -> Runner:
    """A nested function, so that workers import `worker` and not this module."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from hoodie.spark.worker import run_tasks  # noqa: PLC0415 - runs in a worker

        yield from run_tasks(work, batches)

    return run
