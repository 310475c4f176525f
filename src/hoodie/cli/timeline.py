"""`hoodie timeline`: show the instants of a table's active timeline, oldest first."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import hoodie
from hoodie.cli.arguments import add_json, add_table, parse_options
from hoodie.cli.printing import console, print_json
from hoodie.cli.render import timeline_grid, timeline_rows


def define(parser: ArgumentParser) -> None:
    add_table(parser)
    add_json(parser)


def run(said: Namespace) -> int:
    timeline = hoodie.Table.open(said.path, options=parse_options(said.option)).timeline()
    if said.json:
        print_json(timeline_rows(timeline.instants))
    else:
        console().print(timeline_grid(timeline.instants))
    return 0
