"""`hoodie files`: show the newest file slice of every file group, by partition."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import hoodie
from hoodie.cli.arguments import add_json, add_table
from hoodie.cli.asked_server import add_server, table_options
from hoodie.cli.printing import console, print_json
from hoodie.present import as_grid


def define(parser: ArgumentParser) -> None:
    add_table(parser)
    parser.add_argument("--as-of", metavar="T", help="as of an instant or a date and time")
    add_server(parser)
    add_json(parser)


def run(said: Namespace) -> int:
    slices = hoodie.Table.open(said.path, options=table_options(said)).files(said.as_of)
    if said.json:
        print_json(slices)
        return 0
    console().print(as_grid(slices) if slices else "no files")
    return 0
