"""`hoodie write`: put rows of files into a table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

import hoodie
from hoodie.cli.arguments import AsJson, EngineName, EngineOption, Options, TablePath, parse_options
from hoodie.cli.printing import Step, console, print_json, progress
from hoodie.cli.render import commit_grid, commit_row
from hoodie.cli.rows import open_rows
from hoodie.cli.spark import spark_engine, start_spark
from hoodie.engine import Engine, LocalEngine, Work
from hoodie.errors import Invalid
from hoodie.table import as_source
from hoodie.table import write as write_rows
from hoodie.write import Committed, parse_operation

T = TypeVar("T")
R = TypeVar("R")

_OPERATION = "hoodie.datasource.write.operation"


@dataclass(frozen=True)
class ShownEngine:
    """An engine that says on the terminal what it runs."""

    inner: Engine
    step: Step

    @property
    def parallelism(self) -> int:
        return self.inner.parallelism

    def run(self, work: Work[T, R], tasks: Sequence[T], label: str) -> list[R]:
        self.step.update(f"{label} ({len(tasks)} tasks)" if len(tasks) > 1 else label)
        return self.inner.run(work, tasks, label)


def run(
    path: TablePath,
    *,
    operation: Annotated[str, typer.Option("--operation", help="What to do with the rows.")] = "upsert",
    input: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="FILE", help="Rows: .parquet, .csv, .json or .arrow; may be repeated."),
    ] = None,
    option: Options = None,
    engine: EngineOption = EngineName.LOCAL,
    json: AsJson = False,
) -> None:
    """Write rows to a table, which is created by the first write."""
    what = parse_operation(operation)
    options = {**parse_options(option), _OPERATION: what}
    if input is None and what != "delete_partition":
        raise Invalid(f"Operation {what} needs rows", remedy="Give them with --input FILE")
    start = time.monotonic()
    with progress(f"{what} into {path}") as step:
        committed = _write(path, what, input, options=options, engine=engine, step=step)
    if json:
        print_json(commit_row(committed))
    else:
        console().print(commit_grid(committed, time.monotonic() - start))


def _write(
    path: str, what: str, files: list[str] | None, *, options: dict[str, str], engine: EngineName, step: Step
) -> Committed:
    spark: Any = None
    runner: Engine = LocalEngine()
    if engine is EngineName.SPARK:
        step.update("starting Spark")
        spark = start_spark()
        runner = spark_engine(spark)
    if files is None:
        return hoodie.Table.open(path, options=options, engine=ShownEngine(runner, step)).write(what, None)
    rows = open_rows(files) if spark is None else _spark_frame(spark, files)
    committed = write_rows(as_source(rows), path, options, "append", engine=ShownEngine(runner, step))
    assert committed is not None, "mode append always writes"
    return committed


def _spark_frame(spark: Any, files: list[str]) -> Any:
    """The rows of `files` as a Spark DataFrame; parquet is read by Spark itself."""
    if all(Path(file).suffix == ".parquet" for file in files):
        return spark.read.parquet(*(str(Path(file).absolute()) for file in files))
    return spark.createDataFrame(open_rows(files).read_all())
