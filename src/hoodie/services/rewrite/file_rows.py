"""Rows as they stand in the file they are written to anew: with its name, and else as they were."""

from __future__ import annotations

import pyarrow as pa

from hoodie.records import FILE_NAME_FIELD, META_FIELDS


def with_file_name(rows: pa.RecordBatch, schema: pa.Schema, file_name: str | None) -> pa.Table:
    """The rows in the columns of `schema`, with the name of their new file (None: they say none); meta columns they do
    not have are empty.
    """
    columns = []
    for field in schema:
        if field.name == FILE_NAME_FIELD and file_name is not None:
            columns.append(_repeated(file_name, rows.num_rows))
        elif field.name in META_FIELDS and field.name not in rows.schema.names:
            columns.append(pa.nulls(rows.num_rows, field.type))
        else:
            columns.append(rows.column(field.name))
    return pa.Table.from_arrays(columns, names=schema.names)


def _repeated(text: str, count: int) -> pa.DictionaryArray:
    indices = pa.repeat(pa.scalar(0, pa.int32()), count)
    return pa.DictionaryArray.from_arrays(indices, pa.array([text], pa.string()))
