"""`hoodie upgrade`: take a table to another version (6, 8 or 9), upwards or downwards."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from hoodie.cli.service import add_service, run_service


def define(parser: ArgumentParser) -> None:
    add_service(parser)
    parser.add_argument("--to", type=int, default=9, choices=(6, 8, 9), help="the table version (default 9)")


def run(said: Namespace) -> int:
    return run_service(
        said,
        "upgrade",
        lambda table: table.upgrade(said.to),
        lambda table: table.preview("upgrade", said.to),
        "the table has that version",
    )
