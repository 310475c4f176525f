"""Every Python that this package starts looks for modules where they are installed, never in the current folder: a file
named like a module there would run with the rights of whoever reads a table.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import hoodie

SOURCES = Path(hoodie.__file__).parent
STARTERS = {"run", "Popen", "call", "check_call", "check_output", "spawn", "execv", "execve", "system", "popen"}
# Python's own ways to start another process of the same program.
MULTIPLYING = {"Process", "Pool", "get_context", "ProcessPoolExecutor", "forkserver"}
# A probe that asks where a Python finds modules, told to look in the current folder exactly if this one does.
PROBES = {"spark/session.py"}


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        if not name.startswith("testing/"):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def _starts_of_python(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls that start a process and name the running Python among what they pass."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in STARTERS:
            named = {ast.unparse(inner) for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}
            if "sys.executable" in named:
                yield node


def test_each_is_told_not_to_look_in_the_current_folder() -> None:
    found = {}
    for name, tree in _trees():
        for call in _starts_of_python(tree):
            texts = {inner.value for inner in ast.walk(call) if isinstance(inner, ast.Constant)}
            found[name] = "-P" in texts or name in PROBES
    assert found, "no Python is started at all: the search is broken"
    assert [name for name, safe in found.items() if not safe] == []


def test_no_process_is_started_by_a_way_the_search_does_not_see() -> None:
    for name, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert "multiprocessing" not in {alias.name for alias in node.names}, name
            elif isinstance(node, ast.ImportFrom):
                named = {alias.name for alias in node.names}
                assert not named & MULTIPLYING, name
                assert node.module not in ("subprocess", "os") or not named & STARTERS, name
