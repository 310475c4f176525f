"""The examples of a Markdown page: Python, and below it what it prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_EXAMPLE = re.compile(r"```python\n(.*?)```\n```\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Example:
    """One program of a page and the output the page shows for it."""

    code: str
    output: str

    @property
    def needs_spark(self) -> bool:
        return "spark" in self.code


def load_examples(page: Path) -> list[Example]:
    """The examples of a page, in order."""
    return [Example(code, output) for code, output in _EXAMPLE.findall(page.read_text(encoding="utf-8"))]
