"""Where output goes: results to stdout, progress to stderr.

What steers a terminal, or is markup to rich, is neither here: names and values of tables are shown as they are.

rich is loaded when there is somebody to see it: programs that ask for JSON do not wait for it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from hoodie.present import as_json
from hoodie.present.plain import json_text, visible_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.text import Text


class Step(Protocol):
    """A step people wait for, whose text may change meanwhile."""

    def update(self, text: str) -> None: ...


class VisibleFormatter(logging.Formatter):
    """Log lines in which nothing steers a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return visible_text(super().format(record))


def console(*, stderr: bool = False) -> Console:
    """The console results are printed on, or that for who waits."""
    from rich.console import Console  # noqa: PLC0415 - slow to load
    from rich.segment import Segment  # noqa: PLC0415 - slow to load

    class Visible(Console):
        def render_str(self, text: str, **how: Any) -> Text:
            return super().render_str(visible_text(text), **how)  # before it is measured

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else visible_text(text), style, control)

    return Visible(highlight=False, markup=False, emoji=False, stderr=stderr)


def print_json(value: Any) -> None:
    """Prints `value`, in its JSON form, as one document."""
    sys.stdout.write(json_text(as_json(value), indent=2) + "\n")


@contextmanager
def progress(text: str) -> Iterator[Step]:
    """Shows on stderr that work goes on; nothing is shown when stderr is no terminal."""
    if not sys.stderr.isatty():
        yield _Unseen()
        return
    with console(stderr=True).status(visible_text(text)) as status:
        yield status


class _Unseen:
    """A step nobody watches."""

    def update(self, text: str) -> None:
        pass
