"""`hoodie report`: one HTML page about a table: how it is and what helps, its timeline, where its bytes lie."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import hoodie
from hoodie.cli.arguments import parse_options
from hoodie.cli.printing import console, progress


def define(parser: ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="the table: a folder, or a URL such as s3://bucket/table")
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="where to (default: report.html)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="a hoodie.* or storage option"
    )


def run(said: Namespace) -> int:
    with progress(f"examining {said.path}"):
        hoodie.Table.open(said.path, options=parse_options(said.option)).report(said.output)
    console().print(f"wrote {said.output}")
    return 0
