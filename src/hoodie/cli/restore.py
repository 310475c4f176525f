"""`hoodie restore`: take the table back to a completed instant or savepoint; what is newer is gone."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from hoodie.cli.service import add_service, run_service


def define(parser: ArgumentParser) -> None:
    add_service(parser)
    parser.add_argument("instant", metavar="INSTANT", help="the requested time of the commit to go back to")


def run(said: Namespace) -> int:
    return run_service(
        said,
        "restore",
        lambda table: table.restore(said.instant),
        lambda table: table.preview("restore", said.instant),
        "nothing to restore",
    )
