"""Compares bloom filters with what they were made of: those of base files, and those of expression indexes.

A filter must hold every key (every result) there is. Files without a filter may hold anything.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.metadata import BLOOM_FILTERS, FileOf, IndexDefinition, MetadataTable
from hoodie.metadata.bloom_filters import load_bloom_filters
from hoodie.metadata_writer.contents.check import SliceShown, Trouble, index_path, some
from hoodie.metadata_writer.file_ranges import values_at
from hoodie.metadata_writer.index_functions import IndexFunction
from hoodie.metadata_writer.indexes.expression_index import result_texts
from hoodie.metadata_writer.slice_rows import SliceRows
from hoodie.view import FileSlice


class BloomFiltersCheck:
    """The comparison of `bloom_filters`. `rows` reads keys of base files."""

    def __init__(self, table: MetadataTable, rows: SliceRows) -> None:
        self._table = table
        self._rows = rows

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        """No columns but the key, where the rows are those of the base file."""
        return None if part.logs or part.base is None else ()

    def compare(self, shown: SliceShown) -> Iterator[Trouble]:
        """Keys of the base file that its filter does not hold."""
        base, part = shown.part.base, shown.part
        if base is None:
            return
        file = FileOf(part.partition, base.path.rpartition("/")[2])
        filters = self._table.bloom_filters([file])
        if file not in filters:
            return
        keys = shown.keys if not part.logs else self._rows.keys(FileSlice(*part.group_id, part.base_instant, base, ()))
        lost = keys.filter(pa.array(~filters[file].contains(keys)))
        if len(lost):
            yield index_path(BLOOM_FILTERS), f"has a filter of {base.path} without {some(lost)} of its keys"

    def finish(self) -> Iterator[Trouble]:
        """Yields no more findings."""
        yield from ()


class ExpressionFiltersCheck:
    """The comparison of an expression index of filters."""

    def __init__(self, table: MetadataTable, definition: IndexDefinition, function: IndexFunction) -> None:
        self._table = table
        self._definition = definition
        self._function = function
        self._column = definition.source_fields[0]

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        """The column it is on."""
        del part
        return (self._column.partition(".")[0],)

    def compare(self, shown: SliceShown) -> Iterator[Trouble]:
        """Results that no filter of the slice's files holds."""
        part = shown.part
        own = [
            FileOf(part.partition, one.path.rpartition("/")[2]) for one in (part.base, *part.logs) if one is not None
        ]
        filters = load_bloom_filters(self._table.store, own, self._definition.name)
        if len(filters) < len(own):
            return
        results = self._function.of(values_at(shown.rows, self._column))
        for chunk in results.chunks if isinstance(results, pa.ChunkedArray) else [results]:
            texts = pc.drop_null(result_texts(chunk)).unique()
            is_held = np.zeros(len(texts), dtype=np.bool_)
            for one in filters.values():
                is_held |= one.contains(texts)
            lost = texts.filter(pa.array(~is_held))
            if len(lost):
                where = f"{part.partition}/{own[-1].name}".lstrip("/")
                yield index_path(self._definition.name), f"has filters of {where} without {some(lost)} of its results"

    def finish(self) -> Iterator[Trouble]:
        """Yields no more findings."""
        yield from ()
