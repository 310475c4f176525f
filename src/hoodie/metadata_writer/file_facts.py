"""What indexes need to know of a file that is being written: its task says so, and nobody reads the file again.

1. A task is told what is needed (`IndexNeeds`), and gives it back beside the statistics of the file (`FileFacts`).
2. It is exactly what reading the file would give: footers and blocks are looked at as they are in the file, by the same
   functions. What they do not say (bounds of floats with NaN, of long texts) the task leaves to a reader of the file.

Pure. It travels to workers and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hoodie.logs import read_blocks
from hoodie.metadata_writer.column_range import ColumnRange
from hoodie.metadata_writer.file_ranges import block_ranges, joined_blocks, said_ranges
from hoodie.records import BaseFooter
from hoodie.records.bloom import SIMPLE


@dataclass(frozen=True, slots=True)
class IndexNeeds:
    """`columns`: those (paths with dots) whose ranges are indexed, in the order of the index. `filters`: bloom filters
    of base files are.
    """

    columns: tuple[str, ...] = ()
    filters: bool = False

    def __bool__(self) -> bool:
        return bool(self.columns) or self.filters

    def joined(self, other: IndexNeeds) -> IndexNeeds:
        """What both need."""
        return IndexNeeds(tuple(dict.fromkeys((*self.columns, *other.columns))), self.filters or other.filters)


@dataclass(frozen=True, slots=True, eq=False)
class FileFacts:
    """What `needs` asked for of one file. `ranges` as `file_ranges` has them, None where the file has to be read for
    them; `bloom` is kind and text of the filter, None where the file has none.
    """

    needs: IndexNeeds
    ranges: tuple[ColumnRange, ...] | None = None
    bloom: tuple[str, str] | None = None


def base_file_facts(needs: IndexNeeds, footer: BaseFooter) -> FileFacts:
    """The facts of a parquet file with this footer."""
    bloom = None if footer.bloom_text is None else (footer.bloom_type or SIMPLE, footer.bloom_text)
    return FileFacts(needs, said_ranges(footer, needs.columns), bloom)


def log_file_facts(needs: IndexNeeds, blocks: Sequence[Mapping[str, ColumnRange]]) -> FileFacts:
    """The facts of a log file with data blocks of these ranges; see `encoded_ranges`."""
    return FileFacts(needs, tuple(joined_blocks(blocks, needs.columns)))


def encoded_ranges(data: bytes, path: str, columns: Sequence[str]) -> list[dict[str, ColumnRange]]:
    """Ranges by column of each data block in bytes that are about to be written to a log file."""
    storage = _Held(data)
    blocks = read_blocks(storage, path, len(data))
    return [block_ranges(storage, block, columns) for block in blocks if block.kind.is_data]


class _Held:
    """A storage of one file in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_range(self, path: str, start: int, length: int) -> bytes:
        del path
        return self._data[start : start + length]
