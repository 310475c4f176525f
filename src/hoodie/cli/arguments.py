"""Arguments that several commands share."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from hoodie.errors import Invalid

LOCAL = "local"
SPARK = "spark"


def add_table(parser: ArgumentParser) -> None:
    """The table, and options to reach it."""
    parser.add_argument("path", metavar="PATH", help="the table: a folder, or a URL such as s3://bucket/table")
    parser.add_argument(
        "-o",
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a hoodie.* or storage option; may be repeated",
    )


def add_wait(parser: ArgumentParser) -> None:
    """How long to wait for the table."""
    parser.add_argument(
        "--wait",
        dest="option",
        action=_Wait,
        type=float,
        default=[],
        metavar="SECONDS",
        help="wait so long for another writer (default: what options say; 0: not at all)",
    )


def add_json(parser: ArgumentParser, text: str = "print JSON instead of a table") -> None:
    """The switch to JSON."""
    parser.add_argument("--json", action="store_true", help=text)


def add_engine(parser: ArgumentParser) -> None:
    """Where work is done."""
    parser.add_argument(
        "--engine", choices=(LOCAL, SPARK), default=LOCAL, help="work in this process (default) or in a Spark session"
    )


def parse_options(
    pairs: Sequence[str], argument: str = "--option", example: str = "hoodie.table.name=trips"
) -> dict[str, str]:
    """`KEY=VALUE` arguments as a mapping. `argument` is what they are given with, `example` one of them.

    Raises:
        Invalid: an argument without `=`, or one key with two values.
    """
    options: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise Invalid(f"{argument} {pair!r} is not KEY=VALUE", remedy=f"Write for example {argument} {example}")
        if options.setdefault(key.strip(), value) != value:
            raise Invalid(f"{argument} {key.strip()} is given twice with different values", remedy="Give it once")
    return options


class _Wait(Action):
    """`--wait` is two options of the table."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None
    ) -> None:
        from hoodie.locks import options_to_wait  # noqa: PLC0415 - loads storages, which most commands' help does not need

        del parser, option_string
        said = [f"{key}={value}" for key, value in options_to_wait(values).items()]
        namespace.option = [*namespace.option, *said]


def parse_columns(text: str | None) -> list[str] | None:
    """The columns of `a,b,c`; None when not given."""
    return None if text is None else [name for name in (part.strip() for part in text.split(",")) if name]
