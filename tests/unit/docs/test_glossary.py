"""Words that docs/glossary.md has no longer do not come back as names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "src" / "hoodie"
GONE = re.compile(r"take_back|heal|sweep|left_behind|arrangement|stamp|dialect|writer_exclusion", re.IGNORECASE)
LIMIT = re.compile(r"_?(most|least|fewest)_\w+", re.IGNORECASE)
"""Limits are called `max_` and `min_`. A function may be about what has the most of something."""
NAMED_THINGS = ("cli", "logs", "merge", "present", "query", "records", "services/archiving", "slices", "table")
"""Rooms in which variables say what they hold."""
VAGUE = {"one", "own", "around", "asked", "kept"}
"""What a thing is to its neighbours, and not what it is. `one` for whatever a loop is at."""


def functions(tree: ast.Module) -> Iterator[str]:
    """Functions and classes that are defined."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def variables(tree: ast.Module) -> Iterator[str]:
    """Arguments, fields and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@pytest.mark.parametrize(
    "room", sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name[0] != "_")
)
def test_no_name_is_a_word_that_is_gone(room: str) -> None:
    for path in (PACKAGE / room).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not [name for name in (*functions(tree), *variables(tree)) if GONE.fullmatch(name)], path
        assert not [name for name in variables(tree) if LIMIT.fullmatch(name)], path


@pytest.mark.parametrize("room", NAMED_THINGS)
def test_names_say_what_a_thing_is(room: str) -> None:
    for path in (PACKAGE / room).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not VAGUE.intersection(name.strip("_") for name in (*functions(tree), *variables(tree))), path
