"""The reference pages in docs/ are what the registry says now."""

from __future__ import annotations

from pathlib import Path

from hoodie.config import all_keys, differences_markdown, reference_markdown

DOCS = Path(__file__).parents[3] / "docs"


def test_docs_config_is_current() -> None:
    page = (DOCS / "config.md").read_text(encoding="utf-8")
    assert page == reference_markdown(), "run: hoodie config --markdown > docs/config.md"


def test_compat_shows_the_current_differences() -> None:
    page = (DOCS / "compat.md").read_text(encoding="utf-8")
    assert differences_markdown() in page, "put the output of `hoodie config --differences` into docs/compat.md"


def test_every_key_is_on_the_reference_page() -> None:
    page = reference_markdown()
    assert all(f"| `{entry.key}` |" in page for entry in all_keys())


def test_tables_have_as_many_cells_as_their_headings() -> None:
    for block in reference_markdown().split("\n\n"):
        rows = [line.replace("\\|", "") for line in block.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) <= 1, rows[:1]
