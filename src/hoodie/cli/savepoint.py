"""`hoodie savepoint`: list savepoints, make one, or delete one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import hoodie
from hoodie.cli.arguments import add_json, add_table, add_wait, parse_options
from hoodie.cli.printing import console, print_json
from hoodie.present import as_grid


def define(parser: ArgumentParser) -> None:
    add_table(parser)
    add_wait(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--create", nargs="?", const="", metavar="INSTANT", help="of this commit (default: the newest)")
    what.add_argument("--delete", metavar="INSTANT", help="delete the savepoint of this commit")
    parser.add_argument("--user", default="", help="who made it")
    parser.add_argument("--comments", default="", help="what it is for")
    add_json(parser)


def run(said: Namespace) -> int:
    table = hoodie.Table.open(said.path, options=parse_options(said.option))
    if said.delete:
        table.savepoints.delete(said.delete)
        found = []
    elif said.create is not None:
        found = [table.savepoints.create(said.create or None, user=said.user, comments=said.comments)]
    else:
        found = list(table.savepoints)
    if said.json:
        print_json(found)
    elif said.delete:
        console().print(f"deleted the savepoint of {said.delete}")
    elif not found:
        console().print("no savepoints")
    else:
        console().print(as_grid(found))
    return 0
