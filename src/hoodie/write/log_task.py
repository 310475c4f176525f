"""Write what one delta commit does to a file slice as blocks of log files: rows in data blocks, then the deletes.

1. The marker exists before the log file does, as for every data file. A file is written once and never appended to.
2. Rows that a column marks as deletes become entries of the delete block with their own ordering value. Keys that a
   delete operation or a move to another partition takes away have none: they go by time.
3. Rows stand in the order of the base rows they change, so that each block can say which these are (record positions).
   A block with a row of which that is not known says nothing of positions.
4. A data block is cut at `block_bytes` of rows, a file is followed by the next version once it is past `file_bytes`.
   Memory: the rows of one file group and one encoded block.
5. Rows carry the file id in `_hoodie_file_name`, and their numbers count from 1.

No row becomes a Python object. It does not know which rows win: readers merge. Format: `docs/format/log-files.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskId
from hoodie.index import Positions
from hoodie.logs import (
    BlockKind,
    Deletes,
    HeaderKey,
    encode_avro_content,
    encode_block,
    encode_deletes,
    encode_hfile_content,
    encode_parquet_content,
    encode_positions,
)
from hoodie.metadata_writer.column_range import ColumnRange
from hoodie.metadata_writer.file_facts import encoded_ranges, log_file_facts
from hoodie.records import to_avro
from hoodie.records.deletion import is_deleted
from hoodie.spec import LogFileName, MarkerKind, RuntimeStats, path_in
from hoodie.spec.file_names import token_of_instant
from hoodie.storage import OutputFile
from hoodie.write.combine import ordering_values
from hoodie.write.file_task import MetaColumnWriter, WriteTarget
from hoodie.write.incoming import KEY, RowsRef
from hoodie.write.log_place import LogPlace
from hoodie.write.written_file import WrittenFile

Mask = npt.NDArray[np.bool_]

_TRUE: Final = "true"
_BLANKED_COLUMN: Final = "key"
"""HFile blocks give this column the key of the record when they are read: it cannot hold anything else."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How log files are written. Behaviour: `kind` of data blocks, whether blocks have record `positions`, whether
    readers know what came with version 8 (`late_headers`), how files are announced (`marker`). Performance:
    `block_bytes` of rows in one data block, `file_bytes` of a file at which the next one begins.
    """

    kind: BlockKind
    positions: bool
    late_headers: bool
    marker: MarkerKind
    block_bytes: int = 256 * 1024 * 1024
    file_bytes: int = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LogTask:
    """What goes to the log of one slice.

    `rows` are the incoming rows: first one for each entry of `update_rows`, then rows whose keys the slice does not
    have. `update_rows` are rows of the base file, `gone_rows` those of the keys in `gone` (only their key column
    counts); -1 stands for a row that is nowhere or not known. With `is_partial` the target's schema has only the
    columns that the update changes.
    """

    target: WriteTarget
    log: LogOptions
    place: LogPlace
    partition: str
    rows: RowsRef
    update_rows: Positions
    gone: RowsRef
    gone_rows: Positions
    ordering: tuple[str, ...]
    is_partial: bool = False


def append_log(task_id: TaskId, task: LogTask) -> tuple[WrittenFile, ...]:
    """The log files written for `task`, none when there was nothing to write.

    Raises:
        Invalid: an ordering value of a delete cannot be stored.
        Unavailable: storage refused (disk full, permission).
    """
    files = _LogFiles(task_id, task)
    try:
        for block in _blocks(task_id, task):
            files.write(block)
        return files.close()
    except BaseException:
        files.abort()
        raise


@dataclass(slots=True)
class _Counts:
    """What is in one log file, in records."""

    writes: int = 0
    updates: int = 0
    inserts: int = 0
    deletes: int = 0


@dataclass(frozen=True, slots=True)
class _Block:
    data: bytes
    counts: _Counts


def _blocks(task_id: TaskId, task: LogTask) -> Iterator[_Block]:
    rows = task.rows.load()
    base_rows = np.append(task.update_rows, np.full(rows.num_rows - len(task.update_rows), -1, dtype=np.int64))
    known = np.arange(rows.num_rows) < len(task.update_rows)
    deleted = is_deleted(rows, task.target.delete_marker)
    soft = deleted & known  # a delete of what is not there changes nothing
    if deleted.any():
        kept = pa.array(~deleted)
        yield from _data_blocks(task_id, task, rows.filter(kept), base_rows[~deleted], known[~deleted])
    else:
        yield from _data_blocks(task_id, task, rows, base_rows, known)
    if soft.any() or len(task.gone_rows):
        yield _delete_block(task, rows.filter(pa.array(soft)), base_rows[soft])


def _data_blocks(task_id: TaskId, task: LogTask, rows: pa.Table, base_rows: Positions, known: Mask) -> Iterator[_Block]:
    if not rows.num_rows:
        return
    kind = _kind(task)
    order = _order(task, kind, rows, base_rows)
    if order is not None:
        rows, base_rows, known = rows.take(pa.array(order)), base_rows[order], known[order]
    schema = _avro_schema(task)
    meta_columns = MetaColumnWriter(task.target, task_id, task.partition, task.place.file_id, first=1)
    step = max(1, rows.num_rows * task.log.block_bytes // max(1, rows.nbytes))
    for first in range(0, rows.num_rows, step):
        part, at = meta_columns.rows(rows.slice(first, step)), base_rows[first : first + step]
        header = _header(task, schema, None if kind is BlockKind.HFILE_DATA else at)
        if task.is_partial:
            header[HeaderKey.IS_PARTIAL] = _TRUE
        updates = int(known[first : first + step].sum())
        content = _encoded(task, kind, part, schema)
        yield _Block(encode_block(kind, header, content), _Counts(len(at), updates, len(at) - updates))


def _kind(task: LogTask) -> BlockKind:
    """The kind of the task's data blocks: HFiles only where rows carry their keys and come back as they were."""
    kind, target = task.log.kind, task.target
    fits = target.populate_meta_fields and _BLANKED_COLUMN not in target.schema.names
    return kind if fits or kind is not BlockKind.HFILE_DATA else BlockKind.AVRO_DATA


