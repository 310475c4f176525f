"""`hoodie index`: list the indexes of a table, make or drop one, or advise which one to write with."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import hoodie
from hoodie.cli.arguments import add_json, add_table, add_wait, parse_options
from hoodie.cli.printing import console, print_json, progress
from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.present import as_grid


def define(parser: ArgumentParser) -> None:
    add_table(parser)
    add_wait(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--create",
        metavar="NAME",
        help="record_index, column_stats, partition_stats, bloom_filters, or a name of your own with --column",
    )
    what.add_argument("--drop", metavar="NAME", help="drop this index and those that need it")
    what.add_argument(
        "--advise", action="store_true", help="ask each write index for a sample of the keys, and recommend one"
    )
    parser.add_argument("--keys", type=int, default=1000, help="with --advise: how many keys to ask for")
    parser.add_argument("--column", action="append", default=[], help="a column to index; may be repeated")
    parser.add_argument("--function", help="index a function of the column, for example from_unixtime")
    parser.add_argument(
        "--function-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the function, for example format=yyyy-MM-dd; may be repeated",
    )
    parser.add_argument(
        "--using", default="column_stats", choices=("column_stats", "bloom_filters"), help="with --function"
    )
    parser.add_argument("--partitioned", action="store_true", help="a record index for each partition of its own")
    add_json(parser)


def run(said: Namespace) -> int:
    table = hoodie.Table.open(said.path, options=parse_options(said.option), engine=LocalEngine())
    if said.create:
        given = parse_options(said.function_option, "--function-option", "format=yyyy-MM-dd")
        if given and said.function is None:
            raise Invalid("--function-option is given without --function", remedy="Name the function, too")
        with progress(f"building {said.create}"):
            built = table.indexes.create(
                said.create,
                *said.column,
                function=said.function,
                using=said.using,
                partitioned=said.partitioned,
                **given,
            )
        return _shown(said, built, f"index {built.name} is ready, {built.records:,} records")
    if said.advise:
        advice = table.indexes.advise(said.keys)
        if said.json:
            print_json(advice)
        else:
            console().print(f"write with hoodie.index.type={advice.recommended}: {advice.why}", markup=False)
            console().print(as_grid(advice.trials))
        return 0
    if said.drop:
        dropped = list(table.indexes.drop(said.drop))
        return _shown(said, dropped, f"dropped {', '.join(dropped)}")
    if not said.json and table.indexes:
        console().print(as_grid(table.indexes))
        return 0
    return _shown(said, table.indexes, "the table has no metadata table, so it has no indexes")


def _shown(said: Namespace, value: Any, text: str) -> int:
    if said.json:
        print_json(value)
    else:
        console().print(text, markup=False)
    return 0
