"""`hoodie files`: which files make up a table."""

from __future__ import annotations

from typing import Annotated

import typer

import hoodie
from hoodie.cli.arguments import AsJson, Options, TablePath, parse_options
from hoodie.cli.printing import console, print_json
from hoodie.cli.render import files_grid, files_rows


def run(
    path: TablePath,
    *,
    as_of: Annotated[str | None, typer.Option("--as-of", metavar="T", help="As of an instant.")] = None,
    json: AsJson = False,
    option: Options = None,
) -> None:
    """Show the newest file slice of every file group, by partition."""
    slices = hoodie.Table.open(path, options=parse_options(option)).files(as_of)
    if json:
        print_json(files_rows(slices))
    else:
        console().print(files_grid(slices))
