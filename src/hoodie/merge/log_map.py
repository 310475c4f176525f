"""The log of a file slice as a map from key to its merged version, in memory or partly on disk.

1. `collect_log` takes the entries in merge order and folds them. What it holds at a time is bounded: when the versions
   exceed the limit they are folded, and if half the limit is still used they go to disk (`spill.py`).
2. A map has *parts*: one in memory, or several that are loaded and folded one after the other. Keys of different parts
   are different, so each part meets the base rows on its own.
3. The limit counts bytes of rows as Arrow holds them. While versions are folded both they and the winners are there, so
   the peak is about twice the limit.

Use it as a context manager: files on disk go when it is closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.merge.fold import Folded, fold
from hoodie.merge.rules import MergeRules
from hoodie.merge.spill import Spill, buckets
from hoodie.merge.versions import BY_COLUMNS, DELETE, ColumnSet, Layout, LogEntry, LogRows, Versions
from hoodie.records import KEY_FIELD
from hoodie.records.ordering import Mask

DEFAULT_LIMIT_BYTES: Final = 1024 * 1024 * 1024
MAX_LIMIT_BYTES: Final = 2 * 1024 * 1024 * 1024 - 1
"""Text columns have 32-bit offsets: what is folded together must stay below that."""


@dataclass(frozen=True, eq=False)
class LogPart:
    """Merged versions, one for each key, in order of first appearance. `group`: the buckets whose keys it has, None for
    all keys.
    """

    folded: Folded
    group: tuple[int, ...] | None = None

    @property
    def versions(self) -> Versions:
        return self.folded.versions

    @property
    def keys(self) -> pa.Array:
        return self.versions.keys

    @cached_property
    def is_deleted(self) -> Mask:
        """Per key, whether a delete has the last word in the log."""
        deleted: Mask = np.not_equal(self.versions.flags & DELETE, 0)
        return deleted

    @cached_property
    def rows(self) -> pa.RecordBatch:
        """The versions' rows; NULL but for the key where a delete block had the last word."""
        schema = self.versions.layout.schema
        columns = [values.combine_chunks() for values in self.versions.rows().columns]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def base_rows(self, base: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of `base` that this part is responsible for."""
        if self.group is None:
            return base
        mine = np.isin(buckets(base.column(self.versions.layout.key)), self.group)
        return base if mine.all() else base.filter(pa.array(mine))


class LogMap:
    """Merged versions of the keys in a log. Made by `collect_log`."""

    def __init__(self, layout: Layout, column_sets: tuple[ColumnSet, ...], held: Folded | Spill, limit: int) -> None:
        self.layout = layout
        self._column_sets = column_sets
        self._held = held
        self._limit = limit

    @property
    def is_spilled(self) -> bool:
        """Whether rows are on disk. Merging then takes one pass over the base rows for each part."""
        return isinstance(self._held, Spill)

    @property
    def ignores_base(self) -> bool:
        """Whether what comes of a key in the log does not depend on its base row. Then rows of the base may be left out
        early, and the base joined by keys alone.
        """
        rules = self.layout.rules
        compares = rules.against_base.ordered and bool(self.layout.ordering)
        partial = rules.against_base.fill is not None or len(self._column_sets) > 1
        return not compares and not partial and rules.custom is None

    def parts(self) -> Iterator[LogPart]:
        """The parts, loaded and folded as they are asked for when they are on disk."""
        if not isinstance(self._held, Spill):
            yield LogPart(self._held)
            return
        for group in self._held.groups(self._limit):
            versions = Versions(self.layout, self._held.load(group), self._column_sets)
            yield LogPart(fold(versions), group)

    def keys(self) -> pa.ChunkedArray:
        """All keys in the log, each once."""
        return pa.chunked_array([part.keys for part in self.parts()], type=pa.string())

    def close(self) -> None:
        """Removes files on disk. The map is not usable after that."""
        if isinstance(self._held, Spill):
            self._held.close()

    def __enter__(self) -> LogMap:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def collect_log(
    entries: Iterable[LogEntry],
    rules: MergeRules,
    schema: pa.Schema,
    *,
    key: str = KEY_FIELD,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
    spill_dir: str | None = None,
) -> LogMap:
    """The map of a log whose entries come oldest first, with rows in the columns of `schema` (see `columns_needed`).

    `limit_bytes`: rows held in memory, at most 2 GiB. `spill_dir`: the folder in which rows are kept that do not fit;
    None: the system's folder for such files.

    Raises:
        Unavailable: rows do not fit in memory and cannot be written to disk.
    """
    gathering = _Gathering(Layout(schema, rules, key), min(limit_bytes, MAX_LIMIT_BYTES), spill_dir)
    try:
        for entry in entries:
            gathering.add(entry)
        return gathering.finished()
    except BaseException:
        gathering.abandon()
        raise


class _Gathering:
    """What has been collected so far. Newest versions are in `_held`, older ones on disk if there is a spill."""

    def __init__(self, layout: Layout, limit_bytes: int, spill_dir: str | None) -> None:
        self._layout = layout
        self._limit = limit_bytes
        self._spill_dir = spill_dir
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._sets: dict[ColumnSet, int] = {None: 0}
        self._spill: Spill | None = None

    def add(self, entry: LogEntry) -> None:
        versions = self._of(entry)
        if versions.num_rows:
            self._held.append(versions)
            self._held_bytes += versions.nbytes
        if self._held_bytes > self._limit:
            self._shrink()

    def finished(self) -> LogMap:
        sets = tuple(self._sets)
        if self._spill is None:
            return LogMap(self._layout, sets, fold(self._versions()), self._limit)
        self._spill.add(self._versions().table)
        self._held = []
        return LogMap(self._layout, sets, self._spill, self._limit)

    def abandon(self) -> None:
        if self._spill is not None:
            self._spill.close()

    def _of(self, entry: LogEntry) -> pa.Table:
        if isinstance(entry, LogRows):
            has = self._sets.setdefault(entry.columns, len(self._sets))
            return self._layout.of_rows(entry.rows, has, BY_COLUMNS if len(self._sets) > 1 else 0)
        return self._layout.of_deletes(entry, BY_COLUMNS if len(self._sets) > 1 else 0)

    def _shrink(self) -> None:
        """Folds what is held, and writes it to disk if that does not help.

        Only the beginning of a log may be folded on its own: a delete that goes by time would be forgotten where
        something follows it, and with it that what came before is gone. Nor may partial rows: what columns their
        outcome has is not one column set.
        """
        versions = self._versions()
        if self._spill is None and not versions.has_partial_rows:
            versions = fold(versions).versions
            if versions.table.nbytes <= self._limit // 2:
                self._held, self._held_bytes = [versions.table], versions.table.nbytes
                return
        if self._spill is None:
            self._spill = Spill(self._layout.with_marks, self._layout.key, self._spill_dir)
        self._spill.add(versions.table)
        self._held, self._held_bytes = [], 0

    def _versions(self) -> Versions:
        table = pa.concat_tables(self._held) if self._held else self._layout.with_marks.empty_table()
        return Versions(self._layout, table, tuple(self._sets))
