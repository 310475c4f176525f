"""`hoodie query`: show the rows of a query, print them as JSON, or save them to a file."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

import pyarrow as pa

import hoodie
from hoodie.cli.arguments import SPARK, add_engine, add_json, add_table, parse_columns
from hoodie.cli.asked_server import add_server, table_options
from hoodie.cli.printing import Step, console, progress
from hoodie.cli.rows import store_rows
from hoodie.cli.spark import start_spark
from hoodie.errors import Invalid
from hoodie.present.plain import json_line

SHOWN_ROWS = 20
_META_PREFIX = "_hoodie_"
_QUERY = "hoodie.datasource.query.type"
_FORMAT = "hoodie.datasource.query.incremental.format"
_BEGIN = "hoodie.datasource.read.begin.instanttime"
_END = "hoodie.datasource.read.end.instanttime"
_AS_OF = "as.of.instant"
_INCREMENTAL = ("incremental", "cdc")


def define(parser: ArgumentParser) -> None:
    add_table(parser)
    types = ("snapshot", "read_optimized", *_INCREMENTAL)
    parser.add_argument("--type", choices=types, help="what to return (default: snapshot)")
    parser.add_argument("--as-of", metavar="T", help="the table as it was at an instant or a date and time")
    parser.add_argument("--begin", metavar="T", help="incremental: changes after T; 000 for all")
    parser.add_argument("--end", metavar="T", help="incremental: changes up to and including T")
    parser.add_argument("--where", metavar="SQL", help="only rows that meet a SQL condition")
    parser.add_argument("--key", metavar="KEY", action="append", help="only the row with this record key (repeatable)")
    parser.add_argument("--columns", metavar="a,b", help="only these columns")
    parser.add_argument("--out", metavar="FILE", help="write the rows to a .parquet, .csv or .arrow file")
    add_json(parser, "print all rows, one JSON object per line")
    parser.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help=f"at most N rows (default: {SHOWN_ROWS} on the terminal, all with --json and --out)",
    )
    add_server(parser)
    add_engine(parser)


def run(said: Namespace) -> int:
    options = _options(said)
    if said.limit is not None and said.limit < 0:
        raise Invalid(f"--limit {said.limit} is no number of rows", remedy="Use 0 or more")
    with progress(f"reading {said.path}") as step:
        reader = _spark_rows(said, options) if said.engine == SPARK else _local_rows(said, options, step)
        if said.limit is not None and (said.json or said.out is not None):
            reader = _cut(reader, said.limit)
        if said.out is not None:
            rows = store_rows(reader, said.out)
        elif not said.json:
            first, rows = _first_rows(reader, SHOWN_ROWS if said.limit is None else said.limit)
    if said.out is not None:
        print(f"{rows:,} rows written to {said.out}", file=sys.stderr)
    elif said.json:
        _print_lines(reader)
    else:
        _print_table(first, rows, all_columns=said.columns is not None)
    return 0


def _options(said: Namespace) -> dict[str, str]:
    """The options given as such, and those that arguments stand for."""
    keywords = {
        _QUERY: "incremental" if said.type in _INCREMENTAL else said.type,
        _FORMAT: "cdc" if said.type == "cdc" else None,
        _AS_OF: said.as_of,
        _BEGIN: said.begin,
        _END: said.end,
    }
    options = table_options(said) | {key: value for key, value in keywords.items() if value is not None}
    incremental = options.get(_QUERY) == "incremental"
    if (said.begin or said.end) and not incremental:
        raise Invalid("--begin and --end belong to incremental queries", remedy="Add --type incremental")
    if said.as_of and incremental:
        raise Invalid("--as-of belongs to snapshot queries", remedy="Use --begin and --end")
    return options


def _local_rows(said: Namespace, options: dict[str, str], step: Step) -> pa.RecordBatchReader:
    def show(done: int, total: int) -> None:
        step.update(f"reading {said.path}: {done >> 20:,} of {total >> 20:,} MiB")

    table = hoodie.Table.open(said.path, options=options)
    columns = parse_columns(said.columns)
    if said.key:
        if said.where or options.get(_QUERY, "snapshot") != "snapshot":
            raise Invalid("--key belongs to snapshot queries without --where", remedy="Filter by key with --where")
        return table.lookup(said.key, columns).reader
    return table.scan(columns, said.where, progress=show).reader


def _spark_rows(said: Namespace, options: dict[str, str]) -> pa.RecordBatchReader:
    """The same rows through `spark.read.format("hudi")`."""
    if said.key:
        raise Invalid("--key is looked up by this process", remedy="Leave --engine out, or use --where")
    frame = start_spark().read.format("hudi").options(**options).load(said.path)
    if said.where is not None:
        frame = frame.where(said.where)
    columns = parse_columns(said.columns)
    return (frame if columns is None else frame.select(*columns)).toArrow().to_reader()


def _cut(reader: pa.RecordBatchReader, limit: int) -> pa.RecordBatchReader:
    """The first `limit` rows; nothing is read beyond their batches."""

    def batches() -> Iterator[pa.RecordBatch]:
        left = limit
        while left > 0 and (batch := next(reader, None)) is not None:
            yield batch.slice(0, left)
            left -= batch.num_rows

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _first_rows(reader: pa.RecordBatchReader, limit: int) -> tuple[pa.Table, int]:
    """The first `limit` rows, and how many there are in all."""
    batches: list[pa.RecordBatch] = []
    total = 0
    for batch in reader:
        if total < limit:
            batches.append(batch.slice(0, limit - total))
        total += batch.num_rows
    return pa.Table.from_batches(batches, reader.schema), total


def _print_table(rows: pa.Table, total: int, *, all_columns: bool) -> None:
    """Shows rows, without the meta columns unless all columns are wanted."""
    if not all_columns:
        data = [name for name in rows.column_names if not name.startswith(_META_PREFIX)]
        rows = rows.select(data) if data else rows
    from hoodie.present.row_grid import rows_grid  # noqa: PLC0415 - loads rich

    target = console()
    target.print(rows_grid(rows, total, target.width))


def _print_lines(reader: pa.RecordBatchReader) -> None:
    for batch in reader:
        for row in batch.to_pylist():
            sys.stdout.write(json_line(row) + "\n")
