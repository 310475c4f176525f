"""`hoodie write`: write rows of files to a table; the first write creates it."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import hoodie
from hoodie.cli.arguments import SPARK, add_engine, add_json, add_table, parse_options
from hoodie.cli.facts import commit_row
from hoodie.cli.printing import Step, console, print_json, progress
from hoodie.cli.rows import open_rows
from hoodie.cli.shown_engine import ShownEngine
from hoodie.cli.spark import spark_engine, start_spark
from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.table import as_source
from hoodie.table import write as write_rows
from hoodie.write import Committed, parse_operation

_OPERATION = "hoodie.datasource.write.operation"


def define(parser: ArgumentParser) -> None:
    add_table(parser)
    parser.add_argument(
        "--operation", default="upsert", metavar="OP", help="upsert (default), insert, bulk_insert, delete, ..."
    )
    parser.add_argument(
        "--input", action="append", metavar="FILE", help="rows: .parquet, .csv, .json or .arrow; may be repeated"
    )
    add_engine(parser)
    add_json(parser)


def run(said: Namespace) -> int:
    operation = parse_operation(said.operation)
    if said.input is None and operation != "delete_partition":
        raise Invalid(f"Operation {operation} needs rows", remedy="Give them with --input FILE")
    options = {**parse_options(said.option), _OPERATION: operation}
    start = time.monotonic()
    with progress(f"{operation} into {said.path}") as step:
        committed = _write(said, operation, options, step)
    if said.json:
        print_json(commit_row(committed))
        return 0
    from hoodie.cli.render import commit_grid  # noqa: PLC0415 - loads rich

    console().print(commit_grid(committed, time.monotonic() - start))
    return 0


def _write(said: Namespace, operation: str, options: dict[str, str], step: Step) -> Committed:
    spark: Any = None
    if said.engine == SPARK:
        step.update("starting Spark")
        spark = start_spark()
    engine = ShownEngine(LocalEngine() if spark is None else spark_engine(spark), step)
    if said.input is None:
        return hoodie.Table.open(said.path, options=options, engine=engine).write(operation, None)
    rows = open_rows(said.input) if spark is None else _spark_frame(spark, said.input)
    committed = write_rows(as_source(rows), said.path, options, "append", engine=engine)
    assert committed is not None, "mode append always writes"
    return committed


def _spark_frame(spark: Any, files: list[str]) -> Any:
    """The rows of `files` as a Spark DataFrame; parquet is read by Spark itself."""
    if all(Path(file).suffix == ".parquet" for file in files):
        return spark.read.parquet(*(str(Path(file).absolute()) for file in files))
    return spark.createDataFrame(open_rows(files).read_all())
