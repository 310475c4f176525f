"""Merge-on-read tables put together by hand: delta commits with log files of the blocks a test asks for.

Names of log files follow the table's version: by base instant and a number that counts up, or by the delta commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.logs import Deletes, HeaderKey, encode_avro_content, encode_block, encode_deletes, encode_parquet_content
from hoodie.records import to_avro, with_meta
from hoodie.spec import DELTA_COMMIT, BlockKind, CommitMetadata, InstantTime, LogFileName, State, WriteStat, keys
from hoodie.testing.hand_table import HandTable, at

LogWrite = Mapping[str, Any]
"""What one log file holds: `rows` (dicts), `deleted` (keys), `delete_order` (their ordering values), `columns` (only
these data columns: a partial update), `parquet` (a Parquet block), `raw` (bytes put behind the blocks)."""


@dataclass
class HandLogTable(HandTable):
    """A merge-on-read table. Slices are what the last base file and the deltas after it make."""

    choices: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.choices = {"table_type": "MERGE_ON_READ", **self.choices}
        super().__post_init__()
        self._logs: dict[tuple[str, str], list[str]] = {}
        self._bases: dict[tuple[str, str], InstantTime] = {}

    def commit(self, requested: InstantTime, files: Any, **options: Any) -> None:
        super().commit(requested, files, **options)
        for group in files:
            self._bases[group] = requested
            self._logs[group] = []

    def delta(
        self,
        requested: InstantTime,
        files: Mapping[tuple[str, str], LogWrite],
        *,
        completed: InstantTime | None = None,
        state: State = State.COMPLETED,
        operation: str = "UPSERT",
        extra: Mapping[str, str] | None = None,
    ) -> None:
        """A write of one log file to each group: (partition, file id) → what it holds."""
        by_partition: dict[str, tuple[WriteStat, ...]] = {}
        for group, write in files.items():
            stat = self._log_file(requested, group, write)
            by_partition[group[0]] = (*by_partition.get(group[0], ()), stat)
        said = {keys.SCHEMA_EXTRA: to_avro(self.schema, "hand"), **(extra or {})}
        metadata = CommitMetadata(by_partition, extra_metadata=said, operation_type=operation)
        content = {State.COMPLETED: self.profile.commit_codec.encode(metadata, DELTA_COMMIT)}
        self.instant(requested, DELTA_COMMIT, state=state, completed=completed, content=content)

    def _log_file(self, requested: InstantTime, group: tuple[str, str], write: LogWrite) -> WriteStat:
        partition, file_id = group
        known = self._logs.setdefault(group, [])
        base = self._bases.setdefault(group, requested)
        instant, version = self.profile.log_naming.instant_and_version(base, requested, range(len(known) + 1))
        name = LogFileName(file_id, instant, version, "0-1-2").text
        path = f"{partition}/{name}" if partition else name
        data = b"".join(self._blocks(requested, partition, file_id, write)) + write.get("raw", b"")
        self.storage.put(path, data)
        self.put_metafile(requested, partition)
        base_path = self.path_of(base, partition, file_id)
        stat = WriteStat(
            file_id=file_id,
            path=path,
            prev_commit=base,
            partition_path=partition,
            num_writes=len(write.get("rows", ())),
            num_deletes=len(write.get("deleted", ())),
            file_size_bytes=len(data),
            log_version=len(known) + 1,
            log_offset=0,
            base_file=base_path.rpartition("/")[2] if base != requested else "",
            log_files=(*known, name),
        )
        known.append(name)
        return stat

    def _blocks(self, requested: InstantTime, partition: str, file_id: str, write: LogWrite) -> Sequence[bytes]:
        blocks = []
        columns = write.get("columns")
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        if self.config.populate_meta_fields:
            schema = with_meta(schema)
        avro = to_avro(schema, "hand")
        header = {HeaderKey.INSTANT_TIME: requested, HeaderKey.SCHEMA: avro}
        if columns is not None:
            header[HeaderKey.IS_PARTIAL] = "true"
        rows = [self._row(requested, partition, file_id, row, at) for at, row in enumerate(write.get("rows", ()))]
        if rows:
            table = pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema)
            if write.get("parquet"):
                blocks.append(encode_block(BlockKind.PARQUET_DATA, header, encode_parquet_content(table, avro)))
            else:
                blocks.append(encode_block(BlockKind.AVRO_DATA, header, encode_avro_content(table, avro)))
        deleted = list(write.get("deleted", ()))
        if deleted:
            order = write.get("delete_order")
            ordering = () if order is None else (pa.array(order),)
            is_default = np.full(len(deleted), order is None)
            deletes = Deletes(pa.array(deleted), pa.array([partition] * len(deleted)), ordering, is_default)
            content = encode_deletes(deletes, several_fields=self.profile.capabilities.late_log_headers)
            blocks.append(encode_block(BlockKind.DELETE, header, content))
        return blocks

    def _row(
        self, requested: InstantTime, partition: str, file_id: str, row: Mapping[str, Any], number: int
    ) -> dict[str, Any]:
        meta = {
            "_hoodie_commit_time": requested,
            "_hoodie_commit_seqno": f"{requested}_0_{number + 1}",
            "_hoodie_record_key": str(row.get("id")),
            "_hoodie_partition_path": partition,
            "_hoodie_file_name": file_id,
        }
        return {**meta, **row}


__all__ = ["HandLogTable", "LogWrite", "at"]
