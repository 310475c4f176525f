"""Which plans are pending on a timeline, and which file groups each of them sets aside.

1. Plans are pending compactions, log compactions and clusterings. A clustering of version 6 is a replacecommit whose
   request says so; any other pending replacecommit is a write that is running or dead. A resize of buckets is a
   clustering; cleans, rollbacks and restores set no file group aside.
2. What a plan sets aside depends on its action. A compaction reserves a slice, into which writers go on to append; no
   other plan may take its groups. The groups of a log compaction may be written to, but by no other plan. Those of a
   clustering are replaced as they were: nobody may change or fill them. None of them may be cleaned.
3. A plan does not change while it is pending but for being taken off, so it is read when it is first asked for, and
   once. Several threads may ask; two that ask for the same at once may read it twice.

It reads and never writes. It stands in the state of a table (`TableState.plans`), and answers for that timeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hoodie.spec import (
    CLUSTERING,
    COMPACTION,
    COMPLETED_WRITE_ACTIONS,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    CompactionPlan,
    Instant,
    InstantTime,
    RequestedReplace,
    State,
    parse_compaction_plan,
)
from hoodie.storage import Storage
from hoodie.timeline import Timeline, instant_path, load_replace_request, load_requested
from hoodie.view import GroupId

COMPACTIONS: Final = (COMPACTION, LOG_COMPACTION)
"""Actions whose plan is a `CompactionPlan`."""


class PendingPlans:
    """The pending plans of the table in `storage` as `timeline` shows them. Methods that read a plan raise `Corrupt`
    when it is damaged.
    """

    __slots__ = ("_compactions", "_requests", "_storage", "timeline")

    def __init__(self, storage: Storage, timeline: Timeline) -> None:
        self.timeline = timeline
        self._storage = storage
        self._compactions: dict[tuple[InstantTime, str], CompactionPlan] = {}
        self._requests: dict[tuple[InstantTime, str], RequestedReplace] = {}

    def instants(self, action: str) -> tuple[Instant, ...]:
        """Pending compactions, log compactions or clusterings, oldest first. Reads the requests of replacecommits."""
        if action == CLUSTERING:
            return tuple(one for one in self.timeline.pending() if self._is_clustering(one))
        return tuple(one for one in self.timeline.pending() if one.action == action)

    def is_plan(self, instant: Instant) -> bool:
        """Whether a pending instant is a plan, and no write. Reads the request of a replacecommit."""
        return instant.action in COMPACTIONS or self._is_clustering(instant)

    def incomplete_writes(self) -> tuple[Instant, ...]:
        """Pending writes that may add, change or remove rows, oldest first: running or dead, which nobody can tell by
        the timeline. Reads the requests of replacecommits.
        """
        pending = (one for one in self.timeline.pending() if one.action in COMPLETED_WRITE_ACTIONS)
        return tuple(one for one in pending if not self._is_clustering(one))

    def compaction(self, instant: Instant) -> CompactionPlan:
        """The plan of a pending compaction or log compaction."""
        key = instant.requested, instant.action
        if key not in self._compactions:
            data = load_requested(self._storage, self.timeline.profile, instant)
            path = instant_path(self.timeline.profile, replace(instant, state=State.REQUESTED))
            self._compactions[key] = parse_compaction_plan(data, path)
        return self._compactions[key]

    def clustering(self, instant: Instant) -> RequestedReplace:
        """The request of a pending clustering or replacecommit; an empty one where nothing was said."""
        key = instant.requested, instant.action
        if key not in self._requests:
            self._requests[key] = load_replace_request(self._storage, self.timeline.profile, instant)
        return self._requests[key]

    def groups(self, instant: Instant) -> tuple[GroupId, ...]:
        """The file groups that a pending instant sets aside, in the plan's order; none for one that is no plan."""
        if instant.action in COMPACTIONS:
            return self.compaction(instant).group_ids
        return self.clustering(instant).group_ids if self._is_clustering(instant) else ()

    def compactions(self) -> dict[GroupId, InstantTime]:
        """The pending compaction of each file group that has one: it has a slice at that instant."""
        return dict(self._set_aside(COMPACTION))

    def clustered(self) -> dict[GroupId, InstantTime]:
        """The pending clustering that replaces each file group of one: nothing else may change or fill it."""
        return dict(self._set_aside(CLUSTERING))

    def rewritten(self) -> frozenset[GroupId]:
        """File groups that pending log compactions and clusterings work on: a compaction leaves them alone."""
        return frozenset(self.clustered()).union(group for group, _ in self._set_aside(LOG_COMPACTION))

    def read_from(self) -> dict[GroupId, InstantTime]:
        """The oldest plan of each file group that any pending plan reads: what it reads may not be cleaned."""
        found: dict[GroupId, InstantTime] = {}
        for one in self.timeline.pending():
            for group in self.groups(one):
                found[group] = min(one.requested, found.get(group, one.requested))
        return found

    def _set_aside(self, action: str) -> Iterator[tuple[GroupId, InstantTime]]:
        for one in self.instants(action):
            for group in self.groups(one):
                yield group, one.requested

    def _is_clustering(self, instant: Instant) -> bool:
        if instant.action != REPLACE_COMMIT:
            return instant.action == CLUSTERING
        return self.clustering(instant).is_clustering
