"""Hudi's keys in the footer of a base file that is made of others: schema, key range and bloom filter of all rows.

1. The range is the union of theirs. Where a file does not say, its keys are read.
2. Bits of filters of one size are joined as long as all keys are what such a filter is made for: then it is the filter
   of all keys, bit for bit.
3. Else keys are read and added to a new filter.
4. One that gets many times the keys it may hold says "maybe" to all; then it is filled without reading a key. Hudi
   joins bits in this case, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hoodie.records.base_file_writer import BaseFileOptions
from hoodie.records.bloom import SIMPLE, BloomFilter, BloomOptions
from hoodie.records.footer import (
    AVRO_SCHEMA_FOOTER_KEY,
    BLOOM_FOOTER_KEY,
    BLOOM_TYPE_FOOTER_KEY,
    MAX_KEY_FOOTER_KEY,
    MIN_KEY_FOOTER_KEY,
    MODEL_FOOTER_KEY,
    BaseFooter,
)
from hoodie.records.key_range import KeyRange, key_range

_HOPELESS: Final = 8
"""Times the keys a filter may hold. For the default rate it lets nine of ten other keys pass then."""

ReadKeys = Callable[[BaseFooter], pa.ChunkedArray]


@dataclass(frozen=True, slots=True)
class KeyFooter:
    """Key/value pairs of a footer, and the key range that is among them."""

    values: Mapping[str, str]
    range: KeyRange | None


def joined_keys(
    footers: Sequence[BaseFooter], avro_schema: str, options: BaseFileOptions, read: ReadKeys | None
) -> KeyFooter:
    """The keys for a file with the rows of all these files. `read` gives the record keys of one; None: rows have no
    keys.
    """
    values = {AVRO_SCHEMA_FOOTER_KEY: avro_schema, MODEL_FOOTER_KEY: "avro"}
    if options.bloom is None or read is None:
        return KeyFooter(values, None)
    keys = _Keys(footers, read)
    values[BLOOM_FOOTER_KEY] = _filter(footers, options.bloom, keys).to_text()
    if options.bloom.filter_type != SIMPLE:
        values[BLOOM_TYPE_FOOTER_KEY] = options.bloom.filter_type
    found = keys.range()
    if found is not None:
        values |= {MIN_KEY_FOOTER_KEY: found.low, MAX_KEY_FOOTER_KEY: found.high}
    return KeyFooter(values, found)


class _Keys:
    """Record keys of the files, read when they are asked for, once."""

    def __init__(self, footers: Sequence[BaseFooter], read: ReadKeys) -> None:
        self._footers = footers
        self._read = read
        self._found: dict[str, KeyRange | None] = {}

    def add_to(self, bloom: BloomFilter) -> None:
        for footer in self._footers:
            keys = self._read(footer)
            bloom.add(keys)
            self._found[footer.path] = key_range(keys)

    def range(self) -> KeyRange | None:
        whole: KeyRange | None = None
        for footer in self._footers:
            part = self._range(footer)
            whole = whole if part is None else part.union(whole)
        return whole

    def _range(self, footer: BaseFooter) -> KeyRange | None:
        if footer.min_key is not None and footer.max_key is not None:
            return KeyRange(footer.min_key, footer.max_key)
        if footer.path not in self._found:
            self._found[footer.path] = key_range(self._read(footer))
        return self._found[footer.path]


def _filter(footers: Sequence[BaseFooter], options: BloomOptions, keys: _Keys) -> BloomFilter:
    rows = sum(footer.rows for footer in footers)
    made = options.new_filter(rows)
    found = _joinable(footers, options, made) if rows <= made.entries else []
    if found:
        for bloom in found:
            made.join(bloom)
    elif rows > _HOPELESS * max(options.entries, options.max_entries):
        made.fill(rows)
    else:
        keys.add_to(made)
    return made


def _joinable(footers: Sequence[BaseFooter], options: BloomOptions, made: BloomFilter) -> list[BloomFilter]:
    """The filters of the files if each is of the size of `made`; else none."""
    found = []
    for footer in footers:
        if footer.bloom_text is None or (footer.bloom_type or SIMPLE) != options.filter_type:
            return []
        bloom = footer.bloom(options.max_entries) if options.is_made_like(footer.bloom_text, footer.rows) else None
        if bloom is None or (bloom.vector_size, bloom.row_count) != (made.vector_size, 1):
            return []
        found.append(bloom)
    return found
