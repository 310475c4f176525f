"""What the commands for table services share: the plan with `--dry-run`, else the deed and what came of it."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any, Protocol

import hoodie
from hoodie.cli.arguments import SPARK, add_engine, add_json, add_table, parse_options
from hoodie.cli.printing import console, print_json, progress
from hoodie.cli.shown_engine import ShownEngine
from hoodie.cli.spark import spark_engine, start_spark
from hoodie.engine import LocalEngine


class Result(Protocol):
    """What a service has done."""

    def as_json(self) -> dict[str, Any]: ...


def add_service(parser: ArgumentParser) -> None:
    """The table, `--dry-run`, the engine and `--json`."""
    add_table(parser)
    parser.add_argument("-n", "--dry-run", action="store_true", help="show files, bytes and reasons; write nothing")
    add_engine(parser)
    add_json(parser)


def run_service(
    said: Namespace,
    what: str,
    act: Callable[[hoodie.Table], Result | None],
    preview: Callable[[hoodie.Table], Any],
    nothing: str,
) -> int:
    """Shows what `preview` says of the table, or does `act` and shows its result; `nothing` is said when there is none.

    Always exit status 0: failures are exceptions.
    """
    start = time.monotonic()
    with progress(f"{what}: {said.path}") as step:
        spark: Any = None
        if said.engine == SPARK and not said.dry_run:
            step.update("starting Spark")
            spark = start_spark()
        engine = ShownEngine(LocalEngine() if spark is None else spark_engine(spark), step)
        table = hoodie.Table.open(said.path, options=parse_options(said.option), engine=engine)
        found: Any = preview(table) if said.dry_run else act(table)
    if said.json:
        print_json(None if found is None else found.as_json())
        return 0
    if found is None:
        console().print(nothing)
        return 0
    from hoodie.cli.service_grids import preview_grid, result_grid  # noqa: PLC0415 - loads rich

    if said.dry_run:
        console().print(preview_grid(found))
        for note in found.notes:
            console().print(f"  {note}", markup=False)
    else:
        console().print(result_grid(what, found.as_json(), time.monotonic() - start))
    return 0
