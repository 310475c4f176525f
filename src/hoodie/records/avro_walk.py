"""Where one Avro value ends, found byte by byte: for the few rows with very long arrays.

Reading in step (`avro_cursor.py`) costs the same for one row as for thousands. When only a few rows still have items,
going from item to item in plain Python is faster. Nothing is decoded here; the items are, in step, once their starts
are known.

1. A walk never goes back: lengths and counts below zero are damage. So it ends at the latest where the bytes end.
2. Items of a fixed length are passed over at once, those of no bytes too.
3. A position may pass the end of its row; who calls compares. Behind the last byte an `IndexError` ends the walk.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from hoodie.records.avro_cursor import NO_BRANCH, TOO_LONG_NUMBER, TOO_LONG_RUN, Damage
from hoodie.records.avro_nodes import Enum, Fixed, Leaf, Node, Record, Repeated

Walk = Callable[[bytes, int], int]
"""The position behind the value that starts at one."""

_MAX_SHIFT = 63


@lru_cache(maxsize=1024)
def walk_of(node: Node) -> Walk:
    """The walk over values of `node`."""
    if node.extent.is_fixed:
        return _walk_fixed(node.extent.min_bytes)
    match node:
        case Leaf(kind=kind):
            return _walk_run if kind in ("string", "bytes") else _walk_number
        case Enum() | Fixed():
            return _walk_number
        case Record(fields=fields):
            return _walk_record(tuple(walk_of(field) for field in fields))
        case Repeated(item=item):
            return _walk_blocks(item)
    return _walk_union(tuple(walk_of(branch) for branch in node.branches))


def walk_items(item: Node, data: bytes, at: int, count: int) -> tuple[list[int], int]:
    """Where `count` items start, and the position behind the last."""
    starts: list[int] = []
    walk = walk_of(item)
    for _ in range(count):
        starts.append(at)
        at = walk(data, at)
    return starts, at


def read_count(data: bytes, at: int) -> tuple[int, int]:
    """Items of the block of an array that starts here (0: the array is over), and the position behind its head."""
    count, at = _read_number(data, at)
    if count < 0:
        _, at = _read_number(data, at)
    return abs(count), at


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    bits = byte & 0x7F
    shift = 7
    while byte > 0x7F:
        if shift > _MAX_SHIFT:
            raise Damage(at, TOO_LONG_NUMBER)
        byte = data[at]
        at += 1
        bits |= (byte & 0x7F) << shift
        shift += 7
    return (bits >> 1) ^ -(bits & 1), at


def _walk_number(data: bytes, at: int) -> int:
    while data[at] > 0x7F:
        at += 1
    return at + 1


def _walk_run(data: bytes, at: int) -> int:
    byte = data[at]
    if byte < 0x80 and not byte & 1:
        return at + 1 + (byte >> 1)
    size, at = _read_number(data, at)
    if size < 0:
        raise Damage(at, TOO_LONG_RUN)
    return at + size


def _walk_fixed(size_bytes: int) -> Walk:
    return lambda data, at: at + size_bytes


def _walk_record(walks: tuple[Walk, ...]) -> Walk:
    if len(walks) == 1:
        return walks[0]

    def walk(data: bytes, at: int) -> int:
        for field in walks:
            at = field(data, at)
        return at

    return walk


def _walk_union(walks: tuple[Walk, ...]) -> Walk:
    # The byte of every branch that has one byte, which is every branch of most unions.
    quick = {2 * code: walk for code, walk in enumerate(walks[:64])}

    def walk(data: bytes, at: int) -> int:
        over = quick.get(data[at])
        if over is not None:
            return over(data, at + 1)
        code, behind = _read_number(data, at)
        if not 0 <= code < len(walks):
            raise Damage(at, NO_BRANCH)
        return walks[code](data, behind)

    return walk


def _walk_blocks(item: Node) -> Walk:
    size_bytes = item.extent.min_bytes if item.extent.is_fixed else None
    over = walk_of(item)

    def walk(data: bytes, at: int) -> int:
        while True:
            count, at = read_count(data, at)
            if count == 0:
                return at
            if size_bytes is not None:
                at += count * size_bytes
            else:
                for _ in range(count):
                    at = over(data, at)

    return walk
