"""Instants and timelines as a timeline server writes them.

Releases before 1.0 read `ts`, later ones `requestedTime` and `completionTime`: all are written. Nulls are written, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.remote.json_values import Json, elements, member, not_understood, optional, short
from hoodie.spec import Instant, State


def instant_json(instant: Instant) -> Json:
    """The object of one instant."""
    return {
        "action": instant.action,
        "ts": instant.requested,
        "state": instant.state.name,
        "requestedTime": instant.requested,
        "completionTime": instant.completed,
    }


def timeline_json(instants: Iterable[Instant]) -> Json:
    """The object of a timeline, its instants in the order given."""
    return {"instants": [instant_json(one) for one in instants]}


def parse_instant(value: Json) -> Instant:
    """The instant of an object, of any release.

    Raises:
        Unavailable: it is none.
    """
    state = member(value, "state", str)
    if state not in State.__members__:
        raise not_understood(f"state is {short(state)}")
    requested = optional(value, "requestedTime", str) or member(value, "ts", str)
    return Instant(requested, member(value, "action", str), State[state], optional(value, "completionTime", str))


def parse_timeline(value: Json) -> tuple[Instant, ...]:
    """The instants of a timeline, in its order.

    Raises:
        Unavailable: it is none.
    """
    return tuple(parse_instant(one) for one in elements(member(value, "instants", list)))
