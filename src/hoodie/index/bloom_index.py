"""BLOOM and GLOBAL_BLOOM: as SIMPLE, but a key column is read only if key range and bloom filter let a key through.

The metadata table may have ranges and filters of all files; else the footer of each is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from hoodie.config import Config
from hoodie.index.index_kind import IndexKind
from hoodie.index.keyed_rows import KeyedRows
from hoodie.index.simple_index import every_base_file
from hoodie.index.write_index import Candidate, IndexedTable, IndexTraits, PlainIndex, PlainIndexedWrite
from hoodie.metadata import BLOOM_FILTERS, COLUMN_STATS, FileOf, open_metadata_table
from hoodie.records import KEY_FIELD
from hoodie.records.condition import Comparison
from hoodie.spec import TableConfig

_MAX_FILTERS: Final = 500
"""Bloom filters that are loaded for one write; with more files those in footers are asked, one file at a time."""


@dataclass(frozen=True, slots=True)
class BloomIndex(PlainIndex):
    """`by_range`: whether key ranges are looked at. `by_metadata`: whether the metadata table is asked."""

    traits: IndexTraits
    by_range: bool
    by_metadata: bool

    def begin(self, table: IndexedTable, rows: KeyedRows) -> BloomIndexedWrite:
        del rows
        return BloomIndexedWrite(self, table)


@dataclass(frozen=True, slots=True)
class BloomIndexedWrite(PlainIndexedWrite):
    """A `BloomIndex` at work."""

    index: BloomIndex
    table: IndexedTable

    def tag(self, asked: KeyedRows) -> list[Candidate]:
        index = self.index
        found = [
            replace(candidate, by_bloom=True, by_range=index.by_range)
            for candidate in every_base_file(index.traits, self.table, asked)
        ]
        asks_metadata = index.by_metadata and self.table.generator is None
        return _pruned(self.table, found, by_range=index.by_range) if asks_metadata else found


def _pruned(table: IndexedTable, found: list[Candidate], *, by_range: bool) -> list[Candidate]:
    """The candidates whose key range in the metadata table may have one of their keys, with their bloom filters."""
    handle = table.handle
    metadata = None
    if handle.config.has_metadata_table:
        metadata = open_metadata_table(handle.storage, handle.config, table.timeline, table.spread)
    if metadata is None:
        return found
    if by_range and metadata.has(COLUMN_STATS):
        kept: list[Candidate] = []
        for keys in {id(candidate.keys): candidate.keys for candidate in found}.values():
            same = [candidate for candidate in found if candidate.keys is keys]
            ranges = metadata.ranges(KEY_FIELD, [_file_of(candidate) for candidate in same], pa.string())
            passing = ranges.may_pass(Comparison(KEY_FIELD, "in", keys.load()[0]))
            kept += [candidate for candidate, stays in zip(same, passing.tolist(), strict=True) if stays]
        found = kept
    if not metadata.has(BLOOM_FILTERS) or len(found) > _MAX_FILTERS:
        return found
    blooms = metadata.bloom_filters([_file_of(candidate) for candidate in found])
    return [replace(candidate, bloom=blooms.get(_file_of(candidate))) for candidate in found]


def _file_of(candidate: Candidate) -> FileOf:
    assert candidate.slice.base is not None
    return FileOf(candidate.slice.partition, candidate.slice.base.name.text)


def _make(traits: IndexTraits, config: Config, table: TableConfig) -> BloomIndex:
    del table
    by_range, by_metadata = "hoodie.bloom.index.prune.by.ranges", "hoodie.bloom.index.use.metadata"
    return BloomIndex(traits, config.flag(by_range), config.flag(by_metadata))


KINDS: Final = (
    IndexKind("BLOOM", _make),
    IndexKind("GLOBAL_BLOOM", _make, is_global=True, moves_key="hoodie.bloom.index.update.partition.path"),
)
