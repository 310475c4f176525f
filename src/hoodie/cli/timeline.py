"""`hoodie timeline`: show the instants of a table, oldest first: the active ones, the archived ones, or all."""

# Asked often and by scripts: it loads neither pyarrow nor the façade, which take longer than the answer. (Archived
# instants of tables since version 8 lie in parquet files, and need pyarrow.)

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from hoodie.cli.arguments import add_json, add_table, parse_options
from hoodie.cli.printing import console, print_json
from hoodie.present import as_grid
from hoodie.spec import Instant
from hoodie.state.handle import TableHandle, open_handle, timeline_of
from hoodie.timeline import load_history


def define(parser: ArgumentParser) -> None:
    add_table(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--archived", action="store_true", help="instants that left the active timeline")
    which.add_argument("--all", action="store_true", help="archived and active instants")
    add_json(parser)


def run(said: Namespace) -> int:
    handle = open_handle(said.path, parse_options(said.option))
    instants = _instants(handle, archived=said.archived or said.all, active=said.all or not said.archived)
    if said.json:
        print_json(instants)
        return 0
    console().print(as_grid(instants) if instants else "no instants")
    return 0


def _instants(handle: TableHandle, *, archived: bool, active: bool) -> tuple[Instant, ...]:
    """The asked instants in timeline order. One that is being archived stands in both, and is given once."""
    # The history is read last: what is archived meanwhile is then in both, never in none.
    found = {instant.logical: instant for instant in timeline_of(handle).instants} if active else {}
    before = load_history(handle.storage, handle.profile) if archived else ()
    both = {row.instant.logical: row.instant for row in before} | found
    return tuple(sorted(both.values()))
