"""`hoodie config`: explain a configuration key, or list the keys that contain some text."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from typing import Any

from rich.table import Table as Grid
from rich.text import Text

from hoodie.cli.arguments import add_json
from hoodie.cli.printing import console, print_json
from hoodie.config import (
    ConfigKey,
    Kind,
    accepted,
    all_keys,
    differences_markdown,
    find,
    lookup,
    reference_markdown,
    spellings,
)

_WORDS: dict[Kind, str] = {
    "implemented": "implemented",
    "no_meaning_here": "accepted, without effect here",
    "not_yet": "not yet: a value that asks for it is refused",
}
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
        print_json([_as_json(entry) for entry in entries])
    else:
        _print_list(entries)
    return 0


def _explain(name: str, entry: ConfigKey, json: bool) -> None:
    if json:
        print_json(_as_json(entry))
    else:
        console().print(_entry_grid(name, entry))


def _as_json(entry: ConfigKey) -> dict[str, Any]:
    fields = dataclasses.asdict(entry)
    return {"key": fields.pop("key"), "default": entry.default, **fields}


def _print_list(entries: Iterable[ConfigKey]) -> None:
    """Two lines per key: what is searched for stays whole however narrow the terminal is."""
    target = console()
    for entry in entries:
        value = f"→ {entry.alias_of}" if entry.alias_of else f"= {_default_text(entry.default)}"
        here = _SHORT[entry.kind]
        target.print(Text.assemble((entry.key, "bold"), f" {value}", (here and f" {here}", "dim")), soft_wrap=True)
        target.print(Text(f"    {entry.meaning}"), soft_wrap=True)


def _entry_grid(name: str, entry: ConfigKey) -> Grid:
    """All about one key; for another spelling of a key, what it stands for."""
    meant = lookup(entry.canonical)
    grid = Grid(show_header=False, title=Text(name, style="bold"))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    facts = {
        "meaning": entry.meaning,
        "stands for": meant.key if meant.key != name else None,
        "here": f"a detail of {meant.part_of}, which is not there yet" if meant.part_of else _WORDS[meant.kind],
        "no effect because": meant.reason,
        "default": _default_text(meant.default),
        "Hudi's default": _default_text(meant.hudi_default) if meant.difference else None,
        "because": meant.difference,
        "type": meant.type,
        "accepted": accepted(meant) if meant.values else None,
        "not yet": ", ".join(meant.later) if meant.later and "*" not in meant.later else None,
        "accepted beside": ", ".join(f"{key}={value}" for key, value in meant.unless) or None,
        "also called": ", ".join(other for other in spellings(entry) if other != name) or None,
        "since": entry.since,
        "deprecated": entry.deprecated,
        "gone from Hudi in": entry.removed,
        "topic": entry.group,
    }
    for what, fact in facts.items():
        if fact is not None:
            grid.add_row(what, Text(fact))
    return grid


def _default_text(default: str | None) -> str:
    return "none" if default is None else default or "(empty)"
