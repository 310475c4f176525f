"""What a rewrite of a base file changed, as a change-data file beside it (change data capture).

1. Of writes only rewrites log changes: of a new base file every row is new, of a replaced group every row is gone, and
   a log file's changes are what merging it does. Readers know that. Compactions log what they merge, as in Hudi, for
   readers that want the changes of many log files at once (Flink's).
2. One file for each base file, one block for each `BLOCK_ROWS` changes. A write that changed nothing in the file, since
   all its rows came too late, has one block without rows: readers take a rewrite without change file for damage. A
   compaction that changed nothing has no file. It is announced by a marker like the base file, so that a rollback takes
   both.
3. An updated row is one change, with the row before and the row after as the table's mode asks for them.

Memory: the changes of one file group that have not filled a block. Format: `docs/format/log-files.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.logs import BlockKind, HeaderKey, encode_avro_content, encode_block
from hoodie.records import to_avro
from hoodie.spec import LogFileName, MarkerKind, path_in
from hoodie.spec.change_schema import DATA_BEFORE, DATA_BEFORE_AFTER, OP_KEY_ONLY, change_schema, parse_logging_mode
from hoodie.state.handle import TableHandle
from hoodie.storage import OutputFile, Storage
from hoodie.timeline import Markers
from hoodie.write.incoming import KEY

BLOCK_ROWS = 131_072
SUFFIX = ".cdc"


@dataclass(frozen=True, slots=True)
class ChangeLogging:
    """How a table logs changes: its `mode`, and how change files are announced."""

    mode: str
    marker: MarkerKind


def change_logging_of(handle: TableHandle) -> ChangeLogging | None:
    """How the table logs changes; None when it does not."""
    if not handle.config.cdc_enabled:
        return None
    return ChangeLogging(parse_logging_mode(handle.config.cdc_logging_mode), handle.profile.log_naming.marker)


@dataclass(slots=True)
class ChangeLog:
    """The changes of one base file on their way into its change file. Tables given to it are in the file's schema."""

    storage: Storage
    markers: Markers
    logging: ChangeLogging
    table_name: str
    schema: pa.Schema
    partition: str
    name: LogFileName
    _pending: list[pa.Table] = field(default_factory=list)
    _rows: int = 0
    _file: OutputFile | None = None

    @property
    def path(self) -> str:
        return path_in(self.partition, self.name.text)

    def updated(self, before: pa.Table, after: pa.Table) -> None:
        """Row i of `after` took the place of row i of `before`."""
        self._add("u", after.column(KEY), before, after)

    def deleted(self, before: pa.Table) -> None:
        self._add("d", before.column(KEY), before, None)

    def inserted(self, after: pa.Table) -> None:
        self._add("i", after.column(KEY), None, after)

    def close(self, *, even_empty: bool = False) -> dict[str, int] | None:
        """The path and size in bytes of the change file; None when there were no changes and so no file. With
        `even_empty` there is always one.
        """
        if even_empty and self._file is None and not self._pending:
            keys = pa.chunked_array([], pa.string())
            self._pending.append(pa.table(dict(self._columns("u", keys, None, None))))
        self._flush()
        if self._file is None:
            return None
        size_bytes = self._file.tell()
        self._file.close()
        return {self.path: size_bytes}

    def abort(self) -> None:
        """Leave no file behind."""
        if self._file is not None:
            self._file.abort()

    def _add(self, op: str, keys: pa.ChunkedArray, before: pa.Table | None, after: pa.Table | None) -> None:
        count = len(keys)
        if not count:
            return
        self._pending.append(pa.table(dict(self._columns(op, keys, before, after))))
        self._rows += count
        if self._rows >= BLOCK_ROWS:
            self._flush()

    def _columns(
        self, op: str, keys: pa.ChunkedArray, before: pa.Table | None, after: pa.Table | None
    ) -> Iterator[tuple[str, pa.Array | pa.ChunkedArray]]:
        mode, count = self.logging.mode, len(keys)
        yield "op", pa.repeat(pa.scalar(op), count)
        if mode in (OP_KEY_ONLY, DATA_BEFORE):
            yield "record_key", keys
        else:
            yield "ts_ms", pa.repeat(pa.scalar(self.name.instant), count)
        if mode in (DATA_BEFORE, DATA_BEFORE_AFTER):
            yield "before", self._images(before, count)
        if mode == DATA_BEFORE_AFTER:
            yield "after", self._images(after, count)

    def _images(self, rows: pa.Table | None, count: int) -> pa.Array:
        kind = pa.struct(list(self.schema))
        if rows is None:
            return pa.nulls(count, kind)
        columns = [rows.column(name).combine_chunks() for name in self.schema.names]
        return pa.StructArray.from_arrays(columns, fields=list(self.schema))

    def _flush(self) -> None:
        if not self._pending:
            return
        if self._file is None:
            self.markers.create(self.path, self.logging.marker)
            self._file = self.storage.open_output(self.path)
        schema = change_schema(self.logging.mode, to_avro(self.schema, self.table_name))
        header = {HeaderKey.INSTANT_TIME: self.name.instant, HeaderKey.SCHEMA: schema}
        content = encode_avro_content(pa.concat_tables(self._pending).combine_chunks(), schema)
        self._file.write(encode_block(BlockKind.CDC_DATA, header, content))
        self._pending, self._rows = [], 0


@contextmanager
def aborted_on_failure(changes: ChangeLog | None) -> Iterator[ChangeLog | None]:
    """The change log, which leaves no file behind when the block fails."""
    try:
        yield changes
    except BaseException:
        if changes is not None:
            changes.abort()
        raise
