"""Whether a client that tells its last instant and the hash of its timeline has the one that a view is at, and whether
it knows the same of the table's names, plans and completion times. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.remote.known_timeline import LOOK, NAMES, NO_INSTANT, hash_of, look_of, names_of, told_instants
from hoodie.spec import CLEAN, Instant, TableConfig
from hoodie.timeline import Timeline


def is_behind(timeline: Timeline, last: str, known_hash: str) -> bool:
    """Whether a client with such a last instant and hash has another timeline than this."""
    instants = told_instants(timeline)
    if not instants and last == NO_INSTANT:
        return False
    if hash_of(instants) != known_hash:
        return True
    return not (any(one.requested == last for one in instants) or timeline.is_before_start(last))


def is_forgiven(timeline: Timeline, known_hash: str) -> bool:
    """Whether the client lacks nothing but a clean that came last."""
    instants = told_instants(timeline)
    return bool(instants) and instants[-1].action == CLEAN and hash_of(instants[:-1]) == known_hash


def names_agree(config: TableConfig, parameters: Mapping[str, str]) -> bool | None:
    """Whether a client has the same names of files in mind; None of one that does not say."""
    said = parameters.get(NAMES)
    return None if said is None else said == names_of(config)


def looks_agree(timeline: Timeline, parameters: Mapping[str, str]) -> bool | None:
    """Whether a client has seen the plans and completion times that are known; None of one that does not say."""
    said = parameters.get(LOOK)
    return said == look_of(timeline) if said else None


def differs(timeline: Timeline, last: str) -> str:
    """What a client is told that has another timeline than this: Hudi's words, which its clients log."""
    shown = ", ".join(_shown(one) for one in told_instants(timeline))
    return f"Last known instant from client was {last} but server has the following timeline [{shown}]"


def _shown(instant: Instant) -> str:
    pending = "" if instant.is_completed else "==>"
    return f"[{pending}{instant.requested}__{instant.completed}__{instant.action}__{instant.state.name}]"
