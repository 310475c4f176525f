"""Nobody outside the format profile compares versions or parts of a profile: the parts act, or answer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import hoodie
from hoodie.spec import V6, V8, V9, FormatProfile

ROOT = Path(hoodie.__file__).parent
FREE = ("spec", "services/upgrading", "testing")
"""The parts themselves; what takes a table from one version to another; tables made by hand for tests."""

FOLDERS = {"timeline_dir", "history_dir"}
PARTS = {field.name for field in fields(FormatProfile)} - FOLDERS | {"profile"}
CLASSES = {type(getattr(profile, part)).__name__ for profile in (V6, V8, V9) for part in PARTS - {"profile"}}
VALUES = {"0.15", "1.x", "log_files", "parquet_files"}
CONSTANTS = re.compile(r"V6|V8|V9|CURRENT|NAMED_BY_(SLICE|WRITE)|(REQUEST|COMPLETION)_CLOCK")
VERSION = re.compile(r"\b(table_version|layout_version|hoodie\.write\.table\.version)\b|\bindexes\.version$")


def compared_parts(tree: ast.AST) -> Iterator[str]:
    """Expressions that compare a version, or ask which part a profile has."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            is_none = all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
            if not is_none and any(_is_part(side) for side in (node.left, *node.comparators)):
                yield ast.unparse(node)
        elif isinstance(node, ast.Match) and _is_part(node.subject):
            yield f"match {ast.unparse(node.subject)}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            kinds = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
            if kinds & (CLASSES - {"str", "int", "bool"}):
                yield ast.unparse(node)


def _is_part(side: ast.expr) -> bool:
    if isinstance(side, ast.Tuple | ast.List | ast.Set):
        return any(_is_part(one) for one in side.elts)
    if isinstance(side, ast.Constant):
        return side.value in VALUES
    if isinstance(side, ast.Name):
        return side.id in PARTS - {"clock", "indexes"} or CONSTANTS.fullmatch(side.id) is not None
    if isinstance(side, ast.Attribute) and side.attr in PARTS:
        return True
    return VERSION.search(ast.unparse(side)) is not None


def sources() -> list[Path]:
    return [
        path
        for path in sorted(ROOT.rglob("*.py"))
        if not path.relative_to(ROOT).as_posix().startswith(tuple(f"{free}/" for free in FREE))
    ]


def test_nobody_compares_versions_or_parts_of_a_profile() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {what}"
        for path in sources()
        for what in compared_parts(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "let a part of the profile act or answer instead (CONTRIBUTING.md)"


@pytest.mark.parametrize(
    "code",
    [
        "handle.config.table_version < 9",
        "config.integer('hoodie.write.table.version') >= 8",
        "profile.layout_version == 1",
        "generation == '1.x'",
        "profile.history_form in ('log_files',)",
        "timeline.profile.log_naming is not None and profile.log_naming == NAMED_BY_SLICE",
        "one.profile != other.profile",
        "profile.clock is COMPLETION_CLOCK or profile == V9",
        "profile.indexes.version == 'V2'",
        "isinstance(profile.clock, CompletionClock)",
        "match profile.avro_generation:\n    case '1.x':\n        pass",
    ],
)
def test_such_comparisons_are_found(code: str) -> None:
    assert list(compared_parts(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "profile.clock.of(one) > last",
        "profile.log_naming.writer_of(name) == instant",
        "definition.version != 'V1'",
        "profile is None",
        "RULES[profile.log_naming](files)",
    ],
)
def test_answers_of_parts_may_be_compared(code: str) -> None:
    assert not list(compared_parts(ast.parse(code)))
