"""`hoodie rollback`: undo one instant, a pending one or the newest completed one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from hoodie.cli.service import add_service, run_service


def define(parser: ArgumentParser) -> None:
    add_service(parser)
    parser.add_argument("instant", metavar="INSTANT", help="the requested time of the instant")


def run(said: Namespace) -> int:
    return run_service(
        said,
        "rollback",
        lambda table: table.rollback(said.instant),
        lambda table: table.preview("rollback", said.instant),
        "nothing to roll back",
    )
