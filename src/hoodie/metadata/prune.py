"""Data skipping: which file slices cannot hold a row that meets a condition.

1. Whatever is not known is possible. A slice is left out only when statistics or an index prove that it has no such
   row; rows are filtered afterwards all the same.
2. A row of a slice may take each of its columns from another of the slice's files (partial updates). So a comparison is
   decided for every file, is possible in a slice when it is in any of its files, and only then joined by AND and OR.
3. Statistics belong to files, which never change: they serve every query. The record index, secondary indexes and
   statistics of partitions describe the newest state: they serve its snapshot only, and not when they were compacted
   after the table's timeline was loaded.
4. A merger of the user's own may make values that are in no file: slices with log files are then decided by keys alone.
5. Values of partition columns come from the path. Statistics of such columns are not asked.
6. Cheap questions come first: partitions, keys, ranges, bloom filters. Each is asked about slices that are left. The
   record index, which has a block to be read for nearly every key, is asked when ranges of keys overlap.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.metadata.bloom_filters import load_bloom_filters, may_hold
from hoodie.metadata.column_stats import FileOf, file_ranges, partition_ranges
from hoodie.metadata.index_definitions import IndexDefinition
from hoodie.metadata.partitions import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX
from hoodie.metadata.record_index import locate
from hoodie.metadata.row_keys import MAX_KEYS, asked_keys, constant_texts
from hoodie.metadata.secondary_index import secondary_matches
from hoodie.metadata.store import MetadataStore
from hoodie.records import KEY_FIELD
from hoodie.records.condition import AnyOf, Comparison, Condition, conjuncts
from hoodie.spec import CUSTOM
from hoodie.view import BaseFile, LogFile

Mask = npt.NDArray[np.bool_]

MIN_SLICES: Final = 2
MAX_BLOOM_FILTERS: Final = 500
MAX_BLOOM_KEYS: Final = 10_000
_ODD_ORDER: Final = "\ue000"
"""From this character on Java may have put keys into another order."""


class Slice(Protocol):
    """What is asked of a file slice."""

    @property
    def partition(self) -> str: ...
    @property
    def base(self) -> BaseFile | None: ...
    @property
    def logs(self) -> tuple[LogFile, ...]: ...


SliceT = TypeVar("SliceT", bound=Slice)


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A condition over the columns of `schema`. `of_newest`: a snapshot of the newest state is read. `by_name`: a
    column has one name in all files. `path_columns`: columns whose values come from the path.
    """

    condition: Condition
    schema: pa.Schema
    of_newest: bool = False
    by_name: bool = True
    path_columns: frozenset[str] = frozenset()


def slices_that_may_match(store: MetadataStore, slices: Sequence[SliceT], question: Question) -> list[SliceT]:
    """The slices that may hold a row which meets the condition, in their order. Nothing is read for fewer than
    `MIN_SLICES`, nor for a condition that says nothing.

    Raises:
        Corrupt: the metadata table is damaged.
    """
    left = list(slices)
    for step in (_by_partition, _by_keys, _by_ranges, _by_bloom_filters):
        if len(left) < MIN_SLICES:
            break
        kept = step(store, left, question)
        if kept is not None:
            left = [part for part, stays in zip(left, kept.tolist(), strict=True) if stays]
            if step is _by_keys and _is_about_keys(store, question.condition):
                break
    return left


def _is_about_keys(store: MetadataStore, condition: Condition) -> bool:
    """Whether there is nothing in the condition but the key: who knows where keys are need not ask further."""
    columns = (KEY_FIELD, *store.config.record_key_fields[:1])
    return isinstance(condition, Comparison) and condition.column in columns and not condition.function


