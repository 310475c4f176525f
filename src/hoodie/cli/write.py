"""`hoodie write`: write rows of files to a table; the first write creates it."""

from __future__ import annotations

import re
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import hoodie
from hoodie.cli.arguments import SPARK, add_engine, add_json, add_table, add_wait, parse_options
from hoodie.cli.printing import Step, console, print_json, progress
from hoodie.cli.rows import open_rows
from hoodie.cli.shown_engine import ShownEngine
from hoodie.cli.spark import spark_engine, start_spark
from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.present import as_grid
from hoodie.table import as_source
from hoodie.table import write as write_rows
from hoodie.transaction import Committed
from hoodie.write import Operation, parse_operation

_TYPES: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
_OPERATION = "hoodie.datasource.write.operation"


def define(parser: ArgumentParser) -> None:
    add_table(parser)
    add_wait(parser)
    parser.add_argument(
        "--operation", default="upsert", metavar="OP", help="upsert (default), insert, bulk_insert, delete, ..."
    )
    add_rows(parser)


def add_rows(parser: ArgumentParser) -> None:
    """The rows to write, who writes them, and how that is told."""
    parser.add_argument(
        "--input", action="append", metavar="FILE", help="rows: .parquet, .csv, .json or .arrow; may be repeated"
    )
    parser.add_argument(
        "--schema",
        metavar="COLUMNS",
        help="types of columns of a CSV file, such as 'zip string, fare decimal(10,2)'; else those of the table, if it "
        'exists, else what the text looks like; in texts, nothing between two commas is NULL, "" the empty text',
    )
    add_engine(parser)
    add_json(parser)


def run(said: Namespace) -> int:
    operation = parse_operation(said.operation)
    if said.input is None and operation != "delete_partition":
        raise Invalid(f"Operation {operation} needs rows", remedy="Give them with --input FILE")
    return write_and_show(said, operation, parse_options(said.option))


def write_and_show(said: Namespace, operation: Operation, given: dict[str, str]) -> int:
    """Writes the rows and shows the commit. Exit status 0: failures are exceptions."""
    options = {**given, _OPERATION: operation}
    start = time.monotonic()
    with progress(f"{operation} into {said.path}") as step:
        committed = _write(said, operation, options, step)
    if said.json:
        print_json(committed)
        return 0
    seconds = time.monotonic() - start
    console().print(as_grid(committed, f"{committed.operation}: committed in {seconds:.1f} s"))
    return 0


def _write(said: Namespace, operation: Operation, options: dict[str, str], step: Step) -> Committed:
    spark: Any = None
    if said.engine == SPARK:
        step.update("starting Spark")
        spark = start_spark()
    engine = ShownEngine(LocalEngine() if spark is None else spark_engine(spark), step)
    if said.input is None:
        return hoodie.Table.open(said.path, options=options, engine=engine).write(operation, None)
    types = _types(said, options)
    rows = open_rows(said.input, types) if spark is None else _spark_frame(spark, said.input, types)
    committed = write_rows(as_source(rows), said.path, options, "append", engine=engine)
    assert committed is not None, "mode append always writes"
    return committed


def _types(said: Namespace, options: dict[str, str]) -> pa.Schema | None:
    """The types that columns of text have: as said, else as in the table, if it exists."""
    if said.schema is not None:
        return parse_columns(said.schema)
    try:
        return hoodie.Table.open(said.path, options=options).schema
    except Invalid:
        return None  # no table yet; what else is wrong, the write says


def parse_columns(text: str) -> pa.Schema:
    """The columns of a list such as `id string, fare decimal(10,2), seen timestamp`.

    Raises:
        Invalid: not a name and a known type each.
    """
    fields = []
    for column in re.split(r",(?![^(]*\))", text):
        name, _, kind = column.strip().partition(" ")
        decimal = re.fullmatch(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", kind.strip().lower())
        found = pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else _TYPES.get(kind.strip().lower())
        if not name or found is None:
            raise Invalid(
                f"--schema does not understand {column.strip()!r}",
                remedy=f"Give name and type of each column; types are {', '.join(_TYPES)} and decimal(p,s)",
            )
        fields.append(pa.field(name, found))
    return pa.schema(fields)


def _spark_frame(spark: Any, files: list[str], types: pa.Schema | None) -> Any:
    """The rows of `files` as a Spark DataFrame; parquet is read by Spark itself."""
    if all(Path(file).suffix == ".parquet" for file in files):
        return spark.read.parquet(*(str(Path(file).absolute()) for file in files))
    return spark.createDataFrame(open_rows(files, types).read_all())
