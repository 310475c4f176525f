"""Who holds a lock, as the lock itself says it to who has to wait: one JSON object in the lock's file or node.

A lock of somebody who says nothing (another Hudi writer), or what cannot be read, is a lock all the same.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from typing import Any

from hoodie.env import Env, SystemEnv

_ENV = SystemEnv()


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The machine, the number of the process there, what it does, and since when (ISO 8601, UTC)."""

    host: str
    process: int
    operation: str
    since: str

    def __str__(self) -> str:
        return f"{self.operation} by process {self.process} on {self.host} since {self.since}"


def this_holder(what: str, env: Env = _ENV) -> LockHolder:
    """This process, which takes a lock now to do `what`."""
    return LockHolder(platform.node(), os.getpid(), what, env.now().isoformat(timespec="seconds"))


def encode_holder(holder: LockHolder) -> bytes:
    return json.dumps(asdict(holder), separators=(",", ":")).encode()


def parse_holder(data: bytes) -> LockHolder | None:
    """The holder in the content of a lock; None when it says nothing that is understood."""
    try:
        return holder_of(json.loads(data))
    except ValueError:
        return None


def holder_of(fields: Any) -> LockHolder | None:
    """The same, of parsed JSON."""
    try:
        return LockHolder(str(fields["host"]), int(fields["process"]), str(fields["operation"]), str(fields["since"]))
    except (ValueError, TypeError, KeyError):
        return None


def has_ended(holder: LockHolder) -> bool:
    """Whether the process is known to run no more: it was one of this machine, and there is none of its number."""
    if holder.host != platform.node():
        return False
    try:
        os.kill(holder.process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False
    return False


def in_words(holder: LockHolder | None) -> str:
    """The holder in the middle of a message, in brackets; empty when nobody knows."""
    return f" ({holder})" if holder is not None else ""
