"""`hoodie report`: one HTML page about a table: how it is and what helps, its timeline, where its bytes lie."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import hoodie
from hoodie.cli.arguments import add_table, parse_options
from hoodie.cli.printing import console, progress


def define(parser: ArgumentParser) -> None:
    add_table(parser)
    parser.add_argument("--out", default="report.html", metavar="FILE", help="where to (default: report.html)")


def run(said: Namespace) -> int:
    with progress(f"examining {said.path}"):
        hoodie.Table.open(said.path, options=parse_options(said.option)).report(said.out)
    console().print(f"wrote {said.out}")
    return 0
