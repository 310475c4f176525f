"""Whether what other writers did meanwhile goes with a write that did not hold the lock: the rule of optimistic writes.

1. Two writes go together when they changed different file groups: each then is what it would be after the other.
   Everything that has completed since a write was planned is looked at, whatever its requested time, and every plan
   that was made since. That is at least what Hudi's `SimpleConcurrentFileWritesConflictResolutionStrategy` and, with
   `by_bucket`, its `BucketIndexConcurrentFileWritesConflictResolutionStrategy` look at.
2. Who commits last gives way. A pending write of another is nothing to it: that one looks when it commits.
3. A compaction changes no rows. One that was planned before is known to the write. One that was planned meanwhile goes
   with a write that has only appended log files, where these find their slice by completion.
4. Two writes that looked keys up and add the same new key to different file groups overlap in no group, and would
   leave the key twice. Where both wrote base files, their keys are compared, whatever the operations are called. Keys
   of a plain insert are compared only where somebody who looks keys up has changed its rows since. Hudi does not.
5. A schema that both changed, differently, is a conflict; so is one that another changed meanwhile and rows of the old
   one: written again, they get the new one.
6. Rows of another beside an overwrite that did not see them must be what some order leaves (`overwrites`).
7. A write that looked keys up, or replaced what it found, has to have found every file group that others changed since
   where it looked (`looked_at`), but those that began meanwhile.
8. An insert that leaves known keys out, and a write that deletes, must be what some order leaves (`unseen_deletes`).

`moves_since` and the keys are read from storage; what is decided is decided on values, by `conflict_of`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow.compute as pc

from hoodie.errors import Missing
from hoodie.spec import Instant
from hoodie.state.handle import timeline_of
from hoodie.timeline import Timeline
from hoodie.transaction.moves import Mine, Move, compactions_since, mine_of, moves_since
from hoodie.transaction.one_schema import ensure_one_schema
from hoodie.transaction.overwrites import without_order
from hoodie.transaction.pending_commit import PendingCommit
from hoodie.transaction.unseen_deletes import ensure_deletes_seen
from hoodie.transaction.write_conflict import KEYS_TOLD, WriteConflict, write_conflict
from hoodie.transaction.written_keys import keys_in, some_keys
from hoodie.view import GroupId

_BUCKET_DIGITS: Final = 8


@dataclass(frozen=True, slots=True)
class GroupsApart:
    """A `ConflictRule`: nobody has changed what this write changed, nor the schema, nor added the keys it added. Lists
    the timeline, and reads the commits that completed meanwhile, and keys of new files of both.

    `by_bucket`: file groups of one bucket are one. `keys_once`: a key is there once in its partition, or in the whole
    table where `is_global`; without it rows are added as they come. `bears_logs`: log files of others beside one's own
    are no conflict (non-blocking writers), but where two have given one bucket two file groups. `before_plans`: a
    clustering that was planned meanwhile gives way. `one_schema`: two that change the schema differently do not go on.
    """

    by_bucket: bool = False
    keys_once: bool = False
    is_global: bool = False
    bears_logs: bool = False
    before_plans: bool = False
    one_schema: bool = True

    def check(self, pending: PendingCommit) -> None:
        """See `ConflictRule`.

        Raises:
            WriteConflict: another writer's move does not go with this write.
        """
        handle = pending.handle
        now = timeline_of(handle) if pending.seen is None else pending.seen
        if gone := lost_ground(pending.planned_on, now, pending.inflight):
            raise _ground_lost(pending.inflight, gone)
        moves = tuple(moves_since(handle, pending.planned_on, now, pending.inflight))
        if moves:
            self._ensure_apart(pending, moves)
        _ensure_nothing_missed(pending, now, moves)

    def _ensure_apart(self, pending: PendingCommit, moves: Sequence[Move]) -> None:
        mine = mine_of(pending)
        asked = frozenset(group for one in moves if one.deed.looks_up for group in one.groups)
        for other in moves:
            if self.before_plans and other.is_open_plan:
                continue
            both = conflict_of(mine, other, by_bucket=self.by_bucket)
            if self.bears_logs and mine.mixes_with(other):
                both -= other.groups
            if both:
                raise self._conflict(pending, other, both)
            if partitions := without_order(mine.deed, other.deed):
                raise _no_order(pending, mine, other, partitions)
            if self.keys_once:
                self._ensure_no_key_twice(pending, other, asked)
                ensure_deletes_seen(pending, other, is_global=self.is_global)
        if self.one_schema:
            ensure_one_schema(pending, mine, moves)

    def _conflict(self, pending: PendingCommit, other: Move, both: Collection[GroupId]) -> WriteConflict:
        ours = {(one.partition_path, one.file_id): one for one in pending.outcome.stats}
        found: list[str] = []
        for group in sorted(both):
            stat = ours.get(group)
            if stat is not None and len(found) < KEYS_TOLD:
                found += some_keys(pending.handle, stat, pending.inflight.requested, KEYS_TOLD - len(found))
        return write_conflict(pending, other, both, found)

    def _ensure_no_key_twice(self, pending: PendingCommit, other: Move, asked: Collection[GroupId]) -> None:
        """`asked`: file groups of others who looked keys up. Rows of a plain insert lie elsewhere."""
        if not pending.handle.config.populate_meta_fields:
            return
        ours = [one for one in pending.outcome.stats if one.adds_to_base]
        theirs = [one for one in other.stats if one.adds_to_base and (one.partition_path, one.file_id) in asked]
        for one in theirs:
            beside = [own for own in ours if self.is_global or own.partition_path == one.partition_path]
            if not beside:
                continue
            try:
                known = keys_in(pending.handle, one)
            except Missing as gone:  # changed again and cleaned since
                groups = [(own.partition_path, own.file_id) for own in beside]
                what = "the same keys, in a file that is cleaned by now,"
                raise write_conflict(pending, other, groups, (), what, "may have added") from gone
            for own in beside:
                added = keys_in(pending.handle, own)
                twice = added.filter(pc.is_in(added, value_set=known)).unique()
                if len(twice):
                    group = (own.partition_path, own.file_id)
                    raise write_conflict(
                        pending, other, [group], twice.slice(0, KEYS_TOLD).to_pylist(), "the same keys", "added"
                    )


def conflict_of(mine: Mine, other: Move, *, by_bucket: bool = False) -> frozenset[GroupId]:
    """The file groups of this write that stand against the other move; none where the two go together. Pure."""
    if mine.bears(other):
        return frozenset()
    if not by_bucket:
        return mine.groups & other.groups
    theirs = {bucket_of(group) for group in other.groups}
    return frozenset(group for group in mine.groups if bucket_of(group) in theirs)


def lost_ground(planned_on: Timeline, now: Timeline, own: Instant) -> Instant | None:
    """A write this one was planned on, or beside, of which nobody can tell any more what it did: one that was
    completed and is undone, or was pending and is archived. Pure.
    """
    for one in planned_on.writes():
        if one.logical == own.logical or now.find(one.requested, one.comparable_action) is not None:
            continue
        if one.is_completed != now.is_before_start(one.requested):
            return one
    return None


def _no_order(pending: PendingCommit, mine: Mine, other: Move, partitions: Collection[str]) -> WriteConflict:
    groups = [one for one in mine.groups | other.groups if one[0] in partitions]
    did = "overwrote" if other.deed.takes_place else "wrote to"
    what = "partitions that this write wrote to" if did == "overwrote" else "partitions that this write overwrites"
    return write_conflict(pending, other, groups, (), what, did)


def _ensure_nothing_missed(pending: PendingCommit, now: Timeline, moves: Sequence[Move]) -> None:
    """Checks that the write found every file group that others changed or compacted since, but those that began since.
    What a compaction has read may be cleaned, whenever it was planned.

    Raises:
        WriteConflict: it did not, and its look-up or its list of replaced groups lacks what is in there.
    """
    if (looked := pending.outcome.looked_at) is None:
        return
    begins = (one for one in moves if not one.is_compaction)
    begun = {(stat.partition_path, stat.file_id) for one in begins for stat in one.stats if stat.begins_group}
    for other in (*moves, *compactions_since(pending.handle, pending.planned_on, now)):
        if missed := looked.missed(other.groups - begun):
            what = "file groups that this write did not find where it looked"
            raise write_conflict(pending, other, missed, (), what)


def _ground_lost(own: Instant, gone: Instant) -> WriteConflict:
    return WriteConflict(
        f"The {own.action} {own.requested} was planned on {gone.action} {gone.requested}, which was undone or archived "
        "meanwhile",
        remedy="Nothing became visible; read the table again and repeat the write",
        instant=own.requested,
        other=gone.requested,
    )


def bucket_of(group: GroupId) -> GroupId:
    """What file groups of one bucket have in common."""
    partition, file_id = group
    return partition, file_id[:_BUCKET_DIGITS]
