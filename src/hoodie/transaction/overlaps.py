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

`moves_since` and the keys are read from storage; what is decided is decided on values, by `conflict_of`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Conflict, Missing
from hoodie.logs import BlockKind, read_block_rows, read_blocks, read_deletes
from hoodie.records import KEY_FIELD, from_avro, read_columns
from hoodie.spec import (
    COMMIT,
    COMPACTION,
    LOG_COMPACTION,
    NULL_COMMIT,
    CommitMetadata,
    Instant,
    InstantTime,
    WriteStat,
    keys,
)
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.state.table_schema import NEVER_CHANGES_SCHEMA
from hoodie.storage.lock_holder import LockHolder, parse_holder, this_holder
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.transaction.overwrites import NO_DEED, Deed, deed_of, without_order
from hoodie.transaction.pending_commit import PendingCommit
from hoodie.view import GroupId

WRITER_EXTRA: Final = "hoodie.writer"
"""In the extra metadata of a commit: who made it (`storage.lock_holder`)."""

_COMPACTIONS: Final = frozenset({COMPACTION, LOG_COMPACTION})
_DELETES: Final = frozenset({"DELETE", "DELETE_PREPPED"})
_BUCKET_DIGITS: Final = 8
_KEYS_TOLD: Final = 10
_COMMIT_TIME: Final = "_hoodie_commit_time"


class WriteConflict(Conflict):
    """What another writer did meanwhile does not go with this write, which may be repeated. Facts: `instant`, `other`,
    `operation` and `other_operation`, `writer` (this one, a `LockHolder`) and `owner` (the other, where it said it),
    `groups`, `partitions` and `keys`, up to ten of this write's own.
    """


@dataclass(frozen=True, slots=True)
class Move:
    """What another has done since, or plans to do. `groups`: the file groups it changed or replaced. `schema`: the data
    columns it left, where it said so. `stats` of the files it wrote. `deed`: what it is beside overwrites.
    """

    instant: Instant
    groups: frozenset[GroupId]
    operation: str = ""
    owner: LockHolder | None = None
    schema: pa.Schema | None = None
    stats: tuple[WriteStat, ...] = ()
    deed: Deed = NO_DEED

    @property
    def is_compaction(self) -> bool:
        """Whether it changes no rows of its groups, but where they lie."""
        return self.instant.action in _COMPACTIONS or (self.operation in ("COMPACT", "LOG_COMPACT"))

    @property
    def only_log_files(self) -> bool:
        """Whether it has completed, and made log files alone."""
        return bool(self.stats) and all(stat.is_log for stat in self.stats) and not self.is_compaction

    @property
    def is_open_plan(self) -> bool:
        """Whether it is a plan that nobody has carried out yet, and no compaction."""
        return not self.instant.is_completed and not self.is_compaction

    @property
    def merges_base_files(self) -> bool:
        """Whether it is a compaction that leaves base files, with what log files said."""
        return self.instant.action == COMPACTION or self.operation == "COMPACT"


