"""Records of one file group of the metadata table as they lie there: base file, then log blocks, oldest first.

1. A part is what one base file or log block holds: rows, or keys that were deleted. Merging them is `merge`.
2. Only what is asked for is read: all records, those of some keys, or those whose keys begin in some ways. In HFiles
   that means the blocks that may hold them; delete blocks are read whole, they are small.
3. Values are Avro under the schema that stands in the file; the field `key` is empty there and taken from the file's
   key. Hudi's five meta columns in front are left out.

It knows neither what records mean nor which group holds a key.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import LocalEngine, TaskId
from hoodie.errors import Corrupt
from hoodie.hfile import HFile, KeyValues, open_hfile
from hoodie.logs import blocks_to_merge, open_block_hfile, read_block_rows, read_blocks, read_deletes
from hoodie.metadata.damage import REBUILD
from hoodie.metadata.whole_groups import SeenGroup, seen_group
from hoodie.records import RowBytes, decode_rows
from hoodie.spec import BlockKind, InstantTime, LogBlock
from hoodie.storage import Storage
from hoodie.view import BaseFile, FileSlice, LogFile

KEY: Final = "key"
TYPE: Final = "type"

_KEPT_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records: those with one of `keys` (an array where they may be many), or else with one of `prefixes`; all
    when both are None.
    """

    keys: tuple[str, ...] | pa.StringArray | None = None
    prefixes: tuple[str, ...] | None = None

    def keep(self, keys: pa.Array) -> pa.Array:
        """Which of the keys are asked for."""
        if self.keys is not None:
            asked = self.keys if isinstance(self.keys, pa.Array) else pa.array(self.keys, pa.string())
            return pc.is_in(keys, value_set=asked)
        if self.prefixes is not None:
            starts = [pc.starts_with(keys, prefix) for prefix in self.prefixes]
            kept = pa.array([False] * len(keys), pa.bool_())
            for one in starts:
                kept = pc.or_(kept, one)
            return kept
        return pa.array([True] * len(keys), pa.bool_())


EVERYTHING: Final = Wanted()

_AT_ONCE: Final = LocalEngine(16)
"""Files of a group that are read side by side."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What one base file or log block says. `rows` has the column `key` and those asked for that its schema has; it is
    None when the keys were deleted. `path` is the file's.
    """

    path: str
    keys: pa.StringArray
    rows: pa.Table | None


def read_group(
    storage: Storage,
    part: FileSlice,
    counts: Callable[[InstantTime], bool],
    wanted: Wanted = EVERYTHING,
    columns: tuple[str, ...] | None = None,
) -> tuple[list[Part], SeenGroup]:
    """What the slice of a file group says about the records asked for, oldest first, and what was found in its log
    files, for `ensure_whole`. `columns`: only these (and `key`).

    Raises:
        Corrupt: a file is damaged.
    """
    files = [_File(storage, file, wanted, columns) for file in (part.base, *part.logs) if file is not None]
    found = _AT_ONCE.run(_read_file, files, "read metadata")
    parts = [one for some in found if isinstance(some, list) for one in some]
    blocks = {file.file.path: some for file, some in zip(files, found, strict=True) if isinstance(some, tuple)}
    for block in blocks_to_merge([block for some in blocks.values() for block in some], counts=counts):
        parts.extend(_block_parts(storage, block, wanted, columns))
    return [one for one in parts if len(one.keys)], seen_group(part, blocks)


@dataclass(frozen=True, slots=True, eq=False)
class _File:
    storage: Storage
    file: BaseFile | LogFile
    wanted: Wanted
    columns: tuple[str, ...] | None


def _read_file(_: TaskId, task: _File) -> list[Part] | tuple[LogBlock, ...]:
    """What a base file says; the blocks of a log file."""
    file = task.file
    if isinstance(file, LogFile):
        return read_blocks(task.storage, file.path, file.size_bytes)
    read = partial(task.storage.read_range, file.path)
    return list(_hfile_parts(open_hfile(read, file.size_bytes, file.path), task.wanted, task.columns))


def concat_records(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all tables, which may be of different releases: a member that one of them lacks is null there."""
    if any(not table.schema.equals(tables[0].schema) for table in tables):
        tables = [table.cast(pa.schema([_nullable(field) for field in table.schema])) for table in tables]
    return pa.concat_tables(tables, promote_options="permissive")


def _nullable(field: pa.Field) -> pa.Field:
    """The field with everything in it nullable that is a struct's."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_nullable(child) for child in kind])
    return pa.field(field.name, kind)


def _block_parts(storage: Storage, block: LogBlock, wanted: Wanted, columns: tuple[str, ...] | None) -> Iterator[Part]:
    if block.kind is BlockKind.DELETE:
        keys = read_deletes(storage, block).keys
        yield Part(block.path, keys.filter(wanted.keep(keys)), None)
    elif block.kind is BlockKind.HFILE_DATA:
        yield from _hfile_parts(open_block_hfile(storage, block), wanted, columns)
    else:
        rows = read_block_rows(storage, block, columns=None if columns is None else [KEY, *columns])
        rows = rows.filter(wanted.keep(rows.column(KEY).combine_chunks()))
        yield Part(block.path, rows.column(KEY).combine_chunks(), rows)


def _hfile_parts(hfile: HFile, wanted: Wanted, columns: tuple[str, ...] | None) -> Iterator[Part]:
    for found in _entries(hfile, wanted):
        if len(found):
            yield _decoded(found, hfile, columns)


def _entries(hfile: HFile, wanted: Wanted) -> Iterator[KeyValues]:
    if wanted.keys is not None:
        asked = wanted.keys
        yield hfile.lookup(asked if isinstance(asked, pa.Array) else [key.encode() for key in asked])
    elif wanted.prefixes is not None:
        yield hfile.with_prefixes([prefix.encode() for prefix in wanted.prefixes])
    else:
        yield from hfile.scan()


def _decoded(found: KeyValues, hfile: HFile, columns: tuple[str, ...] | None) -> Part:
    schema = hfile.schema
    if schema is None:
        raise Corrupt(
            f"{hfile.path} does not say what its values are: it has no schema",
            remedy=REBUILD,
            path=hfile.path,
        )
    keys = _texts(found.keys, hfile.path)
    rows = _rows(found, schema, columns, hfile.path)
    own = [name for name in rows.column_names if name != KEY and not name.startswith("_hoodie_")]
    return Part(hfile.path, keys, rows.select(own).add_column(0, KEY, keys))


def _rows(found: KeyValues, schema: str, columns: tuple[str, ...] | None, path: str) -> pa.Table:
    """The rows of some values. A writer reads the same small blocks again with every commit, until they are compacted:
    what their bytes say is kept.
    """
    if len(found.data) > _KEPT_BYTES:
        return decode_rows(RowBytes(found.data, found.starts, found.ends), schema, columns=columns, path=path)
    data = bytes(found.data)
    places = np.concatenate([found.starts, found.ends]).astype(np.int64).tobytes()
    return _known_rows(data, places, schema, columns, path)


@functools.lru_cache(maxsize=256)
def _known_rows(data: bytes, places: bytes, schema: str, columns: tuple[str, ...] | None, path: str) -> pa.Table:
    starts, ends = np.frombuffer(places, np.int64).reshape(2, -1)
    return decode_rows(RowBytes(data, starts, ends), schema, columns=columns, path=path)


def _texts(keys: pa.BinaryArray, path: str) -> pa.StringArray:
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise Corrupt(f"{path} has a key that is not UTF-8", remedy=REBUILD, path=path) from error
