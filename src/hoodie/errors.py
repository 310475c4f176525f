"""How `hoodie` fails: few exceptions, each named by what the caller does next.

1. Every error carries a `cause` (what was seen) and a `remedy` (what to do); the message is built from both.
2. Facts (path, key, instant ...) are attributes in `facts`, so programs need not parse text.
3. Foreign exceptions (pyarrow, object stores, Spark) are translated where the library is called, never here.
4. Messages are short, whatever was seen: long words lose their middle, long causes their end, objects their address.
   `facts` stay whole.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST_MESSAGE: Final = 700
_LONGEST_REMEDY: Final = 450
_LONGEST_WORD: Final = 300
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]{6,}")
_LONG_WORD: Final = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")


class HudiError(Exception):
    """Root of all errors `hoodie` raises on purpose."""

    def __init__(self, cause: str, *, remedy: str | None = None, **facts: object) -> None:
        self.remedy = None if remedy is None else _cut(remedy, _LONGEST_REMEDY)
        self.cause = _cut(cause, LONGEST_MESSAGE - len(self.remedy or "") - len(". "))
        self.facts = facts
        super().__init__(self.cause if self.remedy is None else f"{self.cause}. {self.remedy}")

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process boundaries (Spark workers); keyword-only arguments need help to survive pickling.
        return (_rebuild, (type(self), self.cause, self.remedy, self.facts))


class Conflict(HudiError):
    """Someone else won: re-read the table and retry."""


class CommitUnknown(HudiError):
    """The answer to a commit was lost: find out whether it exists, clean nothing."""


class Unavailable(HudiError):
    """A resource did not answer or refused for now (disk full, permission, network): fix that, try the same again."""


class Missing(HudiError):
    """A file that was asked for is not there. Storage raises it; callers turn it into what it means for them."""


class Invalid(HudiError):
    """The call, an option or the input is wrong: fix it."""


class Corrupt(HudiError):
    """Bytes on storage are damaged: `facts["path"]` names the file, `facts["offset"]` the place if known."""


class Unsupported(HudiError):
    """A newer table version or a feature `hoodie` does not have (yet); `cause` says which."""


class Fenced(HudiError):
    """This writer lost its right to write (its instant was rolled back by another): stop writing."""


def _cut(text: str, length: int) -> str:
    found = _LONG_WORD.sub(lambda word: f"{word[0][:220]}…{word[0][-50:]}", _ADDRESS.sub("", text))
    return found if len(found) <= length else f"{found[: length - 1]}…"


def _rebuild(kind: type[HudiError], cause: str, remedy: str | None, facts: dict[str, object]) -> HudiError:
    return kind(cause, remedy=remedy, **facts)
