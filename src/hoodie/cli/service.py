"""The command of a table service: its plan with `--dry-run`, else the deed and what came of it.

Which services there are, and their arguments, is known to `hoodie.services.registry` alone.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from typing import Any

import hoodie
from hoodie.cli.arguments import SPARK, add_engine, add_json, add_table, add_wait, parse_options
from hoodie.cli.printing import console, print_json, progress
from hoodie.cli.shown_engine import ShownEngine
from hoodie.cli.spark import spark_engine, start_spark
from hoodie.engine import LocalEngine
from hoodie.present import as_grid
from hoodie.services.service import Argument, Service


def define_service(parser: ArgumentParser, service: Service) -> None:
    """The table, the service's own arguments, `--dry-run` or the flag that makes it act, the engine and `--json`."""
    add_table(parser)
    add_wait(parser)
    for argument in service.arguments:
        _add(parser, argument)
    if service.acts_when_told:
        text = "do it (default: show files, bytes and reasons, and write nothing)"
        parser.add_argument(f"--{service.acts_when_told}", dest="acts", action="store_true", help=text)
    elif service.preview is not None:
        text = "show files, bytes and reasons; write nothing"
        parser.add_argument("-n", "--dry-run", action="store_true", help=text)
    add_engine(parser)
    add_json(parser)


def run_service(said: Namespace, service: Service) -> int:
    """Shows the plan of the service, or runs it and shows its result. Exit status 0: failures are exceptions."""
    previews = not said.acts if service.acts_when_told else getattr(said, "dry_run", False)
    arguments = {argument.name: getattr(said, argument.name) for argument in service.arguments}
    start = time.monotonic()
    with progress(f"{service.name}: {said.path}") as step:
        spark: Any = None
        if said.engine == SPARK and not previews:
            step.update("starting Spark")
            spark = start_spark()
        engine = ShownEngine(LocalEngine() if spark is None else spark_engine(spark), step)
        table = hoodie.Table.open(said.path, options=parse_options(said.option), engine=engine)
        services = table.services
        found: Any = (
            services.preview(service.name, *arguments.values()) if previews else services.run(service.name, arguments)
        )
    if said.json:
        print_json(found)
        return 0
    if found is None or (previews and found.is_empty and service.acts_when_told):
        console().print(service.nothing)
        return 0
    seconds = time.monotonic() - start
    console().print(as_grid(found, None if previews else f"{service.name}: done in {seconds:.1f} s"))
    return 0


def _add(parser: ArgumentParser, argument: Argument) -> None:
    choices = argument.choices or None
    if argument.is_required:
        parser.add_argument(
            argument.name, metavar=argument.metavar or argument.name.upper(), type=argument.kind, help=argument.help
        )
    elif argument.kind is bool:
        parser.add_argument(f"--{argument.name}", action="store_true", help=argument.help)
    else:
        flag = f"--{argument.name.replace('_', '-')}"
        parser.add_argument(flag, type=argument.kind, choices=choices, metavar=argument.metavar, help=argument.help)
