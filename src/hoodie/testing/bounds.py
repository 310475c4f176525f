"""The law of bounds of leaf columns in base files: docs/format/base-file.md."""

from __future__ import annotations

import math
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from hoodie.records import base_file_writer
from hoodie.records.parquet_leaves import leaf_values

Bounds = tuple[Any, Any] | None

_LONG_BYTES: Final = 4096
"""Bounds of longer texts may be wider than they are."""


def leaf_bounds(file: pq.ParquetFile) -> dict[str, list[Bounds]]:
    """What the row groups say of each leaf column, by path, as smallest and greatest value; None: it says nothing.

    Checks the law: all say their number of nulls. Either none has bounds, or all those with values: the true ones, and
    around long texts wider ones. Floats have none where NaN is there, and of zeros both. Pages have none where their
    row group has none, and those of floats have some where it has.
    """
    groups = [_leaves(file, group) for group in range(file.num_row_groups)]
    schema = file.metadata.schema
    return {schema.column(place).path: _of_leaf(file, groups, place) for place in range(file.metadata.num_columns)}


def write_without_statistics(patched: pytest.MonkeyPatch) -> None:
    """Lets base files be written as by one who leaves statistics and indexes of pages out."""
    options = base_file_writer._parquet_options

    def without(*given: Any) -> dict[str, Any]:
        return options(*given) | {"write_statistics": False, "write_page_index": False}

    patched.setattr(base_file_writer, "_parquet_options", without)


def _leaves(file: pq.ParquetFile, group: int) -> list[list[Any]]:
    """The values of each leaf column in a row group, without NULL."""
    columns = file.read_row_group(group).columns
    return [values.drop_null().to_pylist() for column in columns for values in leaf_values(column)]


def _of_leaf(file: pq.ParquetFile, groups: list[list[list[Any]]], place: int) -> list[Bounds]:
    path = file.metadata.schema.column(place).path
    chunks = [file.metadata.row_group(group).column(place) for group in range(file.num_row_groups)]
    said: list[Bounds] = []
    for chunk, leaves in zip(chunks, groups, strict=True):
        stats, values = chunk.statistics, leaves[place]
        assert stats is not None, path
        assert chunk.num_values - stats.null_count == len(values), path
        said.append((stats.min, stats.max) if stats.has_min_max else None)
    has_nan = any(isinstance(value, float) and math.isnan(value) for leaves in groups for value in leaves[place])
    if any(said):
        assert not has_nan, path
        for bounds, leaves, chunk in zip(said, groups, chunks, strict=True):
            _ensure_true(bounds, leaves[place], path)
            assert chunk.has_column_index or not any(isinstance(value, float) for value in leaves[place]), path
    elif any(leaves[place] for leaves in groups):
        assert not any(chunk.has_column_index for chunk in chunks), path
    return said


def _ensure_true(bounds: Bounds, values: list[Any], path: str) -> None:
    """Checks bounds that a row group says beside others that have some."""
    if not values:
        assert bounds is None, path
        return
    assert bounds is not None, path
    low, high = min(values), max(values)
    if isinstance(low, float):
        low, high = low or -0.0, high or 0.0
    if isinstance(low, str | bytes):
        (least, greatest), (low, high) = map(_stored, bounds), map(_stored, (low, high))
        assert least == low or (len(low) > _LONG_BYTES and low.startswith(least)), path
        assert greatest == high or (max(len(_stored(value)) for value in values) > _LONG_BYTES and greatest > high), (
            path
        )
    else:
        assert str(bounds) == str((low, high)), path


def _stored(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
