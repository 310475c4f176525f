"""`hoodie config`: what the option keys mean."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.table import Table as Grid
from rich.text import Text

from hoodie.cli.arguments import AsJson
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
)

_WORDS: dict[Kind, str] = {
    "implemented": "implemented",
    "no_meaning_here": "accepted, without effect here",
    "not_yet": "not yet: a value that asks for it is refused",
}
_SHORT: dict[Kind, str] = {"implemented": "", "no_meaning_here": "(no effect here)", "not_yet": "(not yet)"}


def run(
    key: Annotated[str | None, typer.Argument(metavar="[KEY]", help="A key, or a part of some keys.")] = None,
    *,
    json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the reference page docs/config.md.")] = False,
    differences: Annotated[
        bool, typer.Option("--differences", help="Print the defaults that differ from Hudi's, as Markdown.")
    ] = False,
) -> None:
    """Explain a configuration key, or list the keys that contain some text."""
    if markdown or differences:
        typer.echo(reference_markdown() if markdown else differences_markdown(), nl=False)
        return
    exact = find(key) if key else None
    if key is not None and exact is not None:
        _explain(key, exact, json)
        return
    entries = [entry for entry in all_keys() if key is None or key in entry.key]
    if not entries and key is not None:
        lookup(key)
    if json:
        print_json([_as_json(entry) for entry in entries])
    else:
        _print_list(entries)


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
        target.print(Text.assemble((entry.key, "bold"), f" {value} ", (_SHORT[entry.kind], "dim")), soft_wrap=True)
        target.print(Text(f"    {entry.meaning}"), soft_wrap=True)


def _entry_grid(name: str, entry: ConfigKey) -> Grid:
    """All about one key; for another spelling of a key, what it stands for."""
    meant = lookup(entry.canonical)
    grid = Grid(show_header=False, title=Text(name, style="bold"))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    facts = {
        "meaning": entry.meaning,
        "same as": meant.key if meant.key != name else None,
        "here": "a warning says that it is not done yet" if meant.warns else _WORDS[meant.kind],
        "default": _default_text(meant.default),
        "Hudi's default": _default_text(meant.hudi_default) if meant.difference else None,
        "because": meant.difference,
        "type": meant.type,
        "accepted": accepted(meant) if meant.values else None,
        "not yet": ", ".join(meant.later) if meant.later and "*" not in meant.later else None,
        "also called": ", ".join(meant.aliases) or None,
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
