"""One look at a table: its timeline, and which files say what is planned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hoodie.spec import CLUSTERING, COMPACTION, LOG_COMPACTION, REPLACE_COMMIT, Instant, State
from hoodie.state.handle import TableHandle
from hoodie.storage import FileInfo
from hoodie.timeline import Timeline, furthest, list_state_files

_PLANNING = frozenset({COMPACTION, LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT})


@dataclass(frozen=True, slots=True)
class Look:
    """A timeline and the files of its pending plans, with their sizes and times: a plan that is taken off for a file
    group, or put back, is another file at the same instant. None where nobody listed them.
    """

    timeline: Timeline
    plan_files: tuple[FileInfo, ...] | None


def look_at(handle: TableHandle) -> Look:
    """A look at the table as it is now: one listing."""
    found = list_state_files(handle.storage, handle.profile, handle.config.timezone)
    timeline = Timeline(handle.profile, furthest(instant for instant, _ in found))
    pending = _planning(timeline)
    files = (file for one, file in found if one.state is State.REQUESTED and one.logical in pending)
    return Look(timeline, tuple(files))


def seen_by(timeline: Timeline) -> Look:
    """The look of somebody who tells no more than the timeline."""
    return Look(timeline, None if _planning(timeline) else ())


def _planning(timeline: Timeline) -> frozenset[tuple[str, str]]:
    pending: Iterable[Instant] = timeline.pending()
    return frozenset(one.logical for one in pending if one.action in _PLANNING)
