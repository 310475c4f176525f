"""What others have done since a write was planned, or plan to do, and the write itself as they can be in its way."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hoodie.records import from_avro
from hoodie.spec import COMMIT, COMPACTION, LOG_COMPACTION, CommitMetadata, Instant, WriteStat, keys
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage.lock_holder import LockHolder, parse_holder
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.transaction.overwrites import NO_DEED, Deed, deed_of
from hoodie.transaction.pending_commit import PendingCommit
from hoodie.view import GroupId

WRITER_EXTRA: Final = "hoodie.writer"
"""In the extra metadata of a commit: who made it (`storage.lock_holder`)."""

_COMPACTIONS: Final = frozenset({COMPACTION, LOG_COMPACTION})
_DELETES: Final = frozenset({"DELETE", "DELETE_PREPPED"})


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


def moves_since(
    handle: TableHandle, planned_on: Timeline, now: Timeline, own: Instant, actions: Collection[str] | None = None
) -> Iterator[Move]:
    """What others have completed, or planned, since, by some `actions` (None: by any). Compactions that had been
    planned are left out: the write knows of them. Reads a commit or plan each.
    """
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


def compactions_since(handle: TableHandle, planned_on: Timeline, now: Timeline) -> Iterator[Move]:
    """Compactions that had been planned, which `moves_since` leaves out, and have completed since. Reads each."""
    planned = {one.logical for one in planned_on.pending() if one.action in _COMPACTIONS}
    for one in now.completed_writes() if planned else ():
        if one.logical in planned:
            yield completed_move(one, load_commit_metadata(handle.storage, handle.profile, one))


def mine_of(pending: PendingCommit) -> Mine:
    """The write as others can be in its way."""
    outcome = pending.outcome
    changed = frozenset((stat.partition_path, stat.file_id) for stat in outcome.stats)
    replaced = frozenset((name, one) for name, ids in (outcome.replaced or {}).items() for one in ids)
    return Mine(
        groups=changed | replaced,
        only_logs=not replaced and all(stat.is_log or stat.begins_group for stat in outcome.stats),
        finds_slice_by_completion=pending.handle.profile.log_naming.finds_slice_by_completion,
        schema=schema_of(outcome.extra_metadata),
        only_log_files=not replaced and all(stat.is_log for stat in outcome.stats),
        operation=outcome.operation,
        deed=deed_of(outcome.operation, outcome.metadata),
    )


def completed_move(instant: Instant, said: CommitMetadata) -> Move:
    """What a completed write did, by its commit metadata."""
    stats = tuple(stat for _, stat in said.write_stats())
    changed = frozenset((name, stat.file_id) for name, stat in said.write_stats())
    extra: Mapping[str, str] = said.extra_metadata or {}
    operation = said.operation_type or ("COMPACT" if said.compacted and instant.action == COMMIT else "")
    owner = parse_holder(extra.get(WRITER_EXTRA, "").encode())
    groups = changed | said.replaced_file_groups()
    return Move(instant, groups, operation, owner, schema_of(extra), stats, deed_of(operation, said))


def schema_of(extra: Mapping[str, str]) -> pa.Schema | None:
    """The data columns that a commit with this extra metadata left, where it says so."""
    text = extra.get(keys.SCHEMA_EXTRA)
    return from_avro(text).remove_metadata() if text else None
