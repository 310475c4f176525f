"""Rows of file slices for those who index them: keys, and some columns beside them.

1. A slice is read as a snapshot reads it, also one that is not committed yet: the blocks of the action that writes it
   count as well.
2. A slice that is one base file is read column by column, without merging anything.
3. Columns of bootstrap skeletons are read where `sources` say that they are.

It travels to workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hoodie.errors import Unsupported
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.skeletons import Sources, source_of_base
from hoodie.records import KEY_FIELD, align, opened_once, read_columns, read_footer, with_meta
from hoodie.slices import READ_BATCH_ROWS, MergeOptions, RowPlan, SliceRead, plan_merge, read_rows
from hoodie.spec import InstantTime
from hoodie.storage import Storage
from hoodie.view import FileSlice

_PARQUET = ".parquet"


@dataclass(frozen=True, slots=True, eq=False)
class SliceRows:
    """Reads the columns `plan.schema` of slices, the record key first."""

    storage: Storage
    plan: RowPlan
    sources: Sources = field(default_factory=dict)

    def having(self, sources: Sources) -> SliceRows:
        """The same for slices whose skeletons have these sources."""
        return replace(self, sources=sources) if sources else self

    def of(self, part: FileSlice | None) -> pa.Table:
        """The rows of a slice; none of no slice.

        Raises:
            Corrupt: a file is damaged or gone.
        """
        schema = self.plan.schema
        if part is None:
            return schema.empty_table()
        source = source_of_base(self.sources, part.partition, part.base)
        if part.base is not None and not part.logs and source is None and part.base.path.endswith(_PARQUET):
            with opened_once(self.storage) as storage:
                footer = read_footer(storage, part.base.path)
                stored = [name for name in schema.names if footer.schema.get_field_index(name) >= 0]
                return align(read_columns(storage, part.base.path, stored, footer=footer), schema)
        read = SliceRead(part.partition, part.base, part.logs, source=source)
        return pa.Table.from_batches(read_rows(self.storage, self.plan, read), schema)

    def keys(self, part: FileSlice | None) -> pa.Array:
        """The record keys of a slice, in the order of its rows."""
        return self.of(part).column(KEY_FIELD).combine_chunks()


def slice_rows(
    context: IndexContext, schema: pa.Schema, columns: Sequence[str] = (), instant: InstantTime | None = None
) -> SliceRows:
    """A reader of keys and of top-level columns of a table with the data columns `schema`. `instant`: that of the
    action whose own files are to be read, too.

    Raises:
        Unsupported: rows of the table do not carry their keys.
    """
    handle = context.handle
    if not handle.config.populate_meta_fields:
        raise Unsupported(
            f"Rows of {handle.config.name} do not carry their keys (hoodie.populate.meta.fields=false): they cannot be "
            "indexed by key",
            remedy="Turn record and secondary indexes off for this table",
        )
    full = with_meta(schema)
    wanted = pa.schema([full.field(name).with_nullable(True) for name in dict.fromkeys((KEY_FIELD, *columns))])
    merge = plan_merge(schema, wanted.names, handle.config, context.timeline, MergeOptions())
    if instant is not None and merge.blocks.completed is not None:
        merge = replace(merge, blocks=replace(merge.blocks, completed=merge.blocks.completed | {instant}))
    plan = RowPlan(wanted, wanted, None, None, READ_BATCH_ROWS, frozenset({KEY_FIELD}), merge=merge)
    return SliceRows(handle.storage, plan)
