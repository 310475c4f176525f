"""Small tables put together by hand, file by file: for tests of what readers make of good, odd and damaged tables.

1. Nothing is checked: a table that must be wrong can be made. Tables that should be right come from the real writer.
2. Times are short to write: `at(3)` is the third second of a day nobody cares about.
3. Rows carry the commit time they are given, so that copied rows look as after an update.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.env import SystemEnv
from hoodie.errors import Invalid
from hoodie.records import to_avro
from hoodie.spec import (
    COMMIT,
    REPLACE_COMMIT,
    BaseFileName,
    CommitMetadata,
    FormatProfile,
    Instant,
    InstantTime,
    PartitionMetafile,
    State,
    TableConfig,
    WriteStat,
    encode_container,
    encode_partition_metafile,
    encode_table_config,
    keys,
    parse_instant_time,
    profile_of,
)
from hoodie.spec.new_table import NewTable, new_table_properties
from hoodie.state.handle import TableHandle
from hoodie.storage import MemoryStorage
from hoodie.testing.env import FakeEnv
from hoodie.timeline import Timeline, load_timeline

ROWS = pa.schema([("id", pa.string()), ("part", pa.string()), ("qty", pa.int64())])
_NAMES = itertools.count()
_SAVED_AT = datetime(2026, 1, 1, tzinfo=UTC)


def at(second: int, millis: int = 0) -> InstantTime:
    """An instant time: second `second` of 2 January 2026."""
    return f"20260102{second // 3600:02d}{second // 60 % 60:02d}{second % 60:02d}{millis:03d}"


def new_name() -> str:
    """A name for a memory storage that no other test has."""
    return f"hand-{next(_NAMES)}"


@dataclass
class HandTable:
    """A table in a memory storage. `schema` is its own schema, without meta columns; `choices` go to `NewTable`."""

    profile: FormatProfile
    schema: pa.Schema = ROWS
    partition_fields: tuple[str, ...] = ("part",)
    choices: Mapping[str, Any] = field(default_factory=dict)
    storage: MemoryStorage = field(default_factory=lambda: MemoryStorage(new_name()))

    def __post_init__(self) -> None:
        new = NewTable(
            name="hand",
            record_key_fields=("id",),
            partition_fields=self.partition_fields,
            **{**_CHOICES, **self.choices},
        )
        self.config = TableConfig(new_table_properties(self.profile, new))
        self.profile = profile_of(self.config)
        self.storage.put(keys.PROPERTIES_FILE, encode_table_config(self.config, _SAVED_AT))

    @property
    def handle(self) -> TableHandle:
        return TableHandle(self.storage, self.config, self.profile, SystemEnv())

    def timeline(self) -> Timeline:
        return load_timeline(self.storage, self.profile, self.config.timezone)

    def commit(
        self,
        requested: InstantTime,
        files: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]],
        *,
        completed: InstantTime | None = None,
        replaces: Mapping[str, tuple[str, ...]] | None = None,
        operation: str = "UPSERT",
        schema: pa.Schema | None = None,
        state: State = State.COMPLETED,
        extra: Mapping[str, str] | None = None,
        stats: Mapping[str, Any] | None = None,
    ) -> None:
        """A write of base files: (partition, file id) → rows. A row may carry `_hoodie_commit_time`; else it is new.

        `completed` defaults to half a second after `requested`. `stats`: what the write stats say beside sizes.
        """
        written = schema or self.schema
        found = [
            self._base_file(requested, partition, file_id, rows, written)._replace(**(stats or {}))
            for (partition, file_id), rows in files.items()
        ]
        by_partition: dict[str, tuple[WriteStat, ...]] = {}
        for stat in found:
            partition = stat.partition_path or ""
            by_partition[partition] = (*by_partition.get(partition, ()), stat)
        metadata = CommitMetadata(
            partition_to_write_stats=by_partition,
            extra_metadata={keys.SCHEMA_EXTRA: to_avro(written, "hand"), **(extra or {})},
            operation_type=operation,
            partition_to_replace_file_ids=None if replaces is None else replaces,
        )
        action = COMMIT if replaces is None else REPLACE_COMMIT
        content = {State.COMPLETED: self.profile.commit_codec.encode(metadata, action)}
        self.instant(requested, action, state=state, completed=completed, content=content)

    def instant(
        self,
        requested: InstantTime,
        action: str,
        *,
        state: State = State.COMPLETED,
        completed: InstantTime | None = None,
        content: Mapping[State, bytes] | None = None,
    ) -> None:
        """The files of an instant in all states up to `state`; that of the last was made when it completed."""
        done = completed or f"{requested[:-3]}500"
        for reached in State:
            if reached <= state:
                one = Instant(requested, action, reached, done if reached is State.COMPLETED else None)
                path = f"{self.profile.timeline_dir}/{self.profile.instant_names.file_name(one)}"
                self._then(done).put(path, (content or {}).get(reached, b""))

    def _then(self, time: InstantTime) -> MemoryStorage:
        """The storage at a time: where names do not say when an instant completed, its file does."""
        try:
            return replace(self.storage, env=FakeEnv(parse_instant_time(time, "UTC"), tick_ms=0))
        except Invalid:
            return self.storage

    def clean(self, requested: InstantTime, earliest_retained: InstantTime, removed: Sequence[str] = ()) -> None:
        """A clean that removed files and retains what is needed from a commit on."""
        for path in removed:
            self.storage.delete(path)
        record = {
            "startCleanTime": requested,
            "timeTakenInMillis": 1,
            "totalFilesDeleted": len(removed),
            "earliestCommitToRetain": earliest_retained,
            "lastCompletedCommitTimestamp": "",
            "partitionMetadata": {},
        }
        content = {State.COMPLETED: encode_container("HoodieCleanMetadata", record, self.profile.avro_generation)}
        self.instant(requested, "clean", content=content)

    def path_of(self, requested: InstantTime, partition: str, file_id: str) -> str:
        """Where `commit` puts a base file."""
        name = BaseFileName(file_id, "0-1-2", requested).text
        return f"{partition}/{name}" if partition else name

    def put_metafile(self, requested: InstantTime, partition: str) -> None:
        """What makes a folder a partition."""
        metafile = f"{partition}/{keys.PARTITION_METAFILE_PREFIX}" if partition else keys.PARTITION_METAFILE_PREFIX
        depth = partition.count("/") + 1 if partition else 0
        self.storage.put(metafile, encode_partition_metafile(PartitionMetafile(requested, depth), _SAVED_AT))

    def _base_file(
        self,
        requested: InstantTime,
        partition: str,
        file_id: str,
        rows: Sequence[Mapping[str, Any]],
        schema: pa.Schema,
    ) -> WriteStat:
        path = self.path_of(requested, partition, file_id)
        table = pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)
        meta = {
            "_hoodie_commit_time": [row.get("_hoodie_commit_time", requested) for row in rows],
            "_hoodie_commit_seqno": [f"{requested}_0_{n}" for n in range(len(rows))],
            "_hoodie_record_key": [str(row.get("id")) for row in rows],
            "_hoodie_partition_path": [partition] * len(rows),
            "_hoodie_file_name": [path.rpartition("/")[2]] * len(rows),
        }
        for name, values in reversed(meta.items()):
            table = table.add_column(0, name, pa.array(values, pa.string()))
        if not self.config.populate_meta_fields:
            table = table.drop_columns(list(meta))
        buffer = io.BytesIO()
        pq.write_table(table, buffer, store_schema=False, row_group_size=100)
        data = buffer.getvalue()
        self.storage.put(path, data)
        self.put_metafile(requested, partition)
        return WriteStat(
            file_id=file_id,
            path=path,
            partition_path=partition,
            num_writes=table.num_rows,
            file_size_bytes=len(data),
            total_write_bytes=len(data),
        )


_CHOICES: dict[str, Any] = {"timezone": "UTC"}
