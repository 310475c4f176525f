"""Writes whole files, in bulk, in a form that both generations of Hudi's readers take.

1. Keys ascend as unsigned bytes; input in another order is sorted. Hudi wants keys to be distinct.
2. Entries, index and last key have keys in HBase's long form. Hudi 1.x looks at the front of it only.
3. Each block has one checksum (of zeros): Hudi's own reader loses entries where there are more.
4. A block is full when the next entry would exceed `block_bytes`; entries with equal keys stay in one block. The
   index has one level, as Hudi 1.x writes it.
5. Equal input gives equal bytes: the only clock is `created_ms`.

It does not know Avro: values are bytes, `schema` is text. Layout: docs/format/hfile.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.hfile import file_info
from hoodie.hfile.block import DATA, FILE_INFO, HEADER_BYTES, MAX_BLOCK_BYTES, META, ROOT_INDEX, encode_block
from hoodie.hfile.block_index import KEY_SUFFIX, encode_index_entry, full_key
from hoodie.hfile.codec import Codec
from hoodie.hfile.entries import KEY_PREFIX_BYTES, MAX_KEY_BYTES
from hoodie.hfile.trailer import Trailer, encode_trailer

BLOOM_META: Final = "bloomFilter"

Offsets: TypeAlias = npt.NDArray[np.int64]

_HEAD: Final = np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">i2")])
_VERSION_BYTE: Final = b"\0"
_KEY_EXTRA_BYTES: Final = KEY_PREFIX_BYTES + len(KEY_SUFFIX)


@dataclass(frozen=True, slots=True)
class HFileOptions:
    """How files are laid out. None of it changes what readers find.

    `codec` (`hoodie.hfile.compression.algorithm`): GZ or NONE. `level`: of GZ, 1 (quick) to 9 (small).
    `block_bytes` (`hoodie.hfile.block.size`): of entries before compression; smaller blocks make look-ups cheaper and
    the index larger. `allow_duplicates` (`hoodie.hfile.writes.allow.duplicates`): take equal keys, in input order.
    `last_wins`: of entries with equal keys the last is taken.
    """

    codec: Codec = Codec.GZ
    level: int = 6
    block_bytes: int = 64 * 1024
    allow_duplicates: bool = False
    last_wins: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.level <= 9 or not 1024 <= self.block_bytes <= MAX_BLOCK_BYTES:
            raise Invalid(
                f"HFiles cannot be written with level {self.level} and blocks of {self.block_bytes} bytes",
                remedy=f"Use a level of 1 to 9 and blocks of 1024 to {MAX_BLOCK_BYTES} bytes",
            )


@dataclass(frozen=True, slots=True)
class BloomMeta:
    """The bloom filter of a base file's keys: its type and base64 text."""

    type_code: str
    text: str


def encode_hfile(
    keys: pa.Array,
    values: pa.Array,
    *,
    schema: str | None = None,
    bloom: BloomMeta | None = None,
    info: Mapping[str, bytes] | None = None,
    created_ms: int = 0,
    options: HFileOptions | None = None,
) -> bytes:
    """A whole file with the value `values[i]` under `keys[i]`, both text or bytes without NULL.

    `schema`: Avro schema of the values, JSON text. `bloom`: goes in with the smallest and largest key, as in base files
    of the metadata table. `info`: further names of the file info. `created_ms`: since 1970.

    Memory: about three times the entries.

    Raises:
        Invalid: a NULL, a key of more than 32767 bytes, equal keys without `allow_duplicates`, an entry that is larger
            than a block can be, or a codec that is not written.
    """
    chosen = options or HFileOptions()
    sorted_keys, sorted_values = _in_order(_binary(keys, "key"), _binary(values, "value"), chosen)
    offsets, entries = _entries(sorted_keys, sorted_values)
    data = _data_blocks(sorted_keys, offsets, entries, chosen)
    parts = list(data.blocks)
    position = sum(len(block) for block in parts)
    meta_index = b""
    if bloom is not None:
        block = encode_block(META, bloom.text.encode(), chosen.codec, chosen.level)
        meta_index = encode_index_entry(BLOOM_META.encode(), position, len(block))
        parts.append(block)
        position += len(block)
    opening = [encode_block(ROOT_INDEX, content, chosen.codec, chosen.level) for content in (data.index, meta_index)]
    pairs = {**(info or {}), **_info(sorted_keys, sorted_values, schema, bloom, created_ms)}
    trailer = Trailer(
        file_info_offset=position + sum(len(block) for block in opening),
        load_on_open_offset=position,
        data_index_bytes=len(data.index),
        total_bytes=len(entries) + HEADER_BYTES * len(data.blocks),
        data_index_count=len(data.blocks),
        meta_index_count=0 if bloom is None else 1,
        entry_count=len(sorted_keys),
        index_levels=1,
        first_data_offset=0 if data.blocks else -1,
        last_data_offset=data.last_offset,
        codec=chosen.codec,
    )
    file_info_block = encode_block(FILE_INFO, file_info.encode_file_info(pairs), chosen.codec, chosen.level)
    return b"".join([*parts, *opening, file_info_block, encode_trailer(trailer)])


@dataclass(frozen=True, slots=True)
class _DataBlocks:
    blocks: tuple[bytes, ...]
    index: bytes
    last_offset: int


