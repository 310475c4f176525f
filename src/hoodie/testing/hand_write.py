"""A write put together by hand, step by step, by the real transaction: for tests that stop between two steps.

Its files are copies of a base file of the table, so their rows are those of another file: rows are not what is tested.
"""

from __future__ import annotations

from collections.abc import Sequence

from hoodie.config import Config
from hoodie.spec import BaseFileName, Instant, MarkerKind, WriteStat, keys, new_file_id, path_in
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.timeline import load_commit_metadata, markers_of, new_instant_time
from hoodie.transaction import ConflictRule, HeldThroughout, Locking, NobodyElse, Outcome, Participant, Transaction


class HandWrite:
    """One write of the table. Without a `locking` its lock is not looked after."""

    def __init__(self, handle: TableHandle, locking: Locking | None = None, config: Config | None = None) -> None:
        self.handle = handle
        self.planned_on = timeline_of(handle)
        self.inflight: Instant | None = None
        self.stats: list[WriteStat] = []
        newest = self.planned_on.completed_writes()[-1]
        self._said = load_commit_metadata(handle.storage, handle.profile, newest)
        instant = new_instant_time(handle.env, handle.config.timezone, self.planned_on.last_time())
        self.transaction = Transaction(handle, instant, locking or HeldThroughout(handle), config or Config())

    @property
    def outcome(self) -> Outcome:
        """What was written so far."""
        schema = {keys.SCHEMA_EXTRA: self._said.extra_metadata[keys.SCHEMA_EXTRA]}
        return Outcome("UPSERT", tuple(self.stats), schema)

    def begin(self) -> None:
        self.inflight = self.transaction.begin(self.handle.config.write_action)

    def write_file(self, partition: str, *, loses: bool = False) -> str:
        """The path of a new base file, with its marker; `loses`: the statistics do not have it."""
        instant, storage = self.transaction.instant, self.handle.storage
        (source, *_) = (stat.path for _, stat in self._said.write_stats() if stat.path)
        data = storage.read(source or "")
        name = BaseFileName(new_file_id(self.handle.env.uuid(), len(self.stats)), "0-0-0", instant)
        path = path_in(partition, name.text)
        markers_of(storage, instant).create(path, MarkerKind.CREATE)
        storage.put(path, data)
        size = len(data)
        stat = WriteStat(
            file_id=name.file_id,
            path=path,
            prev_commit="null",
            num_writes=1,
            num_inserts=1,
            partition_path=partition,
            total_write_bytes=size,
            file_size_bytes=size,
        )
        if not loses:
            self.stats.append(stat)
        return path

    def commit(self, participants: Sequence[Participant] = (), rule: ConflictRule | None = None) -> Instant:
        partitions = {"p"}
        return self.transaction.commit(self.outcome, self.planned_on, partitions, participants, rule or NobodyElse())
