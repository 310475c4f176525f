"""Rows of a slice's base file, whatever it is: parquet, ORC or HFile, by column name or id, with or without a bootstrap
source beside it.

1. Conditions reach the file reader where columns go by name and nothing has to be put together; elsewhere they are
   decided on the rows it gives.
2. An HFile holds rows as Avro values, sorted by key. All its data blocks are read; only columns that are asked for are
   decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from hoodie.errors import Corrupt
from hoodie.filters.row_filter import Conjunct, matching
from hoodie.hfile import HFile, open_hfile
from hoodie.records import ColumnIds, RowBytes, align, decode_rows, iter_batches, read_footer
from hoodie.slices.bootstrap import iter_stitched
from hoodie.slices.slice_read import SliceRead
from hoodie.storage import Storage
from hoodie.view import BaseFile

_HFILE = ".hfile"
_BLANK_KEY = "key"
"""A field of this name is blank in the rows of an HFile: its entries have it as their key."""


def iter_base(
    storage: Storage,
    part: SliceRead,
    schema: pa.Schema,
    ids: ColumnIds | None,
    *,
    batch_rows: int,
    condition: Conjunct | None = None,
) -> Iterator[pa.RecordBatch]:
    """Rows of the slice's base file in `schema` for which `condition` is true, in file order; none without a base file.

    `condition` looks at columns of `schema`. Columns the file lacks are NULL. Without columns the batches only count.

    Raises:
        Corrupt: the file is damaged. Missing: it is gone.
    """
    if part.base is None:
        return
    if not schema.names:
        yield from _counted(row_count(storage, part.base), batch_rows)
        return
    path = part.base.path
    mapping = None if ids is None else ids.mapping(part.base.name.instant, schema)
    if mapping is None and part.source is None and not path.endswith(_HFILE):
        yield from _filtered(storage, path, schema, condition, batch_rows)
        return
    stored = schema if mapping is None else mapping.stored
    for batch in _read(storage, part, stored, batch_rows):
        rows = batch if mapping is None else mapping.renamed(batch)
        if condition is not None:
            matches = matching(pa.Table.from_batches([rows]), condition.expression).combine_chunks()
            rows = next(iter(matches.to_batches()), rows.slice(0, 0))
        if rows.num_rows:
            yield rows


def row_count(storage: Storage, base: BaseFile) -> int:
    """How many rows a base file has. Reads its footer only.

    Raises:
        Corrupt: the file is damaged. Missing: it is gone. Unsupported: it has a format nobody here reads.
    """
    if base.path.endswith(_HFILE):
        return _open_hfile(storage, base).entry_count
    return read_footer(storage, base.path).rows


def _counted(count: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Batches without columns: when all that is asked is how many rows there are."""
    for at in range(0, count, batch_rows):
        rows = min(batch_rows, count - at)
        yield pa.RecordBatch.from_arrays([pa.nulls(rows)], ["_"]).select([])


def _filtered(
    storage: Storage, path: str, schema: pa.Schema, condition: Conjunct | None, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    if condition is None:
        return iter_batches(storage, path, schema=schema, batch_rows=batch_rows)
    return iter_batches(
        storage,
        path,
        schema=schema,
        filter=condition.expression,
        filter_columns=condition.columns,
        condition=condition.condition,
        batch_rows=batch_rows,
    )


def _read(storage: Storage, part: SliceRead, schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
    if part.base is None:
        return iter(())
    if part.base.path.endswith(_HFILE):
        return _hfile_rows(storage, part.base, schema, batch_rows)
    if part.source is not None:
        return iter_stitched(storage, part.base.path, part.source, schema, batch_rows)
    return iter_batches(storage, part.base.path, schema=schema, batch_rows=batch_rows)


def _hfile_rows(storage: Storage, base: BaseFile, schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
    file, path = _open_hfile(storage, base), base.path
    if file.schema is None:
        raise Corrupt(f"Base file {path} does not say its schema", remedy="Restore it from a copy", path=path)
    for entries in file.scan():
        stored = RowBytes(entries.data, entries.starts, entries.ends)
        rows = decode_rows(stored, file.schema, columns=frozenset(schema.names), path=path)
        if _BLANK_KEY in rows.column_names:
            rows = rows.set_column(rows.schema.get_field_index(_BLANK_KEY), _BLANK_KEY, entries.keys.cast(pa.string()))
        yield from align(rows, schema).to_batches(max_chunksize=batch_rows)


def _open_hfile(storage: Storage, base: BaseFile) -> HFile:
    return open_hfile(partial(storage.read_range, base.path), base.size_bytes, base.path)
