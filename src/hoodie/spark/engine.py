"""`SparkEngine`: the engine seam on a Spark session, classic or Connect.

One Spark task for each task, by `mapInArrow` over `spark.range`: this needs no RDD and no JVM at hand. Work and tasks
travel pickled inside the function, outcomes come back as binary rows (see `worker`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from hoodie.engine import Work
from hoodie.spark.failures import translated
from hoodie.spark.worker import OUTCOME_DDL, outcomes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

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

    def run(self, work: Work[T, R], tasks: Sequence[T], label: str) -> list[R]:
        """Results in the order of `tasks`. Errors of the work are raised as they were, when all tasks have ended.

        Raises:
            Unavailable: Spark lost a worker. HudiError: the Spark job itself failed.
        """
        if not tasks:
            return []
        frame = self.spark.range(0, len(tasks), 1, len(tasks))
        runner = _task_runner(pickled(work), [pickled(task) for task in tasks])
        with translated(label), described(self.spark, label):
            table = frame.mapInArrow(runner, OUTCOME_DDL).toArrow()
        return outcomes(table)


def is_classic(spark: SparkSession) -> bool:
    """Whether the JVM of this session is at hand (py4j), as opposed to Spark Connect."""
    return not type(spark).__module__.startswith("pyspark.sql.connect")


def pickled(value: object) -> bytes:
    """`value` for a worker. Functions of scripts and notebooks may travel, too."""
    from pyspark import cloudpickle  # noqa: PLC0415

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


def _task_runner(work: bytes, tasks: Sequence[bytes]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A nested function, so that workers import `worker` and not this module."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from hoodie.spark.worker import run_tasks  # noqa: PLC0415

        yield from run_tasks(work, tasks, batches)

    return run
