"""`hoodie compact`: merge log files into base files; a plan that is pending is carried out first."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import hoodie
from hoodie.cli.arguments import parse_options
from hoodie.cli.printing import console, print_json
from hoodie.cli.service import define_service, run_service
from hoodie.errors import Invalid
from hoodie.present import as_grid
from hoodie.services.compaction.compact import SERVICE


def define(parser: ArgumentParser) -> None:
    define_service(parser, SERVICE)
    parser.add_argument(
        "--schedule", action="store_true", help="only plan; writers and `hoodie compact` go on from there"
    )
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--unschedule", metavar="INSTANT", help="drop the plan of a pending compaction instead")
    other.add_argument(
        "--validate",
        action="store_true",
        help="check the files of a pending plan instead (of --instant, or the oldest)",
    )
    other.add_argument("--repair", action="store_true", help="put back plans that log files name instead (version 6)")


def run(said: Namespace) -> int:
    if said.dry_run and (said.unschedule or said.repair):
        raise Invalid(
            "--dry-run shows what a compaction would do, and --unschedule and --repair are none",
            remedy="Leave --dry-run out; --validate shows the files of a pending plan",
        )
    if (said.schedule and not said.dry_run) or said.unschedule or said.validate or said.repair:
        return _about_plans(said)
    return run_service(said, SERVICE)


def _about_plans(said: Namespace) -> int:
    table = hoodie.Table.open(said.path, options=parse_options(said.option))
    answer: Any
    if said.validate:
        answer = table.services.validate_compaction(said.instant)
    elif said.repair:
        answer = table.services.repair_compaction()
    elif said.unschedule:
        answer = table.services.unschedule_compaction(said.unschedule)
    else:
        planned = table.services.schedule_compaction()
        if said.json:
            print_json({"instant": None if planned is None else planned.requested})
        else:
            console().print("nothing to compact" if planned is None else f"planned {planned.requested}")
        return 0
    if said.json:
        print_json(answer)
        return 0
    if answer == ():
        console().print("no pending compaction" if said.validate else "nothing to repair")
    else:
        console().print(as_grid(answer))
    return 0