def _by_partition(store: MetadataStore, slices: Sequence[Slice], question: Question) -> Mask | None:
    """Comparisons against statistics of partitions, which are believed where they cover as many rows as those of the
    record key do: a file without statistics of a column is in no bounds. Not of floating point columns, whose bounds
    may come from files with NaN.
    """
    if not _describes_newest(store, PARTITION_STATS, question) or not question.by_name:
        return None
    partitions = sorted({part.partition for part in slices})
    if len(partitions) < MIN_SLICES:
        return None

    def possible(test: Comparison) -> Mask | None:
        data_type = _stored_type(test, question)
        if data_type is None or test.function or pa.types.is_floating(data_type):
            return None
        said = partition_ranges(store, {KEY_FIELD: pa.string(), test.column: data_type}, partitions)
        ranges = said[test.column]
        covers_all = pc.fill_null(pc.equal(ranges.rows, said[KEY_FIELD].rows), False).to_numpy(zero_copy_only=False)
        return np.asarray(ranges.may_pass(test) | ~covers_all)

    kept = _decided(question.condition, possible)
    if kept is None:
        return None
    good = {partition for partition, stays in zip(partitions, kept.tolist(), strict=True) if stays}
    return np.array([part.partition in good for part in slices]) | _is_made_up(store, slices)


def _by_keys(store: MetadataStore, slices: Sequence[Slice], question: Question) -> Mask | None:
    """The file groups where the record index knows the keys that the condition, or a secondary index, names."""
    config = store.config
    if not _describes_newest(store, RECORD_INDEX, question) or not config.populate_meta_fields:
        return None
    asked = asked_keys(conjuncts(question.condition), config, question.schema)
    if asked is None:
        asked = _keys_by_secondary_index(store, question)
    if asked is None:
        return None
    certain = _where_ranges_are_apart(store, slices, asked)
    if certain is not None:
        return certain
    found = locate(store, asked)
    groups = set(zip(found.column("partition").to_pylist(), found.column("file_id").to_pylist(), strict=True))
    return np.array([(part.partition, _file_id(part)) in groups for part in slices])


def _where_ranges_are_apart(store: MetadataStore, slices: Sequence[Slice], asked: Sequence[str]) -> Mask | None:
    """The slices in whose range of keys one of the keys lies, where these are not more than there are keys: then the
    record index could tell hardly more, for a block to be read for each key. None otherwise.
    """
    if COLUMN_STATS not in store.available or not asked or max(map(max, filter(None, asked)), default="") >= _ODD_ORDER:
        return None
    files, starts = _flat_files(slices)
    ranges = file_ranges(store, KEY_FIELD, files, pa.string())
    lows, highs = ranges.low.to_pylist(), ranges.high.to_pylist()
    ascending = sorted(asked)
    between = [
        0 if low is None or high is None else bisect_right(ascending, high) - bisect_left(ascending, low)
        for low, high in zip(lows, highs, strict=True)
    ]
    if None in lows or None in highs or sum(between) > len(ascending):
        return None
    return np.logical_or.reduceat(np.array(between) > 0, starts)


def _keys_by_secondary_index(store: MetadataStore, question: Question) -> list[str] | None:
    for test in conjuncts(question.condition):
        if not isinstance(test, Comparison) or test.function or test.operator not in ("=", "in"):
            continue
        index = _index_on(store, test.column, "secondary_index")
        data_type = _stored_type(test, question)
        if index is None or data_type is None or store.is_ahead(index.name):
            continue
        values = constant_texts(test.values, data_type)
        if values is not None:
            keys: list[str] = secondary_matches(store, index, values).column("record_key").to_pylist()
            return keys if len(keys) <= MAX_KEYS else None
    return None


def _by_ranges(store: MetadataStore, slices: Sequence[Slice], question: Question) -> Mask | None:
    """Comparisons against statistics of files, and of what expression indexes compute."""
    if not question.by_name:
        return None
    flat, starts = _flat_files(slices)

    def possible(test: Comparison) -> Mask | None:
        partition = _stats_partition(store, test)
        data_type = test.values.type if test.function else _stored_type(test, question)
        if partition is None or data_type is None:
            return None
        passing = file_ranges(store, test.column, flat, data_type, partition).may_pass(test)
        return np.logical_or.reduceat(passing, starts)

    kept = _decided(question.condition, possible)
    return None if kept is None else kept | _is_made_up(store, slices)


