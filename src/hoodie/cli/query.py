"""`hoodie query`: ask a table."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import pyarrow as pa
import typer

import hoodie
from hoodie.cli.arguments import EngineName, EngineOption, Options, TablePath, parse_columns, parse_options
from hoodie.cli.plain import json_line
from hoodie.cli.printing import console, progress
from hoodie.cli.render import rows_grid
from hoodie.cli.rows import store_rows
from hoodie.cli.spark import start_spark
from hoodie.errors import Invalid

SHOWN_ROWS = 20
_META_PREFIX = "_hoodie_"
_READ = "hoodie.datasource."


class QueryType(StrEnum):
    """What a query returns."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"
    CDC = "cdc"


def run(
    path: TablePath,
    *,
    type: Annotated[QueryType, typer.Option("--type", help="What to return.")] = QueryType.SNAPSHOT,
    as_of: Annotated[str | None, typer.Option("--as-of", metavar="T", help="The table as it was at T.")] = None,
    begin: Annotated[str | None, typer.Option("--begin", metavar="T", help="Incremental: changes after T.")] = None,
    end: Annotated[str | None, typer.Option("--end", metavar="T", help="Incremental: changes up to T.")] = None,
    where: Annotated[str | None, typer.Option("--where", metavar="SQL", help="Rows that meet a SQL condition.")] = None,
    columns: Annotated[str | None, typer.Option("--columns", metavar="a,b", help="Only these columns.")] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write .parquet, .csv or .arrow.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print all rows, one JSON object per line.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Rows to show in the table.")] = SHOWN_ROWS,
    engine: EngineOption = EngineName.LOCAL,
    option: Options = None,
) -> None:
    """Show, print or save the rows of a query."""
    incremental = type in (QueryType.INCREMENTAL, QueryType.CDC)
    if (begin or end) and not incremental:
        raise Invalid("--begin and --end belong to incremental queries", remedy="Add --type incremental")
    if as_of and incremental:
        raise Invalid("--as-of belongs to snapshot queries", remedy="Use --begin and --end")
    options = parse_options(option)
    wanted = parse_columns(columns)
    times = {"as_of": as_of, "begin": begin, "end": end}
    with progress(f"reading {path}"):
        if engine is EngineName.SPARK:
            reader = _spark_rows(path, type, times, where, wanted, options=options)
        else:
            query = {"query": type.value, **{name: time for name, time in times.items() if time is not None}}
            reader = hoodie.Table.open(path, options=options).scan(wanted, where, **query)
        if out is not None:
            rows = store_rows(reader, out)
        elif not json:
            first, rows = _first_rows(reader, limit)
    if out is not None:
        typer.echo(f"{rows:,} rows written to {out}", err=True)
    elif json:
        _print_lines(reader)
    else:
        _print_table(first, rows, wanted)


def _spark_rows(
    path: str,
    type: QueryType,
    times: dict[str, str | None],
    where: str | None,
    columns: list[str] | None,
    *,
    options: dict[str, str],
) -> pa.RecordBatchReader:
    """The same rows through `spark.read.format("hudi")`."""
    spark = start_spark()
    incremental = type in (QueryType.INCREMENTAL, QueryType.CDC)
    said = {
        _READ + "query.type": QueryType.INCREMENTAL.value if incremental else type.value,
        _READ + "query.incremental.format": "cdc" if type is QueryType.CDC else None,
        "as.of.instant": times["as_of"],
        _READ + "read.begin.instanttime": times["begin"],
        _READ + "read.end.instanttime": times["end"],
    }
    reader = spark.read.format("hudi").options(**options)
    frame = reader.options(**{key: value for key, value in said.items() if value is not None}).load(path)
    if where is not None:
        frame = frame.where(where)
    if columns is not None:
        frame = frame.select(*columns)
    return frame.toArrow().to_reader()


def _first_rows(reader: pa.RecordBatchReader, limit: int) -> tuple[pa.Table, int]:
    """The first `limit` rows, and how many there are in all."""
    kept: list[pa.RecordBatch] = []
    total = 0
    for batch in reader:
        if total < limit:
            kept.append(batch.slice(0, limit - total))
        total += batch.num_rows
    return pa.Table.from_batches(kept, reader.schema), total


def _print_table(rows: pa.Table, total: int, wanted: list[str] | None) -> None:
    """Shows rows without the meta columns, unless columns were named."""
    if wanted is None:
        data = [name for name in rows.column_names if not name.startswith(_META_PREFIX)]
        rows = rows.select(data) if data else rows
    target = console()
    target.print(rows_grid(rows, total, target.width))


def _print_lines(reader: pa.RecordBatchReader) -> None:
    for batch in reader:
        for row in batch.to_pylist():
            sys.stdout.write(json_line(row) + "\n")
