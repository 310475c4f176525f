"""Columns by id: how rows written under one version of a schema become rows of another (schema-on-read).

1. A query names columns as *its* version does. A file names them as the version did that was in force when the file
   was written. Both versions give a column the same id, at every depth.
2. A column the file's version does not have is null, also when the file has a column of that name: that one was
   dropped, and the name used anew.
3. Types are the query's; `align` promotes values, as for any file that is older than a change of type.
4. A column the history does not know (partition columns that are not stored) goes by name.

How to use it, with `ids` from `table_schema.load_schema` (None: names will do for the whole table) and `wanted` the
columns a reader needs, in the query's names:

    mapping = ids.mapping(base.name.instant, wanted)                     # None: names will do, read as ever
    for batch in iter_batches(storage, path, schema=mapping.stored):     # conditions on columns can not go in here
        rows = mapping.renamed(batch)                                    # schema `mapping.wanted`

    mapping = ids.mapping(block.instant, wanted)                         # a log block has an instant of its own
    rows = mapping.mapped(read_block_rows(..., columns=mapping.stored.names))
    rows = mapping.mapped(rows, fill=False)                              # a partial update: only what the block has

Column statistics go by name, too: where a table has `ids`, they must not decide which files are read.

It does not know files, blocks or commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

import pyarrow as pa

from hoodie.records.align import align
from hoodie.records.schema import is_list, list_type, map_type
from hoodie.spec import InstantTime
from hoodie.spec.schema_history import IdArray, IdField, IdKind, IdMap, IdRecord, SchemaHistory, SchemaVersion

_NOT_STORED: Final = "\0not stored"
"""Behind a name, what makes it the name of no column."""

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


@dataclass(frozen=True, slots=True, eq=False)
class SchemaMapping:
    """Columns as they are wanted, and the same columns as the file has them.

    `stored` has the fields of `wanted` in the same order and types, under the names they have in the file. Names of
    columns the file cannot have end in a NUL and some words, so reading them by name gives nulls.
    """

    wanted: pa.Schema
    stored: pa.Schema

    def mapped(self, rows: Rows, *, fill: bool = True) -> Rows:
        """Rows as they were written, as rows of `wanted`. Columns they lack are null; `fill=False` leaves those out.

        Raises:
            Invalid: a value does not fit the type it has now.
        """
        if fill:
            return self.renamed(align(rows, self.stored))
        places = [at for at, name in enumerate(self.stored.names) if rows.schema.get_field_index(name) >= 0]
        wanted, stored = (pa.schema([schema.field(at) for at in places]) for schema in (self.wanted, self.stored))
        return SchemaMapping(wanted, stored).mapped(rows)

    def renamed(self, rows: Rows) -> Rows:
        """Rows of the schema `stored` under the names of `wanted`. No value is copied."""
        columns = [_renamed(column, field.type) for column, field in zip(rows.columns, self.wanted, strict=True)]
        if not columns:
            return rows
        made: Rows = type(rows).from_arrays(columns, schema=self.wanted)
        return made


@dataclass(frozen=True, slots=True)
class ColumnIds:
    """What a query of a table with renamed columns knows: all versions of its schema, and which one the query names
    columns by (that in force `as_of`, None: the newest). Small and picklable.
    """

    history: SchemaHistory
    as_of: InstantTime | None = None

    def mapping(self, written: InstantTime, wanted: pa.Schema) -> SchemaMapping | None:
        """How what `written` wrote is read as `wanted`; None when names say the same."""
        query = self.history.newest if self.as_of is None else self.history.at(self.as_of)
        file = self.history.at(written)
        if file is query:
            return None
        known = {field.name: field for field in query.fields}
        stored = pa.schema([_stored(field, known.get(field.name), file) for field in wanted])
        same = _same_names(pa.struct(list(stored)), pa.struct(list(wanted)))
        return None if same else SchemaMapping(wanted, stored)


def _stored(field: pa.Field, known: IdField | None, file: SchemaVersion) -> pa.Field:
    """`field` under the name it has in the file."""
    if known is None:
        return field
    found = file.find(known.id)
    if found is None:
        return field.with_name(f"{field.name}{_NOT_STORED}").with_nullable(True)
    return field.with_name(found.name).with_type(_stored_type(field.type, known.kind, file))


def _stored_type(data_type: pa.DataType, kind: IdKind, file: SchemaVersion) -> pa.DataType:
    match kind:
        case IdRecord(fields) if pa.types.is_struct(data_type):
            known = {field.name: field for field in fields}
            return pa.struct([_stored(field, known.get(field.name), file) for field in data_type])
        case IdArray(element) if is_list(data_type):
            inner = data_type.value_field
            return list_type(inner.with_type(_stored_type(inner.type, element.kind, file)))
        case IdMap(_, value) if pa.types.is_map(data_type):
            inner = data_type.item_field
            return map_type(inner.with_type(_stored_type(inner.type, value.kind, file)))
        case _:
            return data_type


def _renamed(column: pa.Array | pa.ChunkedArray, to: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if _same_names(column.type, to):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([chunk.view(to) for chunk in column.chunks], type=to)
    return column.view(to)


def _same_names(given: pa.DataType, to: pa.DataType) -> bool:
    """Whether names inside two types of one shape are the same. Arrow takes some types with other names for equal."""
    pairs = [(given.field(at), to.field(at)) for at in range(given.num_fields)]
    return all(have.name == want.name and _same_names(have.type, want.type) for have, want in pairs)