def _order(task: LogTask, kind: BlockKind, rows: pa.Table, base_rows: Positions) -> Positions | None:
    """The order in which rows are written, None for the order they have: by base row, in an HFile by key and once."""
    if kind is BlockKind.HFILE_DATA:
        keys = rows.column(KEY).combine_chunks()
        order: Positions = pc.sort_indices(keys).to_numpy().astype(np.int64)
        ordered = keys.take(pa.array(order))
        is_last = pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
        distinct: Positions = order[np.append(is_last, True)]
        return distinct
    if (base_rows[1:] >= base_rows[:-1]).all():
        return None
    by_base_row: Positions = np.argsort(base_rows, kind="stable")
    return by_base_row


def _encoded(task: LogTask, kind: BlockKind, part: pa.Table, schema: str) -> bytes:
    match kind:
        case BlockKind.PARQUET_DATA:
            return encode_parquet_content(part, schema, task.target.options)
        case BlockKind.HFILE_DATA:
            return encode_hfile_content(part, schema, KEY)
        case _:
            return encode_avro_content(part, schema)


def _delete_block(task: LogTask, soft: pa.Table, soft_rows: Positions) -> _Block:
    hard = task.gone.load() if len(task.gone_rows) else task.gone.schema.empty_table()
    at = np.concatenate([soft_rows, task.gone_rows])
    keys = pa.chunked_array([*soft.column(KEY).chunks, *hard.column(KEY).chunks], pa.string()).combine_chunks()
    ordering, is_default = _orderings(task, soft, hard.num_rows)
    order = pa.array(np.argsort(at, kind="stable"))
    deletes = Deletes(
        keys=keys.take(order),
        partitions=pa.repeat(pa.scalar(task.partition, pa.string()), len(keys)),
        ordering=tuple(values.take(order) for values in ordering),
        is_default=is_default[order.to_numpy()],
    )
    content = encode_deletes(deletes, several_fields=task.log.late_headers)
    header = _header(task, _avro_schema(task), np.sort(at))
    return _Block(encode_block(BlockKind.DELETE, header, content), _Counts(deletes=len(keys)))


