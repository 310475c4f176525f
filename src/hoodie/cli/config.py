"""`hoodie config`: explain a configuration key, or list the keys that contain some text."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.text import Text

from hoodie.cli.arguments import add_json
from hoodie.cli.printing import console, print_json
from hoodie.config import (
    ConfigKey,
    Kind,
    all_keys,
    differences_markdown,
    find,
    lookup,
    reference_markdown,
)
from hoodie.present import as_grid
from hoodie.present.config_keys import default_text, explained

_SHORT: dict[Kind, str] = {"implemented": "", "no_meaning_here": "(no effect here)", "not_yet": "(not yet)"}


def define(parser: ArgumentParser) -> None:
    parser.add_argument("key", nargs="?", metavar="KEY", help="a key, or a part of some keys; all keys if not given")
    add_json(parser)
    parser.add_argument("--markdown", action="store_true", help="print the reference page docs/config.md")
    parser.add_argument(
        "--differences", action="store_true", help="print the defaults that differ from Hudi's, as Markdown"
    )


def run(said: Namespace) -> int:
    if said.markdown or said.differences:
        print(reference_markdown() if said.markdown else differences_markdown(), end="")
        return 0
    exact = find(said.key) if said.key else None
    if exact is not None:
        _explain(said.key, exact, said.json)
        return 0
    entries = [entry for entry in all_keys() if said.key is None or said.key in entry.key]
    if not entries:
        lookup(said.key)
    if said.json:
        print_json(entries)
    else:
        _print_list(entries)
    return 0


def _explain(name: str, entry: ConfigKey, json: bool) -> None:
    if json:
        print_json(entry)
    else:
        console().print(as_grid(explained(entry, name)))


def _print_list(entries: Iterable[ConfigKey]) -> None:
    """Two lines per key: what is searched for stays whole however narrow the terminal is."""
    target = console()
    for entry in entries:
        value = f"→ {entry.alias_of}" if entry.alias_of else f"= {default_text(entry.default)}"
        here = _SHORT[entry.kind]
        target.print(Text.assemble((entry.key, "bold"), f" {value}", (here and f" {here}", "dim")), soft_wrap=True)
        target.print(Text(f"    {entry.meaning}"), soft_wrap=True)
