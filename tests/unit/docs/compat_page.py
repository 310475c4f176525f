"""docs/compat.md for tests: the tables that say what works."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def compat_tables() -> list[list[str]]:
    """The cells of each line of the tables that say what works."""
    page = (ROOT / "docs" / "compat.md").read_text(encoding="utf-8")
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for section in re.split(r"^## ", page, flags=re.MULTILINE)
        if section.startswith(("Writing", "Reading", "Surfaces"))
        for line in section.splitlines()
        if line.startswith("|")
    ]
