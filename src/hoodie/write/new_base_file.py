"""A base file on its way into the table, whoever makes its rows: inserts, rewrites, compactions, resizes.

1. Its marker exists before the file does: rollback finds every file by its marker.
2. Its write stat says what is so of every base file. Who changes rows adds how many.

It does not know what rows mean, nor commits.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import pyarrow as pa

from hoodie.env import Env
from hoodie.records import BaseFileOptions, BaseFileStats, BaseFileWriter, BaseFooter
from hoodie.records.joined_keys import KeyFooter
from hoodie.records.parquet_layout import ParquetLayout
from hoodie.records.patched_file import PatchedFileWriter
from hoodie.records.row_group_copy import RowGroupCopy
from hoodie.spec import (
    NULL_COMMIT,
    BaseFileName,
    InstantTime,
    MarkerKind,
    RuntimeStats,
    WriteStat,
    path_in,
)
from hoodie.storage import Storage
from hoodie.timeline import Markers
from hoodie.view import BaseFile


@dataclass(frozen=True, slots=True)
class FileTarget:
    """What all files of one action share: where they go, in whose name, how base files are written, and who is told
    of a file before there is one.
    """

    storage: Storage
    env: Env
    instant: InstantTime
    table_name: str
    options: BaseFileOptions
    markers: Markers


class NewBaseFile:
    """The first base file of a file group, or the one that follows `old`. Making it announces the file."""

    def __init__(
        self, target: FileTarget, partition: str, file_id: str, token: str, old: BaseFile | None = None
    ) -> None:
        self._target = target
        self._partition = partition
        self._file_id = file_id
        self._old = old
        self._started = target.env.monotonic()
        self.name = BaseFileName(file_id, token, target.instant).text
        self._path = path_in(partition, self.name)
        kind = MarkerKind.CREATE if old is None else MarkerKind.MERGE
        target.markers.create(self._path, kind)

    @property
    def duration_ms(self) -> int:
        """How long it has taken until now."""
        return int((self._target.env.monotonic() - self._started) * 1000)

    def open(
        self, schema: pa.Schema, inherit: BaseFooter | None = None, *, keys_aside: Executor | None = None
    ) -> BaseFileWriter:
        """The writer of the file, for rows of `schema`; `inherit` and `keys_aside` as it has them."""
        target = self._target
        return BaseFileWriter(
            target.storage,
            self._path,
            schema,
            target.options,
            table_name=target.table_name,
            inherit=inherit,
            keys_aside=keys_aside,
        )

    def copied(self, like: ParquetLayout, keys: KeyFooter, *, named: bool) -> RowGroupCopy:
        """The writer of the file, for row groups of other files; `named`: rows say which file they lie in."""
        return RowGroupCopy(self._target.storage, self._path, like, self.name if named else None, lambda: keys)

    def patched(
        self, schema: pa.Schema, like: ParquetLayout, inherit: BaseFooter | None, *, named: bool
    ) -> PatchedFileWriter:
        """The writer of the file, for rows of `schema` and for row groups of a file; its footer is `like` another's."""
        target = self._target
        name = self.name if named else None
        return PatchedFileWriter(
            target.storage,
            self._path,
            schema,
            target.options,
            like,
            name,
            table_name=target.table_name,
            inherit=inherit,
        )

    def stat(self, written: BaseFileStats) -> WriteStat:
        """What was written. Without an old file all rows are inserts; with one nothing is said of how rows changed."""
        old, took = self._old, self.duration_ms
        return WriteStat(
            file_id=self._file_id,
            path=self._path,
            prev_commit=NULL_COMMIT if old is None else old.name.instant,
            prev_base_file=None if old is None else old.name.text,
            num_writes=written.rows,
            num_inserts=written.rows if old is None else 0,
            total_write_bytes=written.size_bytes,
            file_size_bytes=written.size_bytes,
            partition_path=self._partition,
            runtime=RuntimeStats(total_create_time_ms=took) if old is None else RuntimeStats(total_upsert_time_ms=took),
        )
