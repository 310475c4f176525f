"""`hoodie timeline`: what happened to a table."""

from __future__ import annotations

import hoodie
from hoodie.cli.arguments import AsJson, Options, TablePath, parse_options
from hoodie.cli.printing import console, print_json
from hoodie.cli.render import timeline_grid, timeline_rows


def run(path: TablePath, *, json: AsJson = False, option: Options = None) -> None:
    """Show the instants of a table's active timeline, oldest first."""
    timeline = hoodie.Table.open(path, options=parse_options(option)).timeline()
    if json:
        print_json(timeline_rows(timeline.instants))
    else:
        console().print(timeline_grid(timeline.instants))
