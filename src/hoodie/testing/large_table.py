"""A table of very many files, on a local disk, with names and sizes only: for what looks at these and at the timeline.

1. Data files are holes of the size their commits name: nothing can be read from them, and they take no space.
2. It has lived for a while: a bulk insert into all partitions, delta commits that wrote logs into some of them, two
   compactions, a clean, a rollback; a plan of a compaction that waits, a write that runs and one that died.
3. All comes from one seed. Times end at `now`.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hoodie.spec import (
    CLEAN,
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    ROLLBACK,
    V9,
    BaseFileName,
    CleanMetadata,
    CommitMetadata,
    CompactionOperation,
    CompactionPlan,
    Instant,
    InstantInfo,
    InstantTime,
    LogFileName,
    PartitionMetafile,
    RollbackMetadata,
    State,
    TableConfig,
    WriteStat,
    encode_clean_metadata,
    encode_compaction_plan,
    encode_partition_metafile,
    encode_rollback_metadata,
    encode_table_config,
    format_instant_time,
    keys,
    profile_of,
)
from hoodie.spec.new_table import NewTable, new_table_properties
from hoodie.storage import LocalStorage
from hoodie.transaction.heartbeat import heartbeat_path

_MIB = 1 << 20
_TOKEN = "0-1-2"
_STEP = timedelta(minutes=17)


@dataclass
class LargeTable:
    """The table `name` in `folder`, with `files` base files in `partitions` partitions, made by `make()`."""

    folder: Path
    files: int
    partitions: int
    now: datetime
    name: str = "trips"
    delta_commits: int = 24
    random: random.Random = field(default_factory=lambda: random.Random(7))

    def make(self) -> None:
        """Puts all of it on the disk."""
        self.storage = LocalStorage(str(self.folder))
        new = NewTable(
            name=self.name,
            table_type="MERGE_ON_READ",
            record_key_fields=("trip_id",),
            partition_fields=("day",),
            ordering_fields=("ts",),
            timezone="UTC",
        )
        config = TableConfig(new_table_properties(V9, new))
        self.profile = profile_of(config)
        self.storage.put(keys.PROPERTIES_FILE, encode_table_config(config, self.now))
        start = self.now - _STEP * (self.delta_commits + 10) - timedelta(minutes=1)
        self._time = start
        self.groups = [(self._partition(number % self.partitions), _file_id(number)) for number in range(self.files)]
        self.base: dict[tuple[str, str], tuple[InstantTime, int]] = {}
        self.logs: dict[tuple[str, str], list[WriteStat]] = defaultdict(list)
        for partition in {partition for partition, _ in self.groups}:
            metafile = encode_partition_metafile(PartitionMetafile(self._at(), 1), self.now)
            self.storage.put(f"{partition}/{keys.PARTITION_METAFILE_PREFIX}", metafile)
        self._bulk_insert()
        for number in range(self.delta_commits):
            self._delta_commit()
            if number in (9, 18):
                self._compaction(completes=True)
                self._clean()
            if number == 14:
                self._rollback()
        self._pending(DELTA_COMMIT, heartbeat_s=1500.0)
        self._compaction(completes=False)
        self._pending(DELTA_COMMIT, heartbeat_s=9.0)

    def _bulk_insert(self) -> None:
        at, stats = self._next(), []
        for group in self.groups:
            size = int(self.random.lognormvariate(4.1, 0.9) * _MIB) + 400_000
            stats.append(self._base_file(group, at, size, inserts=size // 90))
        self._commit(at, DELTA_COMMIT, stats, "BULK_INSERT", seconds=412)

    def _delta_commit(self) -> None:
        at = self._next()
        touched = self.random.sample(self.groups, min(len(self.groups), self.random.randrange(80, 400)))
        stats = [self._log_file(group, at) for group in touched]
        for _ in range(self.random.randrange(4)):
            group = self.random.choice(self.groups)[0], _file_id(self.random.getrandbits(48))
            self.groups.append(group)
            stats.append(self._base_file(group, at, self.random.randrange(_MIB, 20 * _MIB), inserts=5000))
        self._commit(at, DELTA_COMMIT, stats, "UPSERT", seconds=self.random.uniform(4, 21))

    def _compaction(self, *, completes: bool) -> None:
        at = self._next()
        indebted = [group for group in self.groups if self.logs[group]]
        operations = []
        stats = []
        for group in indebted:
            before, size = self.base[group]
            logs = self.logs[group]
            names = tuple(str(log.path).rpartition("/")[2] for log in logs)
            base_file = BaseFileName(group[1], _TOKEN, before).text
            operations.append(CompactionOperation(*group, before, names, base_file))
            if completes:
                merged = sum(log.file_size_bytes for log in logs)
                stat = self._base_file(group, at, size + merged // 3, updates=len(logs) * 100)
                stats.append(_with(stat, merged, len(logs)))
                self.logs[group] = []
        plan = CompactionPlan(tuple(operations))
        self._store(Instant(at, COMPACTION, State.REQUESTED), encode_compaction_plan(plan))
        if completes:
            self._store(Instant(at, COMPACTION, State.INFLIGHT), b"")
            self._completed(at, COMMIT, stats, "COMPACT", seconds=188)

    def _clean(self) -> None:
        at = self._next()
        done = CleanMetadata(at, 900, 1234, earliest=self._earliest, last_completed=self._earliest)
        for state in (State.REQUESTED, State.INFLIGHT):
            self._store(Instant(at, CLEAN, state), b"")
        self._store(Instant(at, CLEAN, State.COMPLETED, self._after(6)), encode_clean_metadata(done, "1.x"))

    def _rollback(self) -> None:
        died = self._next()
        at = self._next()
        done = RollbackMetadata(at, 700, 37, (died,), {}, (InstantInfo(died, DELTA_COMMIT),))
        for state in (State.REQUESTED, State.INFLIGHT):
            self._store(Instant(at, ROLLBACK, state), b"")
        self._store(Instant(at, ROLLBACK, State.COMPLETED, self._after(3)), encode_rollback_metadata(done))

    def _pending(self, action: str, heartbeat_s: float) -> None:
        at = self._next()
        self._store(Instant(at, action, State.REQUESTED), b"")
        self._store(Instant(at, action, State.INFLIGHT), b"")
        self.storage.put(heartbeat_path(at), b"")
        moment = (self.now - timedelta(seconds=heartbeat_s)).timestamp()
        os.utime(self.folder / heartbeat_path(at), (moment, moment))

    def _base_file(
        self, group: tuple[str, str], at: InstantTime, size: int, *, inserts: int = 0, updates: int = 0
    ) -> WriteStat:
        self.base[group] = at, size
        path = f"{group[0]}/{BaseFileName(group[1], _TOKEN, at).text}"
        self._hole(path, size)
        return _stat(group, path, size, prev_commit=at, num_inserts=inserts, num_update_writes=updates)

    def _log_file(self, group: tuple[str, str], at: InstantTime) -> WriteStat:
        size = self.random.randrange(20_000, 6 * _MIB)
        path = f"{group[0]}/{LogFileName(group[1], at, 1, _TOKEN).text}"
        self._hole(path, size)
        stat = _stat(group, path, size, prev_commit=at, num_update_writes=size // 150, log_version=1)
        self.logs[group].append(stat)
        return stat

    def _hole(self, path: str, size: int) -> None:
        with open(self.folder / path, "wb") as file:
            file.truncate(size)

    def _commit(self, at: InstantTime, action: str, stats: list[WriteStat], operation: str, seconds: float) -> None:
        self._store(Instant(at, action, State.REQUESTED), b"")
        self._store(Instant(at, action, State.INFLIGHT), b"")
        self._completed(at, action, stats, operation, seconds)
        self._earliest = at

    def _completed(
        self, at: InstantTime, action: str, stats: Iterable[WriteStat], operation: str, seconds: float
    ) -> None:
        by_partition: dict[str, list[WriteStat]] = defaultdict(list)
        for stat in stats:
            by_partition[stat.partition_path].append(stat)
        found: Mapping[str, tuple[WriteStat, ...]] = {name: tuple(many) for name, many in by_partition.items()}
        done = CommitMetadata(found, compacted=operation == "COMPACT", operation_type=operation)
        instant = Instant(at, action, State.COMPLETED, self._after(seconds))
        self._store(instant, self.profile.commit_codec.encode(done, action))

    def _store(self, instant: Instant, data: bytes) -> None:
        self.storage.put(f"{self.profile.timeline_dir}/{self.profile.instant_names.file_name(instant)}", data)

    def _next(self) -> InstantTime:
        self._time += _STEP
        return self._at()

    def _at(self) -> InstantTime:
        return format_instant_time(self._time, "UTC")

    def _after(self, seconds: float) -> InstantTime:
        return format_instant_time(self._time + timedelta(seconds=seconds), "UTC")

    def _partition(self, number: int) -> str:
        day = self.now.date() - timedelta(days=number)
        return f"day={day.isoformat()}"


def _stat(group: tuple[str, str], path: str, size: int, **more: Any) -> WriteStat:
    return WriteStat(
        file_id=group[1], path=path, partition_path=group[0], file_size_bytes=size, total_write_bytes=size, **more
    )


def _file_id(number: int) -> str:
    return f"{number:012x}-0000-4000-8000-000000000000-0"


def _with(stat: WriteStat, merged: int, files: int) -> WriteStat:
    return stat._replace(total_log_size_compacted=merged, total_log_files_compacted=files)
