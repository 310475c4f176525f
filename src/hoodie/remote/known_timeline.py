"""What a client of a timeline server says about its timeline with each request: its last instant, and a hash of all.

1. They are about completed instants of all actions and pending compactions. Other pending instants are in neither, so
   what is pending beside compactions may differ though both are equal.
2. The hash is SHA-256 over requested time, action and state of each instant, ascending, without anything in between.
   Completion times are not in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from hoodie.spec import COMPACTION, Instant
from hoodie.timeline import Timeline

NO_INSTANT = "0"
"""What counts as the last instant of a client that names none."""


def told_instants(timeline: Timeline) -> tuple[Instant, ...]:
    """The instants that client and server must agree about, in order."""
    return tuple(one for one in timeline.instants if one.is_completed or one.action == COMPACTION)


def hash_of(instants: Iterable[Instant]) -> str:
    """The hash of instants in timeline order, as Hudi computes it."""
    text = "".join(f"{one.requested}_{one.action}_{one.state.name}" for one in instants)
    return hashlib.sha256(text.encode()).hexdigest()


def told(timeline: Timeline) -> dict[str, str]:
    """The parameters by which a client says which timeline it has. The last instant is left out of an empty one."""
    instants = told_instants(timeline)
    last = {"lastinstantts": instants[-1].requested} if instants else {}
    return {**last, "timelinehash": hash_of(instants)}
