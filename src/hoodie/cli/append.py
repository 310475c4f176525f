"""`hoodie append`: write rows of files to new files of a table, without a look at those it has."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from hoodie.cli.arguments import add_table, add_wait, parse_options
from hoodie.cli.write import add_rows, write_and_show
from hoodie.errors import Invalid


def define(parser: ArgumentParser) -> None:
    add_table(parser)
    add_wait(parser)
    add_rows(parser)


def run(said: Namespace) -> int:
    if said.input is None:
        raise Invalid("An append needs rows", remedy="Give them with --input FILE")
    return write_and_show(said, "insert", {**parse_options(said.option), "hoodie.parquet.small.file.limit": "0"})
