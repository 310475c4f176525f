"""Reads a file in ranges: everything in order, or only the blocks that may hold some keys.

1. Opening takes one read of the end of the file; a second one when the indexes do not fit into it. What that read has
   is not read again: a small file takes one read in all.
2. Blocks that lie close together are read in one go, at most 4 MiB (or one block) at a time.
3. Keys are compared as unsigned bytes. Those that Java may have sorted otherwise are looked for in both places.
4. Damage is `Corrupt` with path and offset, also when fewer or more entries come out of a scan than the file says.
5. Both dialects are read: that of HBase's library (Hudi 0.15) and that of Hudi 1.x.

It does not know Avro or metadata tables. Layout: docs/format/hfile.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.hfile import block as blocks
from hoodie.hfile.block import iter_block, parse_block
from hoodie.hfile.block_index import (
    BlockIndex,
    Choice,
    all_blocks,
    blocks_with_keys,
    blocks_with_prefixes,
    ensure_in_order,
    join_indexes,
    keys_below,
    parse_lower_index,
    parse_root_index,
    row_of_key,
)
from hoodie.hfile.cursor import corrupt
from hoodie.hfile.entries import Entry, KeyValues, entries_of, join_entries, parse_entries, seek_entries
from hoodie.hfile.file_info import LAST_KEY, SCHEMA, ensure_plain_entries, parse_file_info
from hoodie.hfile.java_order import has_late_characters, in_either_order, sorted_units
from hoodie.hfile.source import ReadRange, Source, open_source, read_together
from hoodie.hfile.trailer import TRAILER_BYTES, Trailer, parse_trailer

_BATCH_BYTES: Final = 4 * 1024 * 1024
# Up to so many wanted keys a block, blocks are searched one by one and not to their end.
_FEW_KEYS: Final = 16
_MAX_OPENING_BYTES: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class HFile:
    """An open file: what it says about itself is here, entries are read when asked for. Nothing has to be closed.

    `info`: names and values of the file info.
    """

    path: str
    size_bytes: int
    info: Mapping[str, bytes]
    trailer: Trailer
    _source: Source
    _root: BlockIndex
    _meta: BlockIndex

    @property
    def entry_count(self) -> int:
        return self.trailer.entry_count

    @property
    def schema(self) -> str | None:
        """The Avro schema of the values as JSON text, if there is one."""
        text = self.info.get(SCHEMA)
        return None if text is None else text.decode(errors="replace")

    @property
    def first_key(self) -> bytes | None:
        """A key that no key of the file is below, and the first one in files of Hudi; None without entries."""
        return self._root.keys[0] if self._root.keys else None

    @property
    def last_key(self) -> bytes | None:
        """The last key; None without entries."""
        return row_of_key(self.info.get(LAST_KEY, b""))

    def meta(self, name: str) -> bytes | None:
        """Content of the meta block with this name, e.g. `bloomFilter`; None when there is none. One read.

        Raises:
            Corrupt: the block is damaged.
        """
        wanted = [at for at, key in enumerate(self._meta.keys) if key == name.encode()]
        return next((content for _, content in self._contents(self._meta.take(wanted[:1]), blocks.META)), None)

    def scan(self) -> Iterator[KeyValues]:
        """All entries in the order of the file, some megabytes at a time; nothing for a file without entries.

        Raises:
            Corrupt: a block is damaged, or there are not as many entries as the file says; what was given before is
                good.
        """
        count = 0
        for part in self._entries(self._data_blocks(all_blocks)):
            count += len(part)
            yield part
        if count != self.entry_count:
            raise corrupt(self.path, self._source.at(0), f"{count} entries are there instead of {self.entry_count}")

    def lookup(self, keys: pa.Array | Sequence[bytes]) -> KeyValues:
        """The entries whose key is one of `keys` (text or bytes, in any order), in the order of the file.

        Only blocks that may hold one of them are read. Cost: those blocks, and sorting the keys.

        Raises:
            Corrupt: a block is damaged.
            Invalid: the answer is larger than 2 GiB.
        """
        wanted = _sorted_distinct(keys)
        choice = blocks_with_keys(wanted)
        ordered = not has_late_characters(wanted)
        if not ordered:
            choice = in_either_order(choice, blocks_with_keys(sorted_units(wanted)))
        index = self._data_blocks(choice)
        if ordered and len(wanted) <= _FEW_KEYS * len(index):
            return entries_of([entry for entries in self._seek(index, wanted) for entry in entries])
        found = (
            part.kept(pc.is_in(part.keys, value_set=_between_ends(wanted, part.keys))) for part in self._entries(index)
        )
        return join_entries([part for part in found if len(part)])

    def with_prefixes(self, prefixes: Sequence[bytes]) -> KeyValues:
        """The entries whose key starts with one of `prefixes` (in any order), in the order of the file.

        Only blocks that may hold one of them are read.

        Raises:
            Corrupt: a block is damaged.
            Invalid: the answer is larger than 2 GiB.
        """
        wanted = sorted(set(prefixes))
        choice = blocks_with_prefixes(wanted)
        starts = pa.array(wanted, pa.binary())
        if has_late_characters(starts):
            choice = in_either_order(choice, blocks_with_prefixes(sorted_units(starts).to_pylist()))
        index = self._data_blocks(choice)
        found = (part.kept(_start_with(part.keys, wanted)) for part in self._entries(index))
        return join_entries([part for part in found if len(part)])

    def _seek(self, index: BlockIndex, wanted: pa.Array) -> Iterator[list[Entry]]:
        """Entries of data blocks with a few ascending keys, block by block."""
        first = 0
        for at, (offset, data) in enumerate(self._stored(index)):
            # Of the blocks that may hold a key none is left out: what is not above the start of the next one is here.
            following = index.keys[at + 1] if at + 1 < len(index) else None
            end = len(wanted) if following is None else keys_below(wanted, following + b"\0", first)
            keys = wanted[first:end].to_pylist()
            place = self._source.at(offset)
            if keys:
                pieces = iter_block(data, blocks.DATA, self.trailer.codec, self.path, place)
                yield seek_entries(pieces, keys, self.path, place)
            first = end - 1 if keys and keys[-1] == following else end

    def _entries(self, index: BlockIndex) -> Iterator[KeyValues]:
        """All entries of data blocks, several blocks at a time."""
        held: list[tuple[int, bytes]] = []
        held_bytes = 0
        for offset, content in self._contents(index, blocks.DATA):
            held.append((self._source.at(offset), content))
            held_bytes += len(content)
            if held_bytes >= _BATCH_BYTES:
                yield parse_entries(held, self.path)
                held, held_bytes = [], 0
        if held_bytes:
            yield parse_entries(held, self.path)

    def _data_blocks(self, choice: Choice) -> BlockIndex:
        """The chosen data blocks, found from the root down."""
        index = self._root.take(choice(self._root))
        for level in range(self.trailer.index_levels - 1, 0, -1):
            magic = blocks.LEAF_INDEX if level == 1 else blocks.INTERMEDIATE_INDEX
            index = join_indexes(
                [
                    parse_lower_index(content, self.path, self._source.at(offset))
                    for offset, content in self._contents(index, magic)
                ]
            )
            self._ensure_in_order(index)
            index = index.take(choice(index))
        return index

    def _contents(self, index: BlockIndex, magic: bytes) -> Iterator[tuple[int, bytes]]:
        """Offset and content of each block, in order."""
        for offset, data in self._stored(index):
            content, _ = parse_block(data, magic, self.trailer.codec, self.path, self._source.at(offset))
            yield offset, content

    def _stored(self, index: BlockIndex) -> Iterator[tuple[int, memoryview]]:
        """Offset and bytes of each block, in order."""
        for first, end in read_together(index):
            start = index.offsets[first]
            data = memoryview(self._source.read(start, index.offsets[end - 1] + index.sizes[end - 1] - start))
            for at in range(first, end):
                offset = index.offsets[at]
                yield offset, data[offset - start : offset - start + index.sizes[at]]

    def _ensure_in_order(self, index: BlockIndex) -> None:
        end = self.trailer.load_on_open_offset
        ensure_in_order(index, end, self.path, self._source.at(end))


def open_hfile(read: ReadRange, size_bytes: int, path: str, *, start: int = 0) -> HFile:
    """The HFile of `size_bytes` whose bytes `read` gives: `partial(storage.read_range, path)` for a file of its own.

    `path` is for errors, as is `start`: where the HFile lies in that file (the content of a log block does not lie at
    0). Cost: one read, two when the indexes are large.

    Raises:
        Corrupt: not an HFile, cut short, or damaged in what is read when opening.
        Unsupported: an HFile of a kind nobody writes for Hudi.
    """
    if size_bytes < TRAILER_BYTES:
        raise corrupt(path, start, f"{size_bytes} bytes are no HFile, its trailer alone has {TRAILER_BYTES}")
    source = open_source(read, size_bytes, path, start)
    trailer_at = size_bytes - TRAILER_BYTES
    trailer = parse_trailer(source.read(trailer_at, TRAILER_BYTES), size_bytes, path, source.at(trailer_at))
    opening_at = trailer.load_on_open_offset
    if trailer_at - opening_at > _MAX_OPENING_BYTES:
        raise corrupt(path, source.at(opening_at), f"indexes of {trailer_at - opening_at} bytes")
    opening = memoryview(source.read(opening_at, trailer_at - opening_at))

    def content_of(magic: bytes, offset: int) -> tuple[bytes, int]:
        piece = opening[offset - opening_at :]
        content, size = parse_block(piece, magic, trailer.codec, path, source.at(offset))
        return content, offset + size

    root, meta_at = content_of(blocks.ROOT_INDEX, opening_at)
    meta, _ = content_of(blocks.ROOT_INDEX, meta_at)
    info_content, _ = content_of(blocks.FILE_INFO, trailer.file_info_offset)
    info = parse_file_info(info_content, path, source.at(trailer.file_info_offset))
    ensure_plain_entries(info, path)
    root_index = parse_root_index(root, trailer.data_index_count, path, source.at(opening_at))
    meta_index = parse_root_index(meta, trailer.meta_index_count, path, source.at(meta_at), is_meta=True)
    for index in (root_index, meta_index):
        ensure_in_order(index, opening_at, path, source.at(opening_at))
    return HFile(path, size_bytes, info, trailer, source, root_index, meta_index)


def _sorted_distinct(keys: pa.Array | Sequence[bytes]) -> pa.Array:
    """The keys as a binary array, ascending as unsigned bytes."""
    given = keys.cast(pa.binary()) if isinstance(keys, pa.Array) else pa.array(keys, pa.binary())
    wanted = given.drop_null()
    if len(wanted) < 2 or pc.all(pc.less(wanted[:-1], wanted[1:])).as_py():
        return wanted
    distinct = wanted.unique()
    return distinct.take(pc.sort_indices(distinct))


def _between_ends(wanted: pa.Array, keys: pa.Array) -> pa.Array:
    """Of ascending wanted keys, those not below the first and not above the last of the others."""
    bounds = pc.min_max(keys)
    first = keys_below(wanted, bounds["min"].as_py())
    return wanted[first : keys_below(wanted, bounds["max"].as_py() + b"\0", first)]


def _start_with(keys: pa.Array, prefixes: Sequence[bytes]) -> pa.Array:
    """Which keys start with one of the prefixes: one pass for each length that prefixes have."""
    hits = (
        pc.is_in(
            pc.binary_slice(keys, 0, length),
            value_set=pa.array([prefix for prefix in prefixes if len(prefix) == length], pa.binary()),
        )
        for length in {len(prefix) for prefix in prefixes}
    )
    return reduce(pc.or_, hits)
