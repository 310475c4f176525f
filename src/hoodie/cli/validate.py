"""`hoodie validate`: check a table's files and timeline; exit status 1 when something is wrong."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import hoodie
from hoodie.cli.arguments import add_json, add_table, parse_options
from hoodie.cli.printing import console, print_json
from hoodie.present import as_grid

FOUND = 1


def define(parser: ArgumentParser) -> None:
    add_table(parser)
    parser.add_argument(
        "--deep", action="store_true", help="read every file to its end: pages, checksums, log blocks, buckets of keys"
    )
    add_json(parser)


def run(said: Namespace) -> int:
    findings = hoodie.Table.open(said.path, options=parse_options(said.option)).validate(deep=said.deep)
    if said.json:
        print_json(findings)
    elif findings:
        console().print(as_grid(findings))
    else:
        console().print("nothing found, the table is in order")
    return FOUND if findings else 0
