"""How work is spread: the seam between plans and the machines that run them.

1. An `Engine` runs one module-level function over many frozen tasks and gives the results back in task order.
2. A `Source` is the input of a write. It is evaluated at most once, whatever the write needs to know about it.
3. Everything that travels (work, tasks, results) is picklable; storages and environments travel inside tasks.
4. A task may run more than once (Spark retries, speculation), unless the engine says that it does not. Its `TaskId`
   differs each time, so file names differ and the finalising step can tell winners from losers.

`LocalEngine` and `ArrowSource` live here because they need nothing but pyarrow; the Spark pair lives in `hoodie.spark`.
This module knows nothing about tables, files or Hudi.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

T = TypeVar("T")
R = TypeVar("R")

ROWS_PER_LOCAL_TASK = 262_144
BATCH_ROWS = 131_072

_stages = itertools.count(1)


@dataclass(frozen=True, slots=True)
class TaskId:
    """Where one attempt of one task runs: the three numbers of Hudi's write token."""

    partition: int
    stage: int
    attempt: int

    @property
    def token(self) -> str:
        """`<taskPartitionId>-<stageId>-<taskAttemptId>`, as it stands in data file names."""
        return f"{self.partition}-{self.stage}-{self.attempt}"


class BulkInsertSortMode(Enum):
    """Order and distribution of the rows of a bulk insert before they are written; Hudi's names."""

    NONE = "NONE"
    GLOBAL_SORT = "GLOBAL_SORT"
    PARTITION_SORT = "PARTITION_SORT"
    PARTITION_PATH_REPARTITION = "PARTITION_PATH_REPARTITION"
    PARTITION_PATH_REPARTITION_AND_SORT = "PARTITION_PATH_REPARTITION_AND_SORT"


