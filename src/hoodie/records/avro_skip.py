"""Passing over Avro values of many rows in step, and finding where the items of arrays and maps start.

An array says how many items it has but not how long they are, so its items are passed over one after the other: the
first items of all rows together, then the second ones, and so on. Once the starts of all items are known, the items of
all rows are one long column, decoded in step like any other.

Rows that are left when others have no more items are walked one by one (`avro_walk.py`): a map of 100 000 entries in
one row would otherwise take 100 000 rounds over one row.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hoodie.records.avro_cursor import (
    MAX_EMPTY_ITEMS,
    NO_BRANCH,
    TOO_LONG_ARRAY,
    TOO_MANY_EMPTY,
    Cursor,
    Damage,
    Longs,
    Positions,
    cut_off,
)
from hoodie.records.avro_nodes import Enum, Fixed, Leaf, Node, Record, Repeated, Union
from hoodie.records.avro_walk import read_count, walk_items

FEW_ROWS: Final = 64
"""Up to so many rows are walked one by one: a round in step costs about as much as walking that many items."""


def skip(node: Node, cursor: Cursor) -> None:
    """Moves `cursor` behind one value of every row."""
    if not len(cursor):
        return
    if node.extent.is_fixed:
        cursor.move(node.extent.min_bytes)
        return
    match node:
        case Leaf(kind=kind):
            _ = cursor.runs() if kind in ("string", "bytes") else cursor.longs()
        case Enum() | Fixed():
            cursor.longs()
        case Record(fields=fields):
            for field in fields:
                skip(field, cursor)
        case Repeated(item=item):
            item_starts(item, cursor)
        case Union():
            _skip_union(node, cursor)


def item_starts(item: Node, cursor: Cursor) -> tuple[Positions, Longs]:
    """Where each item of an array starts, in row order, and how many items each row has. Moves `cursor` behind it."""
    counts = np.zeros(len(cursor), dtype=np.int64)
    found: list[Positions] = []
    rows = np.arange(len(cursor))
    while len(rows) > FEW_ROWS:
        part = cursor.pick(rows)
        block = part.item_counts(item.extent.min_bytes)
        _pass_block(item, part, block, found)
        cursor.put(rows, part)
        counts[rows] += block
        rows = rows[block > 0]
        _ensure_few_empty(item, int(counts.sum()), cursor)
    for row in rows:
        counts[row] += _walk_array(item, cursor, int(row), found)
        _ensure_few_empty(item, int(counts.sum()), cursor)
    # Rows ascend in the chunk and so do the items of a row: sorted by position, items are in row order.
    starts = np.concatenate(found) if found else np.empty(0, dtype=np.int64)
    starts.sort()
    return starts, counts


def _skip_union(node: Union, cursor: Cursor) -> None:
    codes = cursor.codes(len(node.branches), NO_BRANCH)
    for code, branch in enumerate(node.branches):
        rows = np.flatnonzero(codes == code)
        if len(rows) == len(codes):
            skip(branch, cursor)
        elif len(rows):
            part = cursor.pick(rows)
            skip(branch, part)
            cursor.put(rows, part)


def _pass_block(item: Node, cursor: Cursor, counts: Longs, found: list[Positions]) -> None:
    """Passes over `counts` items of each row; adds their starts to `found`."""
    if item.extent.is_fixed:
        found.append(_evenly(cursor.at, counts, item.extent.min_bytes))
        cursor.at += counts * item.extent.min_bytes
        return
    # Rows with the most items first: those that still have items are then always the rows ahead.
    order = np.argsort(-counts, kind="stable")
    block = cursor.pick(order)
    falling = -counts[order]
    done = 0
    while (left := int(np.searchsorted(falling, -done))) > FEW_ROWS:
        ahead = block.ahead(left)
        found.append(ahead.at.copy())
        skip(item, ahead)
        done += 1
    for row in range(left):
        found.append(_walk_block(item, block, row, -int(falling[row]) - done))
    cursor.put(order, block)


def _evenly(first: Positions, counts: Longs, size_bytes: int) -> Positions:
    """Starts of items that all have the same length."""
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(first, counts) + within * size_bytes


def _walk_array(item: Node, cursor: Cursor, row: int, found: list[Positions]) -> int:
    """Passes over all blocks of the array of one row; how many items it has."""
    total = 0
    while count := _read_count(item, cursor, row):
        found.append(_walk_block(item, cursor, row, count))
        total += count
        _ensure_few_empty(item, total, cursor)
    return total


def _read_count(item: Node, cursor: Cursor, row: int) -> int:
    """Items of the next block of one row, as `Cursor.item_counts` has them for many."""
    try:
        count, at = read_count(cursor.chunk.as_bytes(), int(cursor.at[row]))
    except IndexError:
        raise cut_off(int(cursor.stop[row])) from None
    left = int(cursor.stop[row]) - at
    if left < 0:
        raise cut_off(int(cursor.stop[row]))
    least = item.extent.min_bytes
    if least and count > left // least:
        raise Damage(at, TOO_LONG_ARRAY)
    _ensure_few_empty(item, count, cursor)
    cursor.at[row] = at
    return count


def _walk_block(item: Node, cursor: Cursor, row: int, count: int) -> Positions:
    """Passes over `count` items of one row; where they start."""
    first = cursor.at[row : row + 1]
    if item.extent.is_fixed:
        starts = _evenly(first, np.array([count]), item.extent.min_bytes)
        first += count * item.extent.min_bytes
        return starts
    try:
        walked, at = walk_items(item, cursor.chunk.as_bytes(), int(first[0]), count)
    except IndexError:
        raise cut_off(int(cursor.stop[row])) from None
    if at > cursor.stop[row]:
        raise cut_off(int(cursor.stop[row]))
    first[0] = at
    return np.array(walked, dtype=np.int64)


def _ensure_few_empty(item: Node, items: int, cursor: Cursor) -> None:
    """Items of no bytes are the only ones whose number the bytes do not limit."""
    if item.extent.min_bytes == 0 and items > MAX_EMPTY_ITEMS:
        raise Damage(int(cursor.at[0]), TOO_MANY_EMPTY)
