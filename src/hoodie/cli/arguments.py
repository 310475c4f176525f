"""Arguments that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from hoodie.errors import Invalid


class EngineName(StrEnum):
    """Where the work is done."""

    LOCAL = "local"
    SPARK = "spark"


TablePath = Annotated[
    str, typer.Argument(metavar="PATH", help="The table: a folder or a URL such as s3://bucket/table.")
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="KEY=VALUE", help="A hoodie.* or storage option; may be repeated."),
]
EngineOption = Annotated[EngineName, typer.Option("--engine", help="Work in this process, or in a Spark session.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def parse_options(pairs: Sequence[str] | None) -> dict[str, str]:
    """`KEY=VALUE` arguments as a mapping.

    Raises:
        Invalid: an argument without `=`, or one key with two values.
    """
    options: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise Invalid(f"--option {pair!r} is not KEY=VALUE", remedy="Write for example -o hoodie.table.name=trips")
        if options.setdefault(key.strip(), value) != value:
            raise Invalid(f"--option {key.strip()} is given twice with different values", remedy="Give it once")
    return options


def parse_columns(text: str | None) -> list[str] | None:
    """The columns of `a,b,c`; None when not given."""
    return None if text is None else [name for name in (part.strip() for part in text.split(",")) if name]
