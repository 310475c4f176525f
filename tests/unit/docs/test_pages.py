"""Documents hang together: links and paths exist, the index has every page, lists made from data are current."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from compat_page import compat_tables

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
TEST_PATH = re.compile(r"`(tests/[\w./-]+?)(?:::\w+)?`")


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    gone = [link for link in LINK.findall(text(page)) if "://" not in link and not (page.parent / link).exists()]
    assert gone == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_tests_that_are_named_exist(page: Path) -> None:
    def found(path: str) -> bool:
        return (ROOT / path).exists() or bool(list((ROOT / path).parent.glob(Path(path).name + "*")))

    assert [path for path in TEST_PATH.findall(text(page)) if not found(path)] == []


def test_the_index_has_every_page() -> None:
    index = text(DOCS / "README.md")
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"README.md"}
    assert sorted(page for page in pages if page not in index) == []


def test_design_notes_are_numbered_without_gaps() -> None:
    numbers = sorted(int(page.name[:4]) for page in (DOCS / "design").glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_format_page_has_a_grammar_an_example_and_its_code() -> None:
    for page in (DOCS / "format").glob("*.md"):
        assert "Code: `hoodie." in text(page), page.name
        assert "```" in text(page), page.name


def test_every_format_page_is_held_to_the_code_by_a_unit_test() -> None:
    tests = "".join(text(path) for path in (ROOT / "tests" / "unit").rglob("test_*.py"))
    names = [page.stem for page in (DOCS / "format").glob("*.md")]
    assert [name for name in names if f'page("{name}")' not in tests and f'"{name}.md"' not in tests] == []


def test_compat_lists_what_peers_cannot_read() -> None:
    assert peer_limits().limits_page() in text(DOCS / "compat.md"), "run: python tests/compat/peer_limits.py"


def test_compat_names_a_test_for_every_feature_that_works() -> None:
    assert [row[0] for row in compat_tables() if any("yes" in cell for cell in row[1:-1]) and "`" not in row[-1]] == []


def peer_limits() -> ModuleType:
    spec = importlib.util.spec_from_file_location("peer_limits_page", ROOT / "tests" / "compat" / "peer_limits.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # dataclasses look their module up while they are made
    spec.loader.exec_module(module)
    return module


def test_docstrings_open_with_what_a_function_does() -> None:
    sources = (ROOT / "src" / "hoodie").rglob("*.py")
    idle = [path.relative_to(ROOT).as_posix() for path in sources if '"""Nothing' in path.read_text(encoding="utf-8")]
    assert idle == [], 'say what it checks or does: "Checks that ...", "Removes ..."'
