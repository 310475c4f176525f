"""Whoever keeps, builds, drops or checks indexes walks the registry of kinds: none is named outside of its module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from hoodie.metadata_writer.indexes import registry

ROOM = Path(registry.__file__).parents[1]
CONSTANTS = {
    "COLUMN_STATS",
    "PARTITION_STATS",
    "BLOOM_FILTERS",
    "RECORD_INDEX",
    "SECONDARY_PREFIX",
    "EXPRESSION_PREFIX",
}
MODULES = {"column_stats", "partition_stats", "bloom_filters", "record_index", "secondary_index", "expression_index"}
EXPORTS = {"__init__.py": "what users build indexes by", "expression_values.py": "the form of a stored filter"}
"""Files that name modules of kinds, and why."""


def kinds_named(source: str) -> Iterator[str]:
    """Kinds of indexes that code names: by their constants, in texts, by their modules."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id in CONSTANTS:
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in MODULES:
            yield node.value
        elif isinstance(node, ast.ImportFrom) and ".indexes." in f"{node.module}.":
            yield from MODULES.intersection((node.module or "").split("."))


def test_no_caller_knows_one_kind_from_another() -> None:
    outside = [path for path in sorted(ROOM.glob("*.py")) if path.name not in EXPORTS]
    assert len(outside) > 25
    assert {path.name: sorted(set(kinds_named(path.read_text("utf-8")))) for path in outside} == {
        path.name: [] for path in outside
    }


def test_naming_a_kind_is_seen() -> None:
    assert list(kinds_named("if name == COLUMN_STATS: pass")) == ["COLUMN_STATS"]
    assert list(kinds_named("match name:\n    case 'record_index': pass")) == ["record_index"]
    assert list(kinds_named("from hoodie.metadata_writer.indexes.record_index import is_partitioned")) == [
        "record_index"
    ]


def test_each_kind_is_one_module_of_its_own_and_one_line_of_the_registry() -> None:
    modules = {path.stem for path in (ROOM / "indexes").glob("*.py")} - {"__init__", "registry"}
    lines = (ROOM / "indexes" / "registry.py").read_text("utf-8").splitlines()
    assert modules == MODULES | {"files"}
    assert sorted(line.strip() for line in lines if line.endswith(".KIND,")) == sorted(
        f"{name}.KIND," for name in modules
    )
