"""`hoodie validate`: is the table in order?"""

from __future__ import annotations

import typer

import hoodie
from hoodie.cli.arguments import AsJson, Options, TablePath, parse_options
from hoodie.cli.printing import console, print_json
from hoodie.cli.render import finding_rows, findings_grid

FOUND = 1


def run(path: TablePath, *, json: AsJson = False, option: Options = None) -> None:
    """Check a table's files and timeline; exit status 1 when something is wrong."""
    findings = hoodie.Table.open(path, options=parse_options(option)).validate()
    if json:
        print_json(finding_rows(findings))
    elif findings:
        console().print(findings_grid(findings))
    else:
        console().print("nothing found, the table is in order")
    if findings:
        raise typer.Exit(FOUND)
