"""Fold the log files of one slice into one. This is what runs on a worker.

1. What is folded is the whole log of the slice so far: folding its beginning first changes nothing of what comes of it
   later. Rows that mark themselves as deletes stay rows, entries of delete blocks stay entries with their ordering.
2. Every block of the new file lists the instants it stands for, in the order in which they were merged: readers put it
   in the place of their blocks.
3. Rows keep their commit time and sequence number. (Hudi 1.2 gives them those of the log compaction.)
4. Blocks have the form (Avro or Parquet) of the log's newest data block. They carry no record positions.
5. Memory: the log's rows up to the limit, the rest on disk, and one encoded block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.engine import TaskId
from hoodie.logs import (
    BlockKind,
    Deletes,
    HeaderKey,
    LogBlock,
    blocks_to_merge,
    encode_avro_content,
    encode_block,
    encode_deletes,
    encode_parquet_content,
    read_blocks,
)
from hoodie.merge import LogPart
from hoodie.records import FILE_NAME_FIELD, to_avro
from hoodie.records.ordering import Positions
from hoodie.services.compaction.task import with_log_facts
from hoodie.services.rewrite.target import RewriteTarget
from hoodie.slices import OpenSlice, SliceRead
from hoodie.slices.slice_read import BlockChoice
from hoodie.spec import LogFileName, MarkerKind, RuntimeStats, WriteStat, path_in
from hoodie.storage import Storage
from hoodie.view import LogFile
from hoodie.write.log_place import LogPlace

_BLOCK_BYTES: Final = 64 << 20
"""Rows of one block, as Arrow holds them."""


@dataclass(frozen=True, slots=True)
class LogForm:
    """How the version of the format writes log files: the kind of their markers, and whether deletes may have values of
    several ordering fields.
    """

    marker: MarkerKind
    several_fields: bool


@dataclass(frozen=True, slots=True, eq=False)
class LogCompactTask:
    """The log of one slice to be folded, and where the new log file stands."""

    target: RewriteTarget
    part: SliceRead
    place: LogPlace
    form: LogForm


@dataclass(frozen=True, slots=True)
class CountTask:
    """A slice whose log's blocks are to be counted."""

    storage: Storage
    logs: tuple[LogFile, ...]
    blocks: BlockChoice


def count_blocks(_: TaskId, task: CountTask) -> int:
    """How many blocks of the log are merged by readers; 0 where one of them cannot be folded (partial rows)."""
    blocks = _blocks(task.storage, task.logs, task.blocks)
    return 0 if any(block.is_partial for block in blocks) else len(blocks)


def compact_log(task_id: TaskId, task: LogCompactTask) -> WriteStat:
    """The write stat of the log file that stands for the log files of the slice.

    Raises:
        Corrupt: a log file is damaged. Missing: one is gone. Unavailable: storage refused.
    """
    target, part, place = task.target, task.part, task.place
    started = target.env.monotonic()
    name = LogFileName(place.file_id, place.instant, place.version, target.token(task_id)).text
    path = path_in(part.partition, name)
    target.markers.create(path, task.form.marker)
    rows = deletes = 0
    with target.slices(part, None).opened(part) as merge, target.storage.open_output(path) as file:
        scanned = target.env.monotonic()
        for block, its_rows, its_deletes in _encoded(task, merge, _form_of(task)):
            file.write(block)
            rows += its_rows
            deletes += its_deletes
        size = file.tell()
    stat = place.stat(part.partition, (name,), size)._replace(
        num_writes=rows,
        num_deletes=deletes,
        num_update_writes=rows,
        runtime=RuntimeStats(int((scanned - started) * 1000), int((target.env.monotonic() - started) * 1000)),
    )
    return with_log_facts(stat, merge)


def _blocks(storage: Storage, logs: Sequence[LogFile], choice: BlockChoice) -> tuple[LogBlock, ...]:
    found = (block for log in logs for block in read_blocks(storage, log.path, log.size_bytes))
    return blocks_to_merge(found, counts=choice.counts, until=choice.until)


def _form_of(task: LogCompactTask) -> BlockKind:
    """The form of the newest data block; Avro where there is none, or where it is an HFile."""
    blocks = _blocks(task.target.storage, task.part.logs, task.target.merge.blocks)
    kinds = [block.kind for block in blocks if block.kind.is_data]
    return BlockKind.PARQUET_DATA if kinds and kinds[-1] is BlockKind.PARQUET_DATA else BlockKind.AVRO_DATA


def _encoded(task: LogCompactTask, merge: OpenSlice, kind: BlockKind) -> Iterator[tuple[bytes, int, int]]:
    """Blocks of the new file, each with its number of rows and of deletes."""
    schema = merge.slices.schema
    avro = to_avro(schema, task.target.table_name)
    header = {
        HeaderKey.INSTANT_TIME: task.target.instant,
        HeaderKey.SCHEMA: avro,
        HeaderKey.COMPACTED_BLOCK_TIMES: ",".join(merge.counts.instants),
    }
    nothing = True
    for part in merge.log.parts():
        versions = part.versions
        for rows in _row_batches(part, schema, task.place.file_id):
            content = (encode_parquet_content if kind is BlockKind.PARQUET_DATA else encode_avro_content)(rows, avro)
            yield encode_block(kind, header, content), rows.num_rows, 0
            nothing = False
        listed = np.flatnonzero(versions.is_listed)
        if len(listed):
            yield _delete_block(task, part, listed, header), 0, len(listed)
            nothing = False
    if nothing:  # the file has to say that it stands for the others
        content = encode_deletes(_no_deletes(), several_fields=task.form.several_fields)
        yield encode_block(BlockKind.DELETE, header, content), 0, 0


def _row_batches(part: LogPart, schema: pa.Schema, file_id: str) -> Iterator[pa.Table]:
    kept = np.flatnonzero(~part.versions.is_listed)
    if not len(kept):
        return
    rows = pa.Table.from_batches([part.rows]).select(schema.names)
    at = schema.get_field_index(FILE_NAME_FIELD)
    if at >= 0:
        rows = rows.set_column(at, schema.field(at), pa.repeat(pa.scalar(file_id, pa.string()), rows.num_rows))
    step = max(1, rows.num_rows * _BLOCK_BYTES // max(1, rows.nbytes))
    for first in range(0, len(kept), step):
        yield rows.take(pa.array(kept[first : first + step]))


def _delete_block(task: LogCompactTask, part: LogPart, listed: Positions, header: Mapping[HeaderKey, str]) -> bytes:
    chosen = pa.array(listed)
    versions = part.versions
    deletes = Deletes(
        keys=versions.keys.take(chosen),
        partitions=pa.repeat(pa.scalar(task.part.partition, pa.string()), len(listed)),
        ordering=tuple(values.take(chosen) for values in versions.ordering),
        is_default=versions.goes_by_time[listed],
    )
    content = encode_deletes(deletes, several_fields=task.form.several_fields)
    return encode_block(BlockKind.DELETE, header, content)


def _no_deletes() -> Deletes:
    none = pa.array([], pa.string())
    return Deletes(none, none, (), np.zeros(0, dtype=np.bool_))
