"""The argument that names a timeline server, for commands that read which files a table has."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from hoodie.cli.arguments import parse_options
from hoodie.errors import Invalid
from hoodie.remote import options_of, parse_server
from hoodie.remote.asking import TOKEN, TYPE


def add_server(parser: ArgumentParser) -> None:
    """The timeline server that is asked for the files of the table."""
    parser.add_argument(
        "--server",
        metavar="HOST:PORT",
        help="ask this timeline server for the table's files, and the table itself where it does not answer",
    )


def table_options(said: Namespace) -> dict[str, str]:
    """The options that arguments give a table that is read, a server among them.

    Raises:
        Invalid: they contradict each other, or are none.
    """
    options = parse_options(said.option)
    if said.server is None:
        return options
    if TYPE in options:
        raise Invalid(f"--server and {TYPE} say the same", remedy="Give one of them")
    return {**options, **options_of(parse_server(said.server, options.get(TOKEN)))}
