"""The law of bounds of floating point columns in base files: docs/format/base-file.md."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq

Bounds = tuple[Any, Any] | None


def float_bounds(file: pq.ParquetFile) -> dict[str, list[Bounds]]:
    """What the row groups say of each leaf of floats, by path, as smallest and greatest value; None: it says nothing.

    Checks the law: all say their number of nulls. Either none has bounds, or all those with numbers: the true ones, of
    zeros both, and no NaN is there. Pages have bounds where their row group has.
    """
    leaves = [file.metadata.schema.column(place) for place in range(file.metadata.num_columns)]
    return {
        leaf.path: _of_leaf(file, place, leaf.path)
        for place, leaf in enumerate(leaves)
        if leaf.physical_type in {"FLOAT", "DOUBLE"} or leaf.logical_type.type == "FLOAT16"
    }


def _of_leaf(file: pq.ParquetFile, place: int, path: str) -> list[Bounds]:
    said: list[Bounds] = []
    wanted: list[Bounds] = []
    has_index: list[bool] = []
    has_nan = False
    for group in range(file.num_row_groups):
        values = list(_numbers(file.read_row_group(group, columns=[path]).to_pylist()))
        numbers = [value for value in values if value is not None]
        has_nan = has_nan or any(map(math.isnan, numbers))
        chunk = file.metadata.row_group(group).column(place)
        assert chunk.statistics is not None, path
        assert chunk.statistics.null_count == len(values) - len(numbers), path
        said.append((chunk.statistics.min, chunk.statistics.max) if chunk.statistics.has_min_max else None)
        wanted.append((min(numbers) or -0.0, max(numbers) or 0.0) if numbers else None)
        has_index.append(chunk.has_column_index)
    if any(said):
        assert not has_nan, path
        assert str(said) == str(wanted), path
        assert all(has_index), path
    elif any(wanted):
        assert not any(has_index), path
    return said


def _numbers(value: Any) -> Iterator[float | None]:
    """The leaves of what was read of one column."""
    if isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _numbers(inner)
    elif not isinstance(value, str):
        yield value
