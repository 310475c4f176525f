"""Whether the table still knows how it was at some time.

1. A time names the state made of everything *requested* until then, also where completion times exist.
2. What cleans have taken away is gone, also by one that is planned and may be half done: times whose state is not whole
   any more are refused (`cleaned`).
3. A state that a running write may still change is not a state of the past: times from the first incomplete write on
   are refused. Pending compactions and clusterings change no rows and do not count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hoodie.errors import Invalid
from hoodie.query.cleaned import load_retained_from
from hoodie.spec import (
    CLEAN,
    Instant,
    InstantTime,
    State,
    parse_clean_plan,
    parse_earliest_retained,
)
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage
from hoodie.timeline import Timeline, instant_path, load_requested
from hoodie.view import PartitionChoice, View


@dataclass(frozen=True, slots=True)
class KnownPast:
    """From when until when the past is known, as seen from the time asked for: `earliest_retained` inclusive,
    `first_incomplete` exclusive; None is unlimited.
    """

    earliest_retained: InstantTime | None = None
    first_incomplete: InstantTime | None = None


def ensure_known(as_of: InstantTime, past: KnownPast) -> None:
    """Checks that the state at `as_of` can be read.

    Raises:
        Invalid: it was cleaned away, or a write before it is not complete.
    """
    if past.earliest_retained is not None and as_of < past.earliest_retained:
        raise Invalid(
            f"The state of the table at {as_of} was cleaned up: cleans kept what is needed from "
            f"{past.earliest_retained} on",
            remedy=f"Ask for {past.earliest_retained} or later; let cleaning retain more",
            as_of=as_of,
            earliest_retained=past.earliest_retained,
        )
    if past.first_incomplete is not None and as_of >= past.first_incomplete:
        raise Invalid(
            f"The state of the table at {as_of} is not settled: the write of {past.first_incomplete} is not complete",
            remedy=f"Ask for a time before {past.first_incomplete}, or leave the time out to read the newest state",
            as_of=as_of,
            first_incomplete=past.first_incomplete,
        )


def load_known_past(
    storage: Storage, view: View, as_of: InstantTime, choice: PartitionChoice | None = None
) -> KnownPast:
    """What the timeline and cleans say about the state at `as_of`, or about that of the partitions of a `choice`.

    Raises:
        Corrupt: a clean's metadata cannot be read.
    """
    retained = load_retained_from(storage, view, as_of, choice)
    return KnownPast(retained, first_incomplete_write(storage, view.timeline))


def load_last_retained(storage: Storage, timeline: Timeline) -> InstantTime | None:
    """The earliest commit that the last clean kept, or one that is planned and may be half done; None when they do not
    say. Reads the last clean's metadata and plans of pending cleans.

    Raises:
        Corrupt: the clean's metadata cannot be read.
    """
    cleans = [instant for instant in timeline.completed() if instant.action == CLEAN]
    earliest = [_earliest_retained(storage, timeline, max(cleans))] if cleans else []
    earliest += [
        _earliest_planned(storage, timeline, instant) for instant in timeline.pending() if instant.action == CLEAN
    ]
    return max((time for time in earliest if time), default=None)


def first_incomplete_write(storage: Storage, timeline: Timeline) -> InstantTime | None:
    """Requested time of the first pending write that may add, change or remove rows."""
    writes = PendingPlans(storage, timeline).incomplete_writes()
    return min((instant.requested for instant in writes), default=None)


def _earliest_retained(storage: Storage, timeline: Timeline, clean: Instant) -> InstantTime | None:
    path = instant_path(timeline.profile, clean)
    data = storage.read(path)
    if not data:  # a clean that died while it wrote its result; it is done again
        return None
    return parse_earliest_retained(data, path)


def _earliest_planned(storage: Storage, timeline: Timeline, clean: Instant) -> InstantTime | None:
    data = load_requested(storage, timeline.profile, clean)
    if not data:  # it died while it wrote its plan, and has deleted nothing
        return None
    plan = parse_clean_plan(data, instant_path(timeline.profile, replace(clean, state=State.REQUESTED)))
    return None if plan.earliest is None else plan.earliest.requested