Work = Callable[[TaskId, T], R]
BatchWork = Callable[[TaskId, Iterator[pa.RecordBatch]], Iterator[R]]
BatchMap = Callable[[TaskId, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Engine(Protocol):
    """Runs tasks somewhere."""

    @property
    def parallelism(self) -> int:
        """How many tasks can run at the same time."""
        ...

    @property
    def runs_tasks_once(self) -> bool:
        """Whether no task of a run that succeeded ran a second time, so that nothing is there but what results say."""
        ...

    @property
    def driver_host(self) -> str | None:
        """The name by which tasks in other processes reach this one; None where they run in it."""
        ...

    def run(self, work: Work[T, R], tasks: Sequence[T], label: str) -> list[R]:
        """Results of `work(task_id, task)` in the order of `tasks`.

        `label` names the step for people who wait. The first error ends the run and is raised as it was.
        """
        ...


class Source(Protocol):
    """Rows on their way into a table."""

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows, as the caller gave them."""
        ...

    @property
    def in_process(self) -> bool:
        """Whether `consume` runs its work in this process, so that results are handed over and not sent."""
        ...

    def small(self, limit_bytes: int) -> pa.Table | None:
        """All rows, if the source knows beforehand that they are at most `limit_bytes`; None otherwise."""
        ...

    def mapped(self, work: BatchMap, schema: pa.Schema) -> Source:
        """The same source with `work` applied to its batches when it is evaluated; `schema` is what `work` yields."""
        ...

    def in_sort_mode(self, sort_mode: BulkInsertSortMode, partition_column: str, key_column: str) -> Source:
        """The same rows distributed and sorted as `sort_mode` says, by two string columns of the schema."""
        ...

    def consume(self, work: BatchWork[R], label: str) -> list[R]:
        """Everything `work` yields over all tasks of the source. Ends the source: it is evaluated here, once."""
        ...


def usable_cores() -> int:
    """Cores this process may use: those it is bound to, where the system can say (Linux), else all."""
    bound = getattr(os, "sched_getaffinity", None)
    return len(bound(0)) if bound is not None else os.cpu_count() or 1


class LocalEngine:
    """Threads of this process. pyarrow and file I/O release the GIL, so tasks overlap."""

    def __init__(self, parallelism: int | None = None) -> None:
        self._parallelism = parallelism or usable_cores()

    @property
    def parallelism(self) -> int:
        return self._parallelism

    @property
    def runs_tasks_once(self) -> bool:
        return True

    @property
    def driver_host(self) -> str | None:
        return None

    def run(self, work: Work[T, R], tasks: Sequence[T], label: str) -> list[R]:
        stage = next(_stages)
        calls = [(TaskId(n, stage, 0), task) for n, task in enumerate(tasks)]
        if len(calls) <= 1 or self._parallelism == 1:
            return [work(task_id, task) for task_id, task in calls]
        pool = ThreadPoolExecutor(self._parallelism, thread_name_prefix=f"hoodie-{label}")
        futures: list[Future[R]] = []
        try:
            for task_id, task in calls:
                futures.append(pool.submit(work, task_id, task))  # one by one: those begun are known at any moment
            return [future.result() for future in futures]
        finally:
            _end(pool, futures)


def side_by_side(*calls: Callable[[], Any]) -> tuple[Any, ...]:
    """What the calls give, in their order; they wait for storage at the same time. Of several errors the first call's
    is raised.
    """
    return tuple(LocalEngine(len(calls)).run(_called, calls, "at once"))


def _called(_: TaskId, call: Callable[[], Any]) -> Any:
    return call()


def _end(pool: ThreadPoolExecutor, futures: Iterable[Future[R]]) -> None:
    """Wait until no task runs any more, however often the user or a signal interrupts: a task that outlived its write
    would leave files behind whoever takes the write back.
    """
    interrupt: BaseException | None = None
    while True:
        try:
            for future in futures:
                future.cancel()
            wait(futures)  # not `shutdown`: a thread whose join was interrupted passes for ended
            break
        except BaseException as again:
            interrupt = interrupt or again
    pool.shutdown()
    if interrupt is not None:
        raise interrupt


class ArrowSource:
    """An Arrow table or record batch reader as the input of a write on `LocalEngine`.

    A table is cut into tasks of some hundred thousand rows; a reader is one task, because it can only be read in order.
    """

    def __init__(self, data: pa.Table | pa.RecordBatchReader, engine: LocalEngine | None = None) -> None:
        self._data = data
        self._engine = engine or LocalEngine()
        self._maps: tuple[BatchMap, ...] = ()
        self._schema = data.schema

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def in_process(self) -> bool:
        return True

    @property
    def is_table(self) -> bool:
        """Whether its rows are in memory, so that they can be read again."""
        return isinstance(self._data, pa.Table)

    def small(self, limit_bytes: int) -> pa.Table | None:
        if self._maps or not isinstance(self._data, pa.Table) or self._data.nbytes > limit_bytes:
            return None
        return self._data

    def mapped(self, work: BatchMap, schema: pa.Schema) -> ArrowSource:
        made = ArrowSource(self._data, self._engine)
        made._maps = (*self._maps, work)
        made._schema = schema
        return made

    def in_sort_mode(self, sort_mode: BulkInsertSortMode, partition_column: str, key_column: str) -> ArrowSource:
        if sort_mode is BulkInsertSortMode.NONE:
            return self
        by = [(partition_column, "ascending")]
        if sort_mode is not BulkInsertSortMode.PARTITION_PATH_REPARTITION:
            by.append((key_column, "ascending"))
        batches = self.consume(_pass_through, "arrange")
        table = pa.Table.from_batches(batches, self._schema)
        return ArrowSource(table.take(pc.sort_indices(table, sort_keys=by)), LocalEngine(1))

    def consume(self, work: BatchWork[R], label: str) -> list[R]:
        stage = next(_stages)
        tasks = [_BatchTask(TaskId(n, stage, 0), part, self._maps, work) for n, part in enumerate(self._parts())]
        results = self._engine.run(_run_batches, tasks, label)
        return [one for part in results for one in part]

    def _parts(self) -> Iterable[pa.Table | pa.RecordBatchReader]:
        if not isinstance(self._data, pa.Table):
            return (self._data,)
        tasks = max(1, min(self._engine.parallelism, -(-self._data.num_rows // ROWS_PER_LOCAL_TASK)))
        rows = max(1, -(-self._data.num_rows // tasks))
        return (self._data.slice(n * rows, rows) for n in range(tasks))


def again_and_again(source: Source) -> Source:
    """A source with the same rows that may be evaluated more than once: a record batch reader is read into memory. One
    that works elsewhere computes its rows again each time.
    """
    if not isinstance(source, ArrowSource) or source.is_table:
        return source
    return ArrowSource(pa.Table.from_batches(source.consume(_pass_through, "keep"), source.schema))


@dataclass(frozen=True, slots=True)
class _BatchTask:
    task_id: TaskId
    part: Any
    maps: tuple[BatchMap, ...]
    work: BatchWork[Any]


def _run_batches(_: TaskId, task: _BatchTask) -> list[Any]:
    batches: Iterator[pa.RecordBatch]
    if isinstance(task.part, pa.Table):
        batches = iter(task.part.to_batches(max_chunksize=BATCH_ROWS))
    else:
        batches = iter(task.part)
    for step in task.maps:
        batches = step(task.task_id, batches)
    return list(task.work(task.task_id, batches))


def _pass_through(_: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
