"""`hoodie timeline`: show the instants of a table's active timeline, oldest first.

Asked often and by scripts: it loads neither pyarrow nor the façade, which take longer than the answer.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from hoodie.cli.arguments import add_json, add_table, parse_options
from hoodie.cli.facts import timeline_rows
from hoodie.cli.printing import console, print_json
from hoodie.handle import open_handle, timeline_of


def define(parser: ArgumentParser) -> None:
    add_table(parser)
    add_json(parser)


def run(said: Namespace) -> int:
    timeline = timeline_of(open_handle(said.path, parse_options(said.option)))
    if said.json:
        print_json(timeline_rows(timeline.instants))
        return 0
    from hoodie.cli.render import timeline_grid  # noqa: PLC0415 - loads rich

    console().print(timeline_grid(timeline.instants))
    return 0
