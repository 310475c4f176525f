"""File slices that become larger files by copying row groups (`hoodie.records.row_group_copy`), where that is possible.

It is where rows need no order, slices are base files alone, files fit together (`parquet_layout.why_not_joined`), and
row groups are large enough: many small ones cost every later query more than decoding them once. Decided by footers
alone, for all files of a group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from hoodie.records import KEY_FIELD, OPERATION_FIELD, BaseFooter, read_columns, read_footer, with_meta
from hoodie.records.base_file import InputStorage
from hoodie.records.base_file_writer import avro_text
from hoodie.records.joined_keys import joined_keys
from hoodie.records.parquet_layout import ParquetLayout, load_layout, why_not_joined
from hoodie.records.row_group_copy import RowGroupCopy
from hoodie.services.rewrite.target import RewriteTarget
from hoodie.slices import SliceRead
from hoodie.storage import Storage
from hoodie.view import FileSlice
from hoodie.write.new_base_file import NewBaseFile


def load_stitchable(
    storage: InputStorage, parts: Sequence[tuple[SliceRead, BaseFooter | None]], schema: pa.Schema, min_bytes: int
) -> tuple[ParquetLayout, ...] | str:
    """The layouts of the slices' files that have rows, whose row groups can be copied to files of `schema`; else why
    they cannot.
    `min_bytes`: stored bytes of a row group on average. Reads the end of each file.

    Raises:
        Corrupt: a file is damaged. Missing: one is gone.
    """
    layouts = []
    for part, footer in parts:
        if footer is None or not part.is_plain:
            return f"file group {part.file_id} has log files, or its rows lie elsewhere"
        layout = load_layout(storage, footer)
        if layout is None:
            return f"the footer of {footer.path} is odd"
        layouts.append(layout)
    why = why_not_joined(layouts, schema)
    if why is not None:
        return why
    groups = sum(len(one.filled) for one in layouts)
    if not groups:
        return "there are no rows"
    average = sum(one.data_bytes for one in layouts) // groups
    if average < min_bytes:
        return f"row groups have {average >> 10} KiB on average, and {min_bytes >> 10} KiB are wanted"
    return tuple(one for one in layouts if one.filled)


def why_decoded(storage: Storage, parts: Sequence[FileSlice], stored: pa.Schema, min_bytes: int) -> str | None:
    """Why row groups of these slices cannot be copied, as `load_stitchable` says; None when they can. `stored`: data
    columns of the table's files.
    """
    reads = [SliceRead(part.partition, part.base, part.logs) for part in parts]
    found = [(one, None if one.base is None else read_footer(storage, one.base.path)) for one in reads]
    operation = any(footer is not None and OPERATION_FIELD in footer.schema.names for _, footer in found)
    stitchable = load_stitchable(storage, found, with_meta(stored, operation=operation), min_bytes)
    return stitchable if isinstance(stitchable, str) else None


def split_evenly(layouts: Sequence[ParquetLayout], count: int) -> Iterator[tuple[ParquetLayout, ...]]:
    """The files in `count` runs of about the same bytes, in their order; runs without a file are left out."""
    total, before = sum(one.data_bytes for one in layouts), 0
    runs: list[list[ParquetLayout]] = [[] for _ in range(count)]
    for one in layouts:
        runs[min(count - 1, before * count // max(1, total))].append(one)
        before += one.data_bytes
    return (tuple(run) for run in runs if run)


def stitched(
    target: RewriteTarget, file: NewBaseFile, layouts: Sequence[ParquetLayout], schema: pa.Schema
) -> RowGroupCopy:
    """The new file, closed, with all row groups of these files.

    Raises:
        Corrupt: a file is damaged. Missing: one is gone. Unavailable: storage refused.
    """

    def keys_of(footer: BaseFooter) -> pa.ChunkedArray:
        return read_columns(target.storage, footer.path, [KEY_FIELD], footer=footer).column(0)

    named = target.populate_meta_fields
    footers = [one.footer for one in layouts]
    keys = joined_keys(
        footers, avro_text(schema, target.table_name), target.options, keys_of if KEY_FIELD in schema.names else None
    )
    with file.copied(layouts[0], keys, named=named) as writer:
        for one in layouts:
            writer.copy(target.storage, one)
    return writer