def _by_bloom_filters(store: MetadataStore, slices: Sequence[Slice], question: Question) -> Mask | None:
    """Keys against bloom filters, where no record index knows better. Slices with log files may have more keys."""
    plain = [part for part in slices if part.base is not None and not part.logs]
    if not 0 < len(plain) <= MAX_BLOOM_FILTERS or not question.by_name:
        return None
    partition, asked = BLOOM_FILTERS, None
    if BLOOM_FILTERS in store.available and not (RECORD_INDEX in store.available and question.of_newest):
        asked = asked_keys(conjuncts(question.condition), store.config, question.schema)
    if asked is None:
        partition, asked = _expression_filter(store, question)
    if not asked or len(asked) > MAX_BLOOM_KEYS:
        return None
    wanted = pa.array(asked, pa.string())
    filters = load_bloom_filters(store, [_files(part)[0] for part in plain], partition)
    without = {file for file, bloom in filters.items() if not may_hold(bloom, wanted)}
    return np.array([bool(part.logs) or _files(part)[0] not in without for part in slices])


def _expression_filter(store: MetadataStore, question: Question) -> tuple[str, list[str] | None]:
    """An expression index of bloom filters that the condition can ask, and the texts to ask for."""
    for test in conjuncts(question.condition):
        if isinstance(test, Comparison) and test.function and test.operator in ("=", "in"):
            index = _index_on(store, test.column, "bloom_filters", test.function)
            if index is not None:
                return index.name, constant_texts(test.values, pa.string())
    return "", None


def _describes_newest(store: MetadataStore, partition: str, question: Question) -> bool:
    """Whether a partition that describes the newest state may be asked: it is there and that state is read."""
    return partition in store.available and question.of_newest and not store.is_ahead(partition)


def _decided(condition: Condition, possible: Callable[[Comparison], Mask | None]) -> Mask | None:
    """Which of the things `possible` tells about may meet the condition; None when nothing in it could be decided."""
    if isinstance(condition, Comparison):
        return possible(condition)
    masks = [_decided(part, possible) for part in condition.parts]
    known = [mask for mask in masks if mask is not None]
    if isinstance(condition, AnyOf):
        return np.asarray(np.logical_or.reduce(known)) if known and len(known) == len(masks) else None
    return np.asarray(np.logical_and.reduce(known)) if known else None


def _stats_partition(store: MetadataStore, test: Comparison) -> str | None:
    """The partition of the metadata table whose statistics can decide the test."""
    if test.function:
        index = _index_on(store, test.column, COLUMN_STATS, test.function)
        return None if index is None else index.name
    if COLUMN_STATS not in store.available:
        return None
    indexed = store.definitions[COLUMN_STATS].source_fields if COLUMN_STATS in store.definitions else ()
    return COLUMN_STATS if not indexed or test.column in indexed else None


def _index_on(store: MetadataStore, column: str, kind: str, function: str = "") -> IndexDefinition | None:
    for index in store.definitions.values():
        fits = index.kind == kind and index.source_fields == (column,) and index.name in store.available
        if fits and (index.name != kind) and (index.function.lower() or "identity") == (function or "identity"):
            return index
    return None


def _stored_type(test: Comparison, question: Question) -> pa.DataType | None:
    """The type of the test's column when its values stand in files; a path with dots looks into structs."""
    first, *rest = test.column.split(".")
    at = question.schema.get_field_index(first)
    if at < 0 or first in question.path_columns:
        return None
    found = question.schema.field(at).type
    for name in rest:
        if not pa.types.is_struct(found) or found.get_field_index(name) < 0:
            return None
        found = found.field(name).type
    return found


def _is_made_up(store: MetadataStore, slices: Sequence[Slice]) -> Mask:
    """Slices whose values a merger of the user's own may have made."""
    is_custom = store.config.merge_mode == CUSTOM
    return np.array([is_custom and bool(part.logs) for part in slices], dtype=np.bool_)


def _flat_files(slices: Sequence[Slice]) -> tuple[list[FileOf], npt.NDArray[np.int64]]:
    """The files of all slices, and where those of each slice start."""
    files = [_files(part) for part in slices]
    starts = np.cumsum([0, *(len(of_slice) for of_slice in files[:-1])])
    return [file for of_slice in files for file in of_slice], starts


def _files(part: Slice) -> list[FileOf]:
    bases = [] if part.base is None else [part.base.name.text]
    return [FileOf(part.partition, name) for name in (*bases, *(log.name.text for log in part.logs))]


def _file_id(part: Slice) -> str:
    return part.base.name.file_id if part.base is not None else part.logs[0].name.file_id
