"""The rows of a change query: what one commit did to one file, images as JSON.

1. Images made of rows (`json_text.ROW`) have the meta columns, those out of change files (`json_text.AVRO`) have not:
   that is what Hudi writes, and readers of its output expect.
2. An image that is missing is NULL where images come from rows, and the text `null` where they come from change files.
3. A change file that has operation and key only gets its images from the base files before and after, by key.
4. A log file's changes are what merging it does to the slice it was written on. A version that loses against the row
   that is there is no change, nor is the delete of a key that is not there.
5. Memory: the rows of one change file, and of the base files its images come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Corrupt
from hoodie.logs import BlockKind, ensure_sound, read_block_rows, read_blocks
from hoodie.merge import Changes
from hoodie.records import KEY_FIELD, SEQNO_FIELD
from hoodie.slices.json_text import AVRO, ROW, json_rows, json_structs
from hoodie.slices.merged_rows import MergedSlices
from hoodie.slices.slice_read import ChangeKind, ChangeRead, SliceRead
from hoodie.storage import Storage

CHANGE_SCHEMA: Final = pa.schema(
    [("op", pa.string()), ("ts_ms", pa.string()), ("before", pa.string()), ("after", pa.string())]
)
"""The columns of every change query: `i`, `u` or `d`; the commit's requested time; JSON of the row before and after."""

_OPERATIONS: Final = {"insert": "i", "update": "u", "delete": "d"}
_KEY: Final = "record_key"

SliceRows = Callable[[SliceRead], Iterator[pa.RecordBatch]]
"""Gives the rows of a slice with all columns of the table."""


def change_rows(
    storage: Storage, change: ChangeRead, slices: MergedSlices, rows_of: SliceRows
) -> Iterator[pa.RecordBatch]:
    """The changes in `CHANGE_SCHEMA`.

    Raises:
        Corrupt: a change file is damaged.
    """
    match change.kind:
        case ChangeKind.LOGGED:
            yield from _logged(storage, change, _Images(change, rows_of, slices.schema))
        case ChangeKind.MERGED:
            logs = change.after.logs[-1:] if change.after is not None else ()
            for found in slices.changes(change.before, logs):
                yield from _merged(change, found)
        case ChangeKind.INSERTED if change.after is not None:
            for batch in rows_of(change.after):
                yield _batch(change, "i", None, _image(batch))
        case _ if change.before is not None:
            for batch in rows_of(change.before):
                yield _batch(change, "d", _image(batch), None)


def _logged(storage: Storage, change: ChangeRead, images: _Images) -> Iterator[pa.RecordBatch]:
    for path, size_bytes in change.changes:
        blocks = read_blocks(storage, path, size_bytes)
        ensure_sound(blocks, size_bytes)
        for block in blocks:
            if block.kind is not BlockKind.CDC_DATA:
                continue
            rows = read_block_rows(storage, block)
            if rows.num_rows:
                yield _of_change_file(change, rows.combine_chunks(), images, path)


def _of_change_file(change: ChangeRead, rows: pa.Table, images: _Images, path: str) -> pa.RecordBatch:
    names = set(rows.column_names)
    if "op" not in names or not names & {_KEY, "after"}:
        raise Corrupt(f"{path} holds no change data: its columns are {rows.column_names}", path=path)
    op = rows.column("op").combine_chunks()
    if "after" in names:
        before, after = (_stored_image(rows, name) for name in ("before", "after"))
    else:
        keys = rows.column(_KEY).combine_chunks()
        before = _stored_image(rows, "before") if "before" in names else images.before(keys, pc.not_equal(op, "i"))
        after = images.after(keys, pc.not_equal(op, "d"))
    return _batch(change, op, before, after)


def _stored_image(rows: pa.Table, name: str) -> pa.Array:
    return pc.fill_null(json_structs(rows.column(name), AVRO).combine_chunks(), "null")


class _Images:
    """Images by key from the slices before and after, which are read when they are asked for, once."""

    def __init__(self, change: ChangeRead, rows_of: SliceRows, schema: pa.Schema) -> None:
        self._change = change
        self._rows_of = rows_of
        self._schema = schema
        self._known: dict[bool, pa.Table] = {}

    def before(self, keys: pa.Array, wanted: pa.Array) -> pa.Array:
        return self._images(self._change.before, keys, wanted, is_before=True)

    def after(self, keys: pa.Array, wanted: pa.Array) -> pa.Array:
        return self._images(self._change.after, keys, wanted, is_before=False)

    def _images(self, part: SliceRead | None, keys: pa.Array, wanted: pa.Array, *, is_before: bool) -> pa.Array:
        if part is None:
            return pa.nulls(len(keys), pa.string())
        if is_before not in self._known:
            self._known[is_before] = pa.Table.from_batches(self._rows_of(part), self._schema)
        rows = self._known[is_before]
        places = pc.index_in(keys, value_set=rows.column(KEY_FIELD).combine_chunks())
        places = pc.if_else(wanted, places, None)
        found = json_rows(rows.take(places.drop_null()), ROW).combine_chunks()
        return pc.replace_with_mask(pa.nulls(len(keys), pa.string()), places.is_valid(), found)


def _merged(change: ChangeRead, found: Changes) -> Iterator[pa.RecordBatch]:
    before, after = found.before, found.after
    if before is not None and after is not None:
        differs = pc.not_equal(before.column(SEQNO_FIELD), after.column(SEQNO_FIELD))
        before, after = before.filter(differs), after.filter(differs)
    images = [None if side is None else _image(side) for side in (before, after)]
    if any(image is not None and len(image) for image in images):
        yield _batch(change, _OPERATIONS[found.kind], *images)


def _image(batch: pa.RecordBatch) -> pa.Array:
    return json_rows(pa.Table.from_batches([batch]), ROW).combine_chunks()


def _batch(change: ChangeRead, op: pa.Array | str, before: pa.Array | None, after: pa.Array | None) -> pa.RecordBatch:
    count = max(len(image) for image in (before, after) if image is not None)
    op = pa.repeat(pa.scalar(op), count) if isinstance(op, str) else op
    time = pa.repeat(pa.scalar(change.instant), count)
    before, after = (pa.nulls(count, pa.string()) if image is None else image for image in (before, after))
    return pa.RecordBatch.from_arrays([op, time, before, after], schema=CHANGE_SCHEMA)
