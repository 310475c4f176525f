"""What helps: words, and among them commands that can be run as they stand. It knows no table."""

from __future__ import annotations

import re
from typing import NamedTuple

_COMMAND = re.compile("`([^`]*)`")


class Remedy(NamedTuple):
    """A sentence, and the commands in it in their order."""

    text: str
    commands: tuple[str, ...]


def told(template: str, **facts: object) -> Remedy:
    """The remedy that `template` says of some facts: what stands between backticks is a command."""
    commands = tuple(found.format(**facts) for found in _COMMAND.findall(template))
    return Remedy(_COMMAND.sub(r"\1", template).format(**facts), commands)
