"""`hoodie doctor`: how a table is, with the remedy for each concern; exit status 1 for errors and warnings."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import hoodie
from hoodie.cli.arguments import add_json, add_table, parse_options
from hoodie.cli.printing import console, print_json, progress
from hoodie.errors import Corrupt
from hoodie.present import as_grid, as_json

FOUND = 1


def define(parser: ArgumentParser) -> None:
    add_table(parser)
    parser.add_argument(
        "--fix",
        nargs="?",
        const="",
        metavar="PARTITION",
        help="make this partition of the metadata table anew from the table's files (default: all of them; files that "
        "were never committed are removed, if there was one to confirm that)",
    )
    parser.add_argument(
        "--accept-missing",
        action="store_true",
        help="with --fix, of a table with storage paths: go on without files that commits wrote and that are nowhere",
    )
    add_json(parser)


def run(said: Namespace) -> int:
    removed: tuple[str, ...] = ()
    table = hoodie.Table.open(said.path, options=parse_options(said.option))
    with progress(f"examining {said.path}") as step:
        if said.fix is not None:
            if not said.fix:
                step.update("removing what was never committed")
                removed = _remove_orphans(table)
            step.update("rebuilding the metadata table")
            table.indexes.rebuild(*filter(None, (said.fix,)), accept_missing=said.accept_missing)
        health = table.doctor()
    if said.json:
        print_json(as_json(health) | ({} if said.fix is None else {"removed": list(removed)}))
        return 0 if health.is_healthy else FOUND
    for path in removed:
        console().print(f"removed {path}, which was never committed")
    if health.concerns:
        console().print(as_grid(health))
    else:
        console().print("no concerns, the table is healthy")
    return 0 if health.is_healthy else FOUND


def _remove_orphans(table: hoodie.Table) -> tuple[str, ...]:
    """What was removed. Nothing where a damaged metadata table cannot say what it lists: the next run does it.

    Nor where there is none: only the history says then that a write was never committed, and it may have holes.
    """
    try:
        found = table.services.orphans(0) if table.config.has_metadata_table else None
    except Corrupt:
        return ()
    return () if found is None else found.files
