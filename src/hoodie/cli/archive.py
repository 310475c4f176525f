"""`hoodie archive`: move old instants from the active timeline to the history."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from hoodie.cli.service import add_service, run_service


def define(parser: ArgumentParser) -> None:
    add_service(parser)


def run(said: Namespace) -> int:
    return run_service(
        said,
        "archive",
        lambda table: table.archive(),
        lambda table: table.preview("archive"),
        "nothing to archive",
    )
