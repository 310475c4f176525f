"""Partitions that can hold a row of a filter, told by their paths: others need not be listed, nor looked up.

1. A partition is chosen when the values that its path gives do not rule the filter out, as a plan decides
   (`matching_partitions`). So the plan is the same, whoever lists more.
2. A folder is left out when that is so of every partition that can lie at or below it (`folder_reading`).

Pure. What a path says about columns: `hoodie.records.partition_values`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.filters import RowFilter
from hoodie.filters.row_filter import matching
from hoodie.query.folder_reading import FolderReading
from hoodie.query.result_schema import ResultSchema
from hoodie.query.value_spans import may_hold
from hoodie.records import partition_values
from hoodie.spec import TableConfig

_ROW = "__hoodie_row"


class FilteredPartitions:
    """A `PartitionChoice` by a filter. `types`: the columns whose values paths can give."""

    def __init__(self, row_filter: RowFilter, types: pa.Schema, config: TableConfig) -> None:
        self._filter = row_filter
        self._types = types
        self._reading = FolderReading(types, config)

    def of(self, partitions: Collection[str]) -> frozenset[str]:
        values = {path: self._values(path) for path in partitions}
        return matching_partitions(values, self._types, self._filter)

    def worth_listing(self, folders: Collection[str]) -> frozenset[str]:
        reading = self._reading
        if not reading.is_possible:
            return frozenset(folders)
        whole = {path: reading.values(path) for path in folders if reading.may_be_whole(path)}
        found = matching_partitions(whole, self._types, self._filter)
        return found | {path for path in folders if path not in found and self._may_match_below(path)}

    def _may_match_below(self, folder: str) -> bool:
        conditions = [part.condition for part in self._filter.conjuncts]
        return any(all(may_hold(condition, known) for condition in conditions) for known in self._reading.below(folder))

    def _values(self, path: str) -> Mapping[str, Any]:
        try:
            return partition_values(path, self._types, self._reading.layout)
        except Invalid:  # it does not tell a column that no file has: an error for who reads it
            return {}


def partition_choice(
    row_filter: RowFilter | None, columns: ResultSchema, config: TableConfig
) -> FilteredPartitions | None:
    """The choice by a filter over the columns of a read; None where it says nothing about partitions."""
    if row_filter is None or row_filter.decidable_with(columns.path_columns) is None:
        return None
    types = pa.schema([field for field in columns.schema if field.name in columns.path_columns])
    return FilteredPartitions(row_filter, types, config)


def matching_partitions(
    values: Mapping[str, Mapping[str, Any]], types: pa.Schema, row_filter: RowFilter
) -> frozenset[str]:
    """The partitions whose values do not rule the filter out. Decided at once for partitions that know the same
    columns.
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for partition, known in values.items():
        alike.setdefault(tuple(known), []).append(partition)
    matches: set[str] = set()
    for columns, partitions in alike.items():
        condition = row_filter.decidable_with(columns)
        if condition is None:
            matches.update(partitions)
            continue
        schema = pa.schema([types.field(name) for name in columns])
        rows = pa.Table.from_pylist([dict(values[partition]) for partition in partitions], schema=schema)
        rows = rows.append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))
        matches.update(partitions[at] for at in matching(rows, condition).column(_ROW).to_pylist())
    return frozenset(matches)
