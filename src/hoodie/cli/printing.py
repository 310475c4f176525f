"""Where output goes: results to stdout, progress to stderr.

rich is loaded when there is somebody to see it: programs that ask for JSON do not wait for it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console


class Step(Protocol):
    """A step people wait for, whose text may change meanwhile."""

    def update(self, text: str) -> None: ...


def console() -> Console:
    """The console results are printed on."""
    from rich.console import Console  # noqa: PLC0415

    return Console(highlight=False)


def print_json(value: Any) -> None:
    """Prints `value` as one JSON document."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


@contextmanager
def progress(text: str) -> Iterator[Step]:
    """Shows on stderr that work goes on; nothing is shown when stderr is no terminal."""
    if not sys.stderr.isatty():
        yield _Unseen()
        return
    from rich.console import Console  # noqa: PLC0415

    with Console(stderr=True).status(text) as status:
        yield status


class _Unseen:
    """A step nobody watches."""

    def update(self, text: str) -> None:
        pass