def _data_blocks(keys: pa.Array, offsets: Offsets, entries: memoryview, options: HFileOptions) -> _DataBlocks:
    """The blocks, and the content of their index."""
    blocks: list[bytes] = []
    index: list[bytes] = []
    previous, position = -1, 0
    for first, end in _cuts(keys, offsets, options):
        content = entries[offsets[first] : offsets[end]]
        if len(content) > MAX_BLOCK_BYTES:
            raise Invalid(f"An entry of {len(content)} bytes is larger than a block of an HFile can be")
        block = encode_block(DATA, content, options.codec, options.level, previous)
        index.append(encode_index_entry(full_key(keys[first].as_py()), position, len(block)))
        blocks.append(block)
        previous = position
        position += len(block)
    return _DataBlocks(tuple(blocks), b"".join(index), previous)


def _cuts(keys: pa.Array, offsets: Offsets, options: HFileOptions) -> Iterator[tuple[int, int]]:
    """First entry of each block, and the one after its last."""
    count = len(keys)
    first = 0
    while first < count:
        fitting = int(np.searchsorted(offsets, offsets[first] + options.block_bytes, side="right")) - 1
        end = min(max(fitting, first + 1), count)
        while options.allow_duplicates and end < count and keys[end].equals(keys[end - 1]):
            end += 1
        yield first, end
        first = end


def _entries(keys: pa.Array, values: pa.Array) -> tuple[Offsets, memoryview]:
    """All entries one after the other, and where each starts (one place more than entries)."""
    count = len(keys)
    heads = np.empty(count, _HEAD)
    rows = pc.binary_length(keys).to_numpy()
    heads["row"] = rows
    heads["key"] = rows + _KEY_EXTRA_BYTES
    heads["value"] = pc.binary_length(values).to_numpy()
    places = np.arange(0, (count + 1) * _HEAD.itemsize, _HEAD.itemsize, dtype=np.int64)
    head = pa.Array.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(places), pa.py_buffer(heads)])
    suffix, version, nothing = (pa.scalar(text, pa.large_binary()) for text in (KEY_SUFFIX, _VERSION_BYTE, b""))
    joined = pc.binary_join_element_wise(head, keys, suffix, values, version, nothing)
    if isinstance(joined, pa.ChunkedArray):
        joined = joined.combine_chunks()
    _, offsets, data = joined.buffers()
    return np.frombuffer(offsets, np.int64)[: count + 1], memoryview(data if data is not None else b"")


def _binary(column: pa.Array, what: str) -> pa.Array:
    plain = column.cast(pa.large_binary())
    if plain.null_count:
        raise Invalid(f"A {what} of an HFile cannot be NULL", remedy="Leave such rows out")
    return plain


def _in_order(keys: pa.Array, values: pa.Array, options: HFileOptions) -> tuple[pa.Array, pa.Array]:
    """Both by ascending key; rows with equal keys stay in their order, or the last of them is left."""
    if len(keys) != len(values):
        raise Invalid(f"{len(keys)} keys for {len(values)} values")
    if len(keys) and pc.max(pc.binary_length(keys)).as_py() > MAX_KEY_BYTES:
        raise Invalid(f"A key is longer than the {MAX_KEY_BYTES} bytes an HFile can store", remedy="Use shorter keys")
    if len(keys) < 2 or pc.all(pc.less(keys[:-1], keys[1:])).as_py():
        return keys, values
    order = pc.array_sort_indices(keys)
    keys = keys.take(order)
    if not options.allow_duplicates:
        is_equal = pc.equal(keys[:-1], keys[1:])
        equal = pc.index(is_equal, True).as_py()
        if equal >= 0 and options.last_wins:
            is_last = pc.invert(pa.concat_arrays([is_equal, pa.array([False])]))
            keys, order = keys.filter(is_last), order.filter(is_last)
        elif equal >= 0:
            raise Invalid(
                f"The key {keys[equal].as_py()!r} occurs more than once",
                remedy="Merge its rows first, or set hoodie.hfile.writes.allow.duplicates=true",
            )
    return keys, values.take(order)


def _info(
    keys: pa.Array, values: pa.Array, schema: str | None, bloom: BloomMeta | None, created_ms: int
) -> dict[str, bytes]:
    """The file info: what every file has, then what depends on the input."""
    count = max(len(keys), 1)
    key_bytes, value_bytes = (pc.sum(pc.binary_length(column)).as_py() or 0 for column in (keys, values))
    pairs = {
        file_info.ENTRY_VERSION: (1).to_bytes(4, "big"),
        file_info.MAX_MEMSTORE_TIME: bytes(8),
        file_info.AVG_KEY_BYTES: ((key_bytes + _KEY_EXTRA_BYTES * len(keys)) // count).to_bytes(4, "big"),
        file_info.AVG_VALUE_BYTES: (value_bytes // count).to_bytes(4, "big"),
        file_info.CREATED: created_ms.to_bytes(8, "big"),
    }
    if schema is not None:
        pairs[file_info.SCHEMA] = schema.encode()
    if len(keys):
        pairs[file_info.LAST_KEY] = full_key(keys[-1].as_py())
    if bloom is not None:
        pairs[file_info.BLOOM_TYPE] = bloom.type_code.encode()
        if len(keys):
            pairs[file_info.MIN_RECORD_KEY] = keys[0].as_py()
            pairs[file_info.MAX_RECORD_KEY] = keys[-1].as_py()
    return pairs
