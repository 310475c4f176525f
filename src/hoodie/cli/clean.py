"""`hoodie clean`: remove file versions that nothing retains."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from hoodie.cli.service import add_service, run_service


def define(parser: ArgumentParser) -> None:
    add_service(parser)


def run(said: Namespace) -> int:
    return run_service(
        said,
        "clean",
        lambda table: table.clean(),
        lambda table: table.preview("clean"),
        "nothing to clean",
    )
