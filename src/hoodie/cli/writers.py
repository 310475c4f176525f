"""`hoodie writers`: who is at work on a table, since when, and whether they live: locks, heartbeats, pending writes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import hoodie
from hoodie.cli.arguments import add_json, add_table, parse_options
from hoodie.cli.printing import console, print_json
from hoodie.present import as_grid


def define(parser: ArgumentParser) -> None:
    add_table(parser)
    add_json(parser)


def run(said: Namespace) -> int:
    found = hoodie.Table.open(said.path, options=parse_options(said.option)).writers()
    if said.json:
        print_json(found)
        return 0
    console().print(as_grid(found) if found else "nobody is at work")
    return 0
