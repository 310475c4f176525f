"""Where output goes: results to stdout, progress to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console


class Step(Protocol):
    """A step people wait for, whose text may change meanwhile."""

    def update(self, text: str) -> None: ...


def console() -> Console:
    """The console results are printed on."""
    return Console(highlight=False)


def print_json(value: Any) -> None:
    """Prints `value` as one JSON document."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


@contextmanager
def progress(text: str) -> Iterator[Step]:
    """Shows on stderr that work goes on; nothing is shown when stderr is no terminal."""
    with Console(stderr=True).status(text) as status:
        yield status
