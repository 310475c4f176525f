"""Patterns for paths of base files, as `hoodie.datasource.read.incr.path.glob` has them.

1. `*` any text, `?` one character, both including `/`; `[a-c]` one of a set, `[^a]` or `[!a]` one not in it; `{a,b}`
   one of several patterns, `\\` before a character takes it as it is.
2. A pattern describes the *end* of the full path: `/2024/*` finds what lies in any folder `2024`, as in Hudi.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hoodie.errors import Invalid

_PARTS = re.compile(r"\\(?P<plain>.)|\[(?P<negated>[!^]?)(?P<members>[^\]]+)\]|(?P<one>.)", re.DOTALL)
_SIGNS = {"*": ".*", "?": "."}


@dataclass(frozen=True, slots=True)
class PathGlob:
    """A pattern that full paths are held against.

    Raises:
        Invalid: a bracket or brace is not closed, or nothing follows a backslash.
    """

    text: str
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pattern", re.compile(".*" + _regex(self.text), re.DOTALL))

    def matches(self, path: str) -> bool:
        """Whether a full path ends as the pattern says."""
        return self._pattern.fullmatch(path) is not None


def _regex(glob: str) -> str:
    regex = ""
    open_braces = 0
    for part in _PARTS.finditer(glob):
        if part["plain"] is not None:
            regex += re.escape(part["plain"])
        elif part["members"] is not None:
            members = part["members"].replace("\\", "\\\\")
            regex += f"[{'^' if part['negated'] else ''}{members}]"
        elif part["one"] == "{":
            open_braces += 1
            regex += "(?:"
        elif part["one"] == "}" and open_braces:
            open_braces -= 1
            regex += ")"
        elif part["one"] == "," and open_braces:
            regex += "|"
        elif part["one"] in ("[", "\\"):
            raise _unfinished(glob)
        else:
            regex += _SIGNS.get(part["one"]) or re.escape(part["one"])
    if open_braces:
        raise _unfinished(glob)
    return regex


def _unfinished(glob: str) -> Invalid:
    return Invalid(
        f"The path pattern {glob!r} has no end", remedy="Close every [ and {, and write \\\\ for a backslash"
    )
