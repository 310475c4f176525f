"""What compares one index with the rows of a table: it is shown every live file slice, then says what is left over.

1. A slice is shown as a snapshot reads it. Rows come with the key and the columns that were asked for.
2. A check asks the index as readers do, so what it finds are rows that a look-up or a skipping scan would lose or
   invent. What no reader believes is no trouble.
3. What is held at once are the rows of a few slices and what the index says about one of them. Checks of statistics
   keep ranges of columns, no rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from hoodie.metadata import MetadataTable
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.slice_rows import SliceRows
from hoodie.records import KEY_FIELD
from hoodie.spec import keys
from hoodie.view import FileSlice

Trouble: TypeAlias = tuple[str, str]
"""The folder of the index (or a file of it that cannot be read), and what is wrong."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckedTable:
    """A table whose indexes are compared: its metadata table, its data columns, its live slices, and what reads keys
    of any of their files.
    """

    metadata: MetadataTable
    context: IndexContext
    schema: pa.Schema
    slices: Sequence[FileSlice]
    keys: SliceRows


@dataclass(frozen=True, slots=True, eq=False)
class SliceShown:
    """A live slice and its rows: the record key, and the columns that checks asked for of it."""

    part: FileSlice
    rows: pa.Table

    @property
    def keys(self) -> pa.StringArray:
        """The record keys of its rows."""
        return self.rows.column(KEY_FIELD).combine_chunks().cast(pa.string())


class IndexCheck(Protocol):
    """The comparison of one index. It is made anew for every `validate` and asked by one thread."""

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        """The top-level columns it wants of a slice beside the key; None: it does not look at the rows."""
        ...

    def compare(self, shown: SliceShown) -> Iterator[Trouble]:
        """What the index says wrongly about one slice."""
        ...

    def finish(self) -> Iterator[Trouble]:
        """What it says wrongly about all of them together. Called once, after the last slice."""
        yield from ()


def index_path(partition: str) -> str:
    """The folder of an index."""
    return f"{keys.METADATA_TABLE_DIR}/{partition}"


def some(values: pa.Array) -> str:
    """How many values there are, with the first of them."""
    first = ", ".join(repr(value) for value in values[:3].to_pylist())
    return f"{len(values):,} ({first}{', ...' if len(values) > 3 else ''})"
