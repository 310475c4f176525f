"""The picture of packages in docs/design/0001-architecture.md and the list in README.md are what the code is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "hoodie"
NAME_COLUMNS = 38


def layers() -> list[list[str]]:
    """Names in each line of the picture, highest first."""
    page = (ROOT / "docs" / "design" / "0001-architecture.md").read_text(encoding="utf-8")
    return picture_after("Imports point down only", page)


def picture_after(words: str, page: str) -> list[list[str]]:
    picture = re.search(words + r".*?```\n(.*?)```", page, re.DOTALL)
    assert picture is not None
    return [[name.removesuffix(".py") for name in line[:NAME_COLUMNS].split()] for line in picture[1].splitlines()]


def packages() -> set[str]:
    return {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}


def imported(path: Path) -> Iterator[str]:
    """Packages of ours that a module imports, wherever the statement stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "hoodie":
            names = [f"hoodie.{alias.name}" for alias in node.names]
        else:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        yield from (name.split(".")[1] for name in names if name.startswith("hoodie."))


LAYERS = layers()
LEVELS = {name: level for level, names in enumerate(LAYERS) for name in names}


def test_every_package_is_in_the_picture_once() -> None:
    shown = [name for names in LAYERS for name in names]
    assert len(shown) == len(set(shown))
    assert set(shown) == packages() - {"__init__", "testing"}


@pytest.mark.parametrize("package", sorted(packages() - {"__init__", "testing"}))
def test_imports_point_down(package: str) -> None:
    home = PACKAGE / package
    files = home.rglob("*.py") if home.is_dir() else [home.with_suffix(".py")]
    for file in files:
        up = {name for name in imported(file) if name != package and LEVELS.get(name, -1) <= LEVELS[package]}
        assert not up, f"{file.relative_to(ROOT)} imports {sorted(up)}"


def test_readme_has_the_same_picture() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert picture_after("Packages import downwards only", page) == LAYERS


def test_readme_has_one_sentence_for_every_package() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `hoodie\.(\w+)` \| (.*) \|$", page, re.MULTILINE))
    assert set(told) == packages() - {"__init__"}
    assert all(sentence.endswith(".") for sentence in told.values())