def _orderings(task: LogTask, soft: pa.Table, hard: int) -> tuple[list[pa.Array], Mask]:
    """Ordering values of rows marked as deletes, then nothing for `hard` keys; and which go by time."""
    if not (task.ordering and soft.num_rows):
        return [], np.ones(soft.num_rows + hard, dtype=np.bool_)
    columns = []
    missing = np.ones(soft.num_rows, dtype=np.bool_)
    for values in ordering_values(soft, task.ordering):
        flat = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if pa.types.is_dictionary(flat.type):
            flat = flat.dictionary_decode()
        flat = _compared(flat)
        missing &= flat.is_null().to_numpy(zero_copy_only=False)
        columns.append(pa.concat_arrays([flat, pa.nulls(hard, flat.type)]))
    return columns, np.append(missing, np.ones(hard, dtype=np.bool_))


def _compared(values: pa.Array) -> pa.Array:
    """Ordering values as what Hudi compares them with when it merges: rows have timestamps as longs and dates as ints.

    Hudi itself writes timestamps so. Its readers fail on dates that are stored as such.
    """
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    return values.cast(pa.int32()) if pa.types.is_date32(values.type) else values


def _avro_schema(task: LogTask) -> str:
    return to_avro(task.target.file_schema, task.target.table_name)


def _header(task: LogTask, schema: str, base_rows: Positions | None) -> dict[HeaderKey, str]:
    """What a block says of itself; `base_rows` are sorted, None where the kind of block has no positions."""
    header = {HeaderKey.INSTANT_TIME: task.target.instant, HeaderKey.SCHEMA: schema}
    base = task.place.base_instant
    if base is None or base_rows is None or not (task.log.positions and task.log.late_headers):
        return header
    if _are_positions(base_rows):
        header[HeaderKey.RECORD_POSITIONS] = encode_positions(base_rows)
        header[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] = base
    return header


def _are_positions(base_rows: Positions) -> bool:
    """Whether sorted rows are known and each is there once."""
    return bool(base_rows[0] >= 0 and (base_rows[1:] > base_rows[:-1]).all())


@dataclass(slots=True)
class _LogFiles:
    """The log files of one task: one, or several where the size limit ends one."""

    task_id: TaskId
    task: LogTask
    _done: list[WrittenFile] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)
    _file: OutputFile | None = None
    _counts: _Counts = field(default_factory=_Counts)
    _ranges: list[dict[str, ColumnRange]] = field(default_factory=list)
    _started: float = 0.0

    def write(self, block: _Block) -> None:
        if self._file is not None and self._file.tell() > self.task.log.file_bytes:
            self._end()
        if self._file is None:
            self._file = self._begin()
        self._file.write(block.data)
        columns = self.task.target.needs.columns
        if columns:
            self._ranges += encoded_ranges(block.data, self._names[-1], columns)
        self._counts.writes += block.counts.writes
        self._counts.updates += block.counts.updates
        self._counts.inserts += block.counts.inserts
        self._counts.deletes += block.counts.deletes

    def close(self) -> tuple[WrittenFile, ...]:
        if self._file is not None:
            self._end()
        return tuple(self._done)

    def abort(self) -> None:
        if self._file is not None:
            self._file.abort()

    def _begin(self) -> OutputFile:
        target, place = self.task.target, self.task.place
        self._started = target.env.monotonic()
        self._counts, self._ranges = _Counts(), []
        version = place.version + len(self._names)
        self._names.append(LogFileName(place.file_id, place.instant, version, self._token).text)
        path = path_in(self.task.partition, self._names[-1])
        target.markers.create(path, self.task.log.marker)
        return target.storage.open_output(path)

    @property
    def _token(self) -> str:
        """The write token of a new log file. Where the instant in its name is another write's (version 6), the token
        has our own: two writers that do not know of each other must not take the same name.
        """
        task_id, instant = self.task_id, self.task.target.instant
        if self.task.place.instant == instant:
            return task_id.token
        return token_of_instant(task_id.partition, instant, task_id.attempt)

    def _end(self) -> None:
        assert self._file is not None
        size = self._file.tell()
        self._file.close()
        self._file = None
        place, counts = self.task.place, self._counts
        took = int((self.task.target.env.monotonic() - self._started) * 1000)
        stat = place.stat(self.task.partition, self._names, size)._replace(
            num_writes=counts.writes,
            num_deletes=counts.deletes,
            num_update_writes=counts.updates,
            num_inserts=counts.inserts,
            runtime=RuntimeStats(total_upsert_time_ms=took),
        )
        needs = self.task.target.needs
        self._done.append(WrittenFile(stat, log_file_facts(needs, self._ranges) if needs else None))