@dataclass(frozen=True, slots=True)
class Mine:
    """The write itself, as far as others can be in its way. `only_logs`: it has appended, and begun file groups, and
    changed no base file. `only_log_files`: it has made no base file either.
    """

    groups: frozenset[GroupId]
    only_logs: bool
    finds_slice_by_completion: bool
    schema: pa.Schema | None = None
    only_log_files: bool = False
    operation: str = ""
    deed: Deed = NO_DEED

    def bears(self, other: Move) -> bool:
        """Whether a compaction that was planned meanwhile goes with this write."""
        return other.is_compaction and self.only_logs and self.finds_slice_by_completion

    def mixes_with(self, other: Move) -> bool:
        """Whether both have only added log files, whose rows say by their ordering values which of them win. Keys that
        a delete names go by time, so a delete does not mix.
        """
        both = self.only_log_files and other.only_log_files
        return both and _DELETES.isdisjoint((self.operation, other.operation))


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
        if not moves:
            return
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
        _ensure_nothing_missed(pending, moves)
        if self.one_schema:
            ensure_same_schema(pending, mine, moves)

    def _conflict(self, pending: PendingCommit, other: Move, both: Collection[GroupId]) -> WriteConflict:
        ours = {(one.partition_path, one.file_id): one for one in pending.outcome.stats}
        found: list[str] = []
        for group in sorted(both):
            stat = ours.get(group)
            if stat is not None and len(found) < _KEYS_TOLD:
                found += _own_keys(pending.handle, stat, pending.inflight.requested, _KEYS_TOLD - len(found))
        return write_conflict(pending, other, both, found)

    def _ensure_no_key_twice(self, pending: PendingCommit, other: Move, asked: Collection[GroupId]) -> None:
        """`asked`: file groups of others who looked keys up. Rows of a plain insert lie elsewhere."""
        if not pending.handle.config.populate_meta_fields:
            return
        ours = [one for one in pending.outcome.stats if _has_new_keys(one)]
        theirs = [one for one in other.stats if _has_new_keys(one) and (one.partition_path, one.file_id) in asked]
        for one in theirs:
            beside = [own for own in ours if self.is_global or own.partition_path == one.partition_path]
            if not beside:
                continue
            try:
                known = _keys(pending.handle, one)
            except Missing as gone:  # changed again and cleaned since
                groups = [(own.partition_path, own.file_id) for own in beside]
                what = "the same keys, in a file that is cleaned by now,"
                raise write_conflict(pending, other, groups, (), what, "may have added") from gone
            for own in beside:
                added = _keys(pending.handle, own)
                twice = added.filter(pc.is_in(added, value_set=known)).unique()
                if len(twice):
                    group = (own.partition_path, own.file_id)
                    raise write_conflict(
                        pending, other, [group], twice.slice(0, _KEYS_TOLD).to_pylist(), "the same keys", "added"
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


def moves_since(
    handle: TableHandle, planned_on: Timeline, now: Timeline, own: Instant, actions: Collection[str] | None = None
) -> Iterator[Move]:
    """What others have completed, or planned, since, by some `actions` (None: by any). Reads a commit or plan each."""
    known = {(one.logical, one.is_completed) for one in planned_on.writes()}
    compactions = {one.logical for one in planned_on.pending() if one.action in _COMPACTIONS}
    plans = PendingPlans(handle.storage, now)
    for one in now.writes():
        if one.logical == own.logical or one.logical in compactions or (one.logical, one.is_completed) in known:
            continue
        if actions is not None and one.action not in actions:
            continue
        if one.is_completed:
            yield completed_move(one, load_commit_metadata(handle.storage, handle.profile, one))
        elif plans.is_plan(one):
            yield Move(one, frozenset(plans.groups(one)), one.action)


def mine_of(pending: PendingCommit) -> Mine:
    """The write as others can be in its way."""
    outcome = pending.outcome
    changed = frozenset((stat.partition_path, stat.file_id) for stat in outcome.stats)
    replaced = frozenset((name, one) for name, ids in (outcome.replaced or {}).items() for one in ids)
    return Mine(
        groups=changed | replaced,
        only_logs=not replaced and all(stat.is_log or stat.prev_commit in (None, "null") for stat in outcome.stats),
        finds_slice_by_completion=pending.handle.profile.log_naming.finds_slice_by_completion,
        schema=_schema(outcome.extra_metadata),
        only_log_files=not replaced and all(stat.is_log for stat in outcome.stats),
        operation=outcome.operation,
        deed=deed_of(outcome.operation, outcome.metadata),
    )


def ensure_same_schema(pending: PendingCommit, mine: Mine, moves: Sequence[Move]) -> None:
    """Checks that the schema this write leaves is that of everybody. A table has the schema of the commit that was
    requested last, for Hudi as well: who changes it gives way to one that began later, whatever that one says.

    Raises:
        WriteConflict: another has changed it meanwhile, or began later and has not.
    """
    writes = (one for one in moves if one.operation not in NEVER_CHANGES_SCHEMA)
    others = [one for one in writes if one.schema is not None and not one.schema.equals(mine.schema)]
    if mine.schema is None or not others:
        return
    before = _schema_before(pending)
    for one in others:
        is_newer = one.instant.is_completed and one.instant.requested > pending.inflight.requested
        if before is None or one.schema is None or not one.schema.equals(before) or is_newer:
            did = "began later and is completed" if is_newer else "changed it meanwhile"
            raise WriteConflict(
                f"The {pending.outcome.operation} {pending.inflight.requested} has another schema than "
                f"{told(one)}, which {did}",
                remedy="Nothing became visible; repeat the write. Rows that lack columns of the table need "
                "hoodie.write.set.null.for.missing.columns=true then, which fills them with nulls",
                instant=pending.inflight.requested,
                other=one.instant.requested,
                owner=one.owner,
            )


def write_conflict(  # noqa: PLR0917
    pending: PendingCommit,
    other: Move,
    groups: Iterable[GroupId],
    own_keys: Sequence[str],
    what: str = "the same file groups",
    did: str = "",
) -> WriteConflict:
    """The error that tells who has to give way to whom, and why: what the other `did`, and to `what`."""
    said = sorted(groups)
    partitions = sorted({partition for partition, _ in said})
    named = ", ".join(file_id for _, file_id in said[:3]) + (" …" if len(said) > 3 else "")
    of_keys = f"; keys of it: {', '.join(own_keys)}" if own_keys else ""
    return WriteConflict(
        f"The {pending.outcome.operation} {pending.inflight.requested} cannot be committed: {told(other)} "
        f"{did or ('changed' if other.instant.is_completed else 'plans to rewrite')} {what} meanwhile "
        f"({len(said)}: {named}, in {', '.join(repr(one) for one in partitions[:3])}{of_keys})",
        remedy="Nothing became visible; repeat the write, or let it be repeated "
        "(hoodie.write.num.retries.on.conflict.failures)",
        instant=pending.inflight.requested,
        operation=pending.outcome.operation,
        other=other.instant.requested,
        other_operation=other.operation,
        writer=this_holder(pending.outcome.operation.lower(), pending.handle.env),
        owner=other.owner,
        groups=tuple(said),
        partitions=tuple(partitions),
        keys=tuple(own_keys),
    )


def _no_order(pending: PendingCommit, mine: Mine, other: Move, partitions: Collection[str]) -> WriteConflict:
    groups = [one for one in mine.groups | other.groups if one[0] in partitions]
    did = "overwrote" if other.deed.takes_place else "wrote to"
    what = "partitions that this write wrote to" if did == "overwrote" else "partitions that this write overwrites"
    return write_conflict(pending, other, groups, (), what, did)


def _ensure_nothing_missed(pending: PendingCommit, moves: Sequence[Move]) -> None:
    """Checks that the write found every file group that others changed since, but those that began since.

    Raises:
        WriteConflict: it did not, and its look-up or its list of replaced groups lacks what is in there.
    """
    if (looked := pending.outcome.looked_at) is None:
        return
    begun = {(stat.partition_path, stat.file_id) for one in moves for stat in one.stats if _begins_group(stat)}
    for other in moves:
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


def told(other: Move) -> str:
    """The other in the middle of a message, with who made it."""
    by = "" if other.owner is None else f" by process {other.owner.process} on {other.owner.host}"
    return f"the {other.operation or other.instant.action} {other.instant.requested}{by}"


def completed_move(instant: Instant, said: CommitMetadata) -> Move:
    """What a completed write did, by its commit metadata."""
    stats = tuple(stat for _, stat in said.write_stats())
    changed = frozenset((name, stat.file_id) for name, stat in said.write_stats())
    extra: Mapping[str, str] = said.extra_metadata or {}
    operation = said.operation_type or ("COMPACT" if said.compacted and instant.action == COMMIT else "")
    owner = parse_holder(extra.get(WRITER_EXTRA, "").encode())
    groups = changed | said.replaced_file_groups()
    return Move(instant, groups, operation, owner, _schema(extra), stats, deed_of(operation, said))


def _schema(extra: Mapping[str, str]) -> pa.Schema | None:
    text = extra.get(keys.SCHEMA_EXTRA)
    return from_avro(text).remove_metadata() if text else None


def _schema_before(pending: PendingCommit) -> pa.Schema | None:
    """The schema at the newest commit that was known when the write was planned. Reads commits until one has it."""
    handle = pending.handle
    for one in sorted(pending.planned_on.completed_writes(), key=lambda i: i.completed or i.requested, reverse=True):
        said = load_commit_metadata(handle.storage, handle.profile, one)
        schema = _schema(said.extra_metadata or {})
        if schema is not None and said.operation_type not in NEVER_CHANGES_SCHEMA:
            return schema
    return None


def bucket_of(group: GroupId) -> GroupId:
    """What file groups of one bucket have in common."""
    partition, file_id = group
    return partition, file_id[:_BUCKET_DIGITS]


def _begins_group(stat: WriteStat) -> bool:
    """Whether it is the first file of its group. A log file of a group without a base file may be."""
    return not stat.base_file if stat.is_log else stat.prev_commit in (None, NULL_COMMIT)


def _has_new_keys(stat: WriteStat) -> bool:
    return stat.num_inserts > 0 and not stat.is_log and stat.path is not None


def _keys(handle: TableHandle, stat: WriteStat) -> pa.ChunkedArray:
    assert stat.path is not None
    return read_columns(handle.storage, stat.path, [KEY_FIELD]).column(0)


def _own_keys(handle: TableHandle, stat: WriteStat, instant: InstantTime, at_most: int) -> list[str]:
    """Some keys that the write has changed in one of its files."""
    if stat.path is None or not handle.config.populate_meta_fields:
        return []
    if stat.is_log:
        return _logged_keys(handle, stat.path, stat.file_size_bytes, at_most)
    rows = read_columns(handle.storage, stat.path, [KEY_FIELD, _COMMIT_TIME])
    changed = rows.filter(pc.equal(rows.column(1), instant)).column(0)
    return [str(key) for key in changed.slice(0, at_most).to_pylist()]


def _logged_keys(handle: TableHandle, path: str, size_bytes: int, at_most: int) -> list[str]:
    """Some keys of rows and deletes in a log file."""
    found: list[str] = []
    for block in read_blocks(handle.storage, path, size_bytes):
        if block.kind is BlockKind.DELETE:
            said = read_deletes(handle.storage, block).keys
        elif block.kind.is_data:
            said = read_block_rows(handle.storage, block, columns=[KEY_FIELD]).column(0)
        else:
            continue
        found += [str(key) for key in said.slice(0, at_most - len(found)).to_pylist()]
        if len(found) >= at_most:
            break
    return found
