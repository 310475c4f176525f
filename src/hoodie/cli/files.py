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
    parser.add_argument("--physical", action="store_true", help="the full name of each file, where it really lies")
    add_server(parser)
    add_json(parser)


def run(said: Namespace) -> int:
    table = hoodie.Table.open(said.path, options=table_options(said))
    slices = table.files(said.as_of)
    if said.physical:
        files = [file for found in slices for file in (found.base, *found.logs) if file is not None]
        names = {file.path: table.physical(file.path) for file in files}
        if said.json:
            print_json(names)
            return 0
        for name in names.values():
            console().print(name, soft_wrap=True, markup=False, highlight=False)
        return 0
    if said.json:
        print_json(slices)
        return 0
    console().print(as_grid(slices) if slices else "no files")
    return 0
