"""Reads parquet and ORC base files of any Hudi version: whole columns, or a stream of batches in bounded memory.

1. Rows come in the storable types of `schema.py`, whatever the file used: two-level `array` lists, `bag.array`, INT96.
2. With a target schema, rows come in exactly that schema: columns by name, missing ones null, types promoted
   (`align.py`).
3. Rows that a filter drops in row groups which are not skipped (`base_file.py`) are dropped after reading.

It does not know partitions, slices or commits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.records.align import align
from hoodie.records.base_file import (
    DEFAULT_BATCH_ROWS,
    InputStorage,
    OrcRows,
    ParquetRows,
    binds,
    opened_base_file,
)
from hoodie.records.condition import ANYTHING, Condition
from hoodie.records.filter_error import filter_failed
from hoodie.records.footer import BaseFooter

PROBE_SHARE: Final = 4
"""Columns of a filter are read first when there are at least so many times as many columns to read."""
_PROBE_ROWS: Final = 64 * 1024


def read_columns(
    storage: InputStorage, path: str, columns: Sequence[str] | None = None, *, footer: BaseFooter | None = None
) -> pa.Table:
    """The named top-level columns of all rows, in the order asked for; None means all columns.

    Only these columns are read from storage. A `footer` read before saves parsing it again.

    Raises:
        Invalid: the file has no such column.
        Corrupt: the file is damaged.
        Unsupported: by its name a Lance file.
    """
    with opened_base_file(storage, path, footer) as file:
        wanted = selected_columns(file.schema, columns, path)
        return align(file.read(wanted.names), wanted)


def iter_batches(
    storage: InputStorage,
    path: str,
    columns: Sequence[str] | None = None,
    filter: pc.Expression | None = None,
    batch_rows: int = DEFAULT_BATCH_ROWS,
    *,
    schema: pa.Schema | None = None,
    footer: BaseFooter | None = None,
    filter_columns: Collection[str] = (),
    condition: Condition = ANYTHING,
    groups: Collection[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Rows of the file in file order, at most `batch_rows` at a time, fewer where rows are long.

    `schema`: give rows in this schema, with nulls for columns the file lacks (default: the file's own). `columns`: of
    these, give only the named ones. `filter`: drop rows for which it is not true, and skip row groups that have no such
    row; it may use any column of `schema`. An expression does not tell which columns it uses: unless `columns` has them
    all, every column is read. Who knows them says so in `filter_columns`: where they are few, they are read first, and
    the rest of a row group only when one of its rows is wanted. `condition` is what bounds of values can tell of an
    expression: where the file has bounds for its pages, only pages are read that may have a wanted row. `groups`: only
    rows of these row groups.

    Raises:
        Invalid: no such column, or the filter does not fit the schema.
        Corrupt: the file is damaged; batches given before the damage are good.
        Unsupported: by its name a Lance file.
    """
    with opened_base_file(storage, path, footer) as file:
        full = file.schema if schema is None else schema
        wanted = selected_columns(full, columns, path)
        read = wanted if filter is None else _read_for(filter, filter_columns, wanted, full)
        pages = file.paged(filter, filter_columns, condition)
        for at in range(file.group_count if pages is None else pages.group_count):
            if groups is not None and at not in groups:
                continue
            found = None if pages is None else pages.matching(at, read)
            if found is not None:
                rest = found if read is wanted else found.select(wanted.names)
                yield from (batch for batch in rest.to_batches(max_chunksize=batch_rows) if batch.num_rows)
                continue
            if filter is not None and not file.may_match(at, filter, filter_columns, full):
                continue
            first = _probe(filter, filter_columns, read, file.names)
            if first is not None and filter is not None and not _matches(file, at, first, filter, path):
                continue
            present = [name for name in read.names if name in file.names]
            for batch in file.stream(present, [at], batch_rows):
                rows = _aligned(batch, read, path)
                if filter is not None:
                    rows = _filtered(rows, filter, path)
                if rows.num_rows:
                    yield rows if read is wanted else rows.select(wanted.names)


def _aligned(batch: pa.RecordBatch, to: pa.Schema, path: str) -> pa.RecordBatch:
    try:
        return align(batch, to)
    except Invalid as error:
        raise Invalid(
            f"{path} does not fit the table's schema. {error.cause}",
            remedy="It was written with another schema, or is damaged: look at it, or roll its commit back",
            **error.facts | {"path": path},
        ) from error


def selected_columns(schema: pa.Schema, columns: Sequence[str] | None, path: str) -> pa.Schema:
    """These columns (None: all) of a file's schema.

    Raises:
        Invalid: the file has no such column.
    """
    if columns is None:
        return schema
    missing = [name for name in columns if schema.get_field_index(name) < 0]
    if missing:
        raise Invalid(
            f"{path} has no column {', '.join(f'`{name}`' for name in missing)}",
            remedy=f"Columns are {', '.join(schema.names)}",
            columns=tuple(missing),
            path=path,
        )
    return pa.schema([schema.field(name) for name in columns])


def _read_for(condition: pc.Expression, columns: Collection[str], wanted: pa.Schema, full: pa.Schema) -> pa.Schema:
    """The columns to read so that the filter can be asked: `wanted` itself when that is enough. `columns`: those an
    expression looks at, where they are known.
    """
    if columns and set(columns) <= set(wanted.names):
        return wanted
    return wanted if binds(condition, wanted) else full


def _probe(
    condition: pc.Expression | None, columns: Collection[str], read: pa.Schema, stored: Collection[str]
) -> pa.Schema | None:
    """The columns a condition looks at, where reading them first can save more than it costs."""
    if condition is None or not columns or PROBE_SHARE * len(columns) > len(read):
        return None
    if not any(name in stored for name in columns):
        return None
    return pa.schema([field for field in read if field.name in columns])


def _matches(file: ParquetRows | OrcRows, group: int, schema: pa.Schema, condition: pc.Expression, path: str) -> bool:
    """Whether a row of the group meets the condition. Reads up to the first one."""
    present = [name for name in schema.names if name in file.names]
    batches = file.stream(present, [group], _PROBE_ROWS)
    return any(_filtered(_aligned(batch, schema, path), condition, path).num_rows for batch in batches)


def _filtered(rows: pa.RecordBatch, condition: pc.Expression, path: str) -> pa.RecordBatch:
    try:
        return rows.filter(condition)
    except (pa.ArrowException, KeyError, TypeError) as error:
        raise filter_failed(error, path) from error
