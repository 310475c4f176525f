"""Letting others pass at a lock without a queue.

Who waits for a lease looks at it once a second, Hudi's writers and ours, and nobody sees them wait. A process that
gives it back and takes it anew at once would keep them out for as long as it has work. So it leaves the lease free for
a moment that such a look cannot miss, when it has gone without one for too long. A gap that comes by itself counts as
well, and who asks for the lock now or not at all is not held up.
"""

from __future__ import annotations

import math
import os
import threading
from dataclasses import dataclass
from typing import Final

from hoodie.errors import Conflict
from hoodie.locks.waiting import Patience
from hoodie.storage.lock_holder import LockHolder, this_holder

GAP_S: Final = 1.2
"""Others look every second."""
ALONE_S: Final = 60.0
"""How long a process goes without a gap where nobody else was seen: it loses a fiftieth of its time."""
BESIDE_OTHERS_S: Final = 1.0
"""The same where somebody was."""
SEEN_S: Final = 60.0
"""For how long who was seen is reckoned with. A lock that nobody takes is remembered as long: each plan has its own."""


@dataclass(slots=True)
class _Turn:
    """Since when this process has had a lock without a gap, when it gave it back, and when it saw another there."""

    since_s: float = -math.inf
    free_since_s: float = -math.inf
    others_s: float = -math.inf
    owner: str = ""

    def is_past(self, now_s: float) -> bool:
        """Whether nothing of it counts any more: this process does not hold the lock, and nobody was seen for long."""
        is_held = self.owner != "" and self.free_since_s == -math.inf
        return not is_held and max(self.free_since_s, self.others_s) + SEEN_S < now_s


_turns: dict[str, _Turn] = {}
_guard = threading.Lock()


def let_pass(lock: str, patience: Patience) -> None:
    """Sleeps for what is missing of a gap, if one is due."""
    now_s = patience.env.monotonic()
    with _guard:
        turn = _turns.get(lock)
        if turn is None or not patience.waits:
            return
        longest_s = BESIDE_OTHERS_S if now_s < turn.others_s + SEEN_S else ALONE_S
        missing_s = turn.free_since_s + GAP_S - now_s if now_s >= turn.since_s + longest_s else 0
    if missing_s > 0:
        patience.env.sleep(min(missing_s, patience.wait_ms / 1000))


def note_refused(lock: str, patience: Patience, conflict: Conflict) -> None:
    """The lock was refused; whoever holds it is reckoned with, unless it is a thread of this process."""
    holder = conflict.facts.get("holder")
    own = this_holder("")
    is_own = isinstance(holder, LockHolder) and (holder.host, holder.process) == (own.host, own.process)
    if "owner" in conflict.facts and not is_own:
        with _guard:
            _turns.setdefault(lock, _Turn()).others_s = patience.env.monotonic()


def note_taken(lock: str, patience: Patience, owner: str, before: str) -> None:
    """This process holds the lock now, as an owner; `before` is whose it was last."""
    now_s = patience.env.monotonic()
    with _guard:
        for past in [name for name, turn in _turns.items() if name != lock and turn.is_past(now_s)]:
            del _turns[past]
        turn = _turns.setdefault(lock, _Turn())
        is_anothers = turn.owner != "" and before not in ("", turn.owner)  # else it may be from long ago
        if is_anothers:
            turn.others_s = now_s
        if is_anothers or now_s >= turn.free_since_s + GAP_S:
            turn.since_s = now_s
        turn.owner, turn.free_since_s = owner, -math.inf


def note_given_back(lock: str, patience: Patience) -> None:
    """This process does not hold the lock any more."""
    with _guard:
        _turns.setdefault(lock, _Turn()).free_since_s = patience.env.monotonic()


def _forget_turns() -> None:
    global _guard  # noqa: PLW0603 - another thread may have held it when the child was forked
    _guard = threading.Lock()
    _turns.clear()


os.register_at_fork(after_in_child=_forget_turns)
