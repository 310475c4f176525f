"""SIMPLE and GLOBAL_SIMPLE: every base file may have a key, so the key columns of all of them are read.

Keys that are in log files only it does not see: slices without a base file are refused, they come from another index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.index.index_kind import IndexKind
from hoodie.index.keyed_rows import KeyedRows
from hoodie.index.write_index import Candidate, IndexedTable, IndexTraits, PlainIndex, PlainIndexedWrite
from hoodie.spec import TableConfig
from hoodie.view import FileSlice


@dataclass(frozen=True, slots=True)
class SimpleIndex(PlainIndex):
    """Reads the key columns of the partition's base files, or of the table's."""

    traits: IndexTraits

    def begin(self, table: IndexedTable, rows: KeyedRows) -> SimpleIndexedWrite:
        del rows
        return SimpleIndexedWrite(self.traits, table)


@dataclass(frozen=True, slots=True)
class SimpleIndexedWrite(PlainIndexedWrite):
    """A `SimpleIndex` at work."""

    traits: IndexTraits
    table: IndexedTable

    def tag(self, asked: KeyedRows) -> list[Candidate]:
        return every_base_file(self.traits, self.table, asked)


def every_base_file(traits: IndexTraits, table: IndexedTable, asked: KeyedRows) -> list[Candidate]:
    """Every slice whose partition has asked keys (every slice at all, for a global index), with these keys.

    Raises:
        Invalid: one has log files only.
    """
    if traits.is_global:
        whole = asked.keys()
        found = [Candidate(piece, whole) for piece in table.slices]
    else:
        slices = {name: table.slices_of[name] for name in asked.partitions if name in table.slices_of}
        keys = {name: asked.keys(name) for name in slices}
        found = [Candidate(piece, keys[name]) for name, pieces in slices.items() for piece in pieces]
    ensure_base_files(traits, table, [candidate.slice for candidate in found])
    return found


def ensure_base_files(traits: IndexTraits, table: IndexedTable, slices: Sequence[FileSlice]) -> None:
    """Raises Invalid when one of the slices has log files only."""
    hidden = next((piece for piece in slices if piece.base is None), None)
    if hidden is not None:
        raise Invalid(
            f"File group {hidden.file_id} has log files only, where index {traits.name} does not find keys",
            remedy="Write with the index the table was made with (hoodie.index.type), or compact the table first",
            table=table.handle.config.name,
        )


def _make(traits: IndexTraits, config: Config, table: TableConfig) -> SimpleIndex:
    del config, table
    return SimpleIndex(traits)


KINDS: Final = (
    IndexKind("SIMPLE", _make),
    IndexKind("GLOBAL_SIMPLE", _make, is_global=True, moves_key="hoodie.simple.index.update.partition.path"),
)
