"""The argument that names a timeline server, for commands that read which files a table has."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from hoodie.cli.arguments import parse_options
from hoodie.remote import asked_options


def add_server(parser: ArgumentParser) -> None:
    """The timeline server that is asked for the files of the table."""
    parser.add_argument(
        "--server",
        metavar="HOST:PORT",
        help="ask this timeline server for the table's files, and the table itself where it does not answer; with "
        "-o hoodie.filesystem.view.type=REMOTE_ONLY nobody else",
    )


def table_options(said: Namespace) -> dict[str, str]:
    """The options that arguments give a table that is read, a server among them.

    Raises:
        Invalid: they contradict each other, or are none.
    """
    options = parse_options(said.option)
    if said.server is None:
        return options
    return {**options, **asked_options(said.server, options)}
