"""The fold of a log: of all versions of each key one, exactly as if pairs were merged in the order of the log.

1. Where versions win as a whole the outcome is a position: of the newest version, or of the one with the greatest
   ordering value. No column is touched before the winners are taken, once.
2. Else versions are taken in *rounds*: the k-th round has the k-th version of every key that has so many, and meets the
   outcome of the rounds before it, all pairs at once. `_higher` decides each pair by ordering values, with the two
   exceptions deletes bring (below).
3. With a fill, or partial rows, each column of the outcome comes from a version of its own. Rounds are decided first,
   on ordering values; then every column replays them on positions: it comes from the higher version where that one
   *says* something (the value is not NULL; not the unavailable value; the column is in its block), else from the lower
   one. Again values are taken once, at the end. Where a side is a delete the higher version wins as a whole.
4. A merger of the user makes new rows; they join the versions, and the outcome is their position.

Deletes without ordering value go by time: such a delete beats what is older, and whatever is newer beats it, except
that an entry of a delete block does not take its place (it would forget that the delete had no value).

A key keeps the place of its first version. Cost: sorting the keys' codes, and work on positions in proportion to the
versions; the number of rounds is the largest number of versions a key has, usually of blocks it is in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.merge.mergers import Merger, merged_by
from hoodie.merge.rules import Fill
from hoodie.merge.versions import BY_COLUMNS, BY_TIME, DELETE, LISTED, Versions
from hoodie.records import newer_wins
from hoodie.records.ordering import Mask, Positions, greatest


@dataclass(frozen=True, eq=False)
class Folded:
    """One version for each key, keys in order of their first appearance.

    `lacking`: for columns that no partial version of some keys had, the mask of those keys.
    """

    versions: Versions
    lacking: Mapping[str, Mask] = field(default_factory=dict)


def fold(versions: Versions) -> Folded:
    """The outcome of merging all versions of each key."""
    distinct = versions.keys.dictionary_encode()
    codes: Positions = distinct.indices.to_numpy().astype(np.int64)
    count = len(distinct.dictionary)
    if count == len(versions):
        return Folded(versions, _lacking(versions))
    rules = versions.layout.rules
    if rules.custom is not None:
        return Folded(_fold_by(rules.custom, versions, codes, count))
    if rules.in_log.fill is None and not versions.has_partial_rows:
        return Folded(versions.take(_fold_whole(versions, codes, count)))
    return _fold_columns(versions, codes, count)


def goes_by_time(versions: Versions, at: Positions) -> Mask:
    """Which of the versions at these positions are deletes without ordering value."""
    return _flagged(versions, at, BY_TIME)


def is_delete(versions: Versions, at: Positions) -> Mask:
    """Which of the versions at these positions are deletes."""
    return _flagged(versions, at, DELETE)


def says(values: pa.Array, fill: Fill | None, unavailable: str | None) -> Mask:
    """Which values mean something: under a fill not those that give way to the other version."""
    if fill == "IGNORE_DEFAULTS":
        said: Mask = values.is_valid().to_numpy(zero_copy_only=False)
        return said
    types = pa.types
    if fill == "FILL_UNAVAILABLE" and unavailable is not None:
        marker = unavailable if types.is_string(values.type) else unavailable.encode()
        if types.is_string(values.type) or types.is_binary(values.type):
            is_marker = pc.equal(values, pa.scalar(marker, values.type)).fill_null(False)
            return ~np.asarray(is_marker.to_numpy(zero_copy_only=False))
    return np.ones(len(values), dtype=np.bool_)


def rounds(codes: Positions) -> Iterator[Positions]:
    """Positions of the first, second, third ... version of each key, ascending. Each key is in a round at most once."""
    if not len(codes):
        return
    by_key = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(codes[by_key]) != 0))
    sizes = np.diff(np.append(starts, len(codes)))
    number = np.empty(len(codes), dtype=np.int64)
    number[by_key] = np.arange(len(codes)) - np.repeat(starts, sizes)
    by_round = np.argsort(number, kind="stable")
    yield from np.split(by_round, np.cumsum(np.bincount(number))[:-1])


@dataclass(frozen=True, slots=True, eq=False)
class _Round:
    """Pairs that met: `where` are codes of keys, `newer` positions. `higher`: the newer version is the higher one.
    `both`: no side is a delete. `by_columns`: the columns in their blocks count, not the fill.
    """

    where: Positions
    newer: Positions
    higher: Mask
    both: Mask
    by_columns: Mask


def _fold_whole(versions: Versions, codes: Positions, count: int) -> Positions:
    """Position of the version that wins, for each key."""
    if not _compares(versions):
        winner = np.empty(count, dtype=np.int64)
        winner[codes] = np.arange(len(codes))  # NumPy keeps the last of repeated targets
        return winner
    # The fold, told at once. After the last delete by time of a key, entries of delete blocks do not count until a row
    # comes; from then on, or from the start where there is no such delete, the greatest ordering value wins.
    position = np.arange(len(codes))
    by_time, listed = (_flagged(versions, position, flag) for flag in (BY_TIME, LISTED))
    winner = np.full(count, -1, dtype=np.int64)
    winner[codes[by_time]] = position[by_time]
    since = winner[codes]
    rows = np.flatnonzero((position > since) & ~listed)[::-1]
    first_row = np.full(count, len(codes), dtype=np.int64)
    first_row[codes[rows]] = rows
    rivals = np.flatnonzero((position > since) & ((since < 0) | (position >= first_row[codes])))
    if len(rivals):
        chosen = pa.array(rivals)
        best = rivals[greatest(codes[rivals], [values.take(chosen) for values in versions.ordering])]
        winner[codes[best]] = best
    return winner


def _fold_by(merger: Merger, versions: Versions, codes: Positions, count: int) -> Versions:
    """The outcome where `merger` decides between rows."""
    layout = versions.layout
    winner = np.empty(count, dtype=np.int64)
    steps = rounds(codes)
    first = next(steps)
    winner[codes[first]] = first
    for newer in steps:
        where = codes[newer]
        older = winner[where]
        outcome = np.where(_higher(versions, older, newer), newer, older)
        both = ~is_delete(versions, older) & ~is_delete(versions, newer)
        if both.any():
            pairs = (versions.take(older[both]).rows(), versions.take(newer[both]).rows())
            merged = layout.of_rows(merged_by(merger, *pairs, layout.key))
            outcome[both] = np.arange(len(versions), len(versions) + len(merged))
            versions = versions.and_then(merged)
        winner[where] = outcome
    return versions.take(winner)


def _fold_columns(versions: Versions, codes: Positions, count: int) -> Folded:
    """The outcome where each column has its own source."""
    rules, schema = versions.layout.rules, versions.layout.schema
    steps = rounds(codes)
    first = next(steps)
    start = np.empty(count, dtype=np.int64)
    start[codes[first]] = first
    winner = start.copy()
    met = [_meet(versions, codes, newer, winner) for newer in steps]
    lacking: dict[str, Mask] = {}
    columns = []
    for values, name in zip(versions.table.columns, versions.table.schema.names, strict=True):
        flat, source = values.combine_chunks(), winner
        if name in schema.names:
            has = versions.has(name)
            said = says(flat, rules.in_log.fill, rules.unavailable_value)
            if not (has.all() and said.all()):
                source = _replayed(start, met, has, said)
            if not has.all() and not has[source].all():
                lacking[name] = ~has[source]
        columns.append(flat.take(pa.array(source)))
    table = pa.Table.from_arrays(columns, schema=versions.table.schema)
    return Folded(replace(versions, table=table), lacking)


def _meet(versions: Versions, codes: Positions, newer: Positions, winner: Positions) -> _Round:
    """The pairs of a round; `winner` is brought up to date."""
    where = codes[newer]
    older = winner[where]
    higher = _higher(versions, older, newer)
    both = ~is_delete(versions, older) & ~is_delete(versions, newer)
    winner[where] = np.where(higher, newer, older)
    return _Round(where, newer, higher, both, _flagged(versions, newer, BY_COLUMNS))


def _replayed(start: Positions, met: Sequence[_Round], has: Mask, said: Mask) -> Positions:
    """For each key the version one column comes from."""
    source = start.copy()
    for pairs in met:
        older = source[pairs.where]
        upper = np.where(pairs.higher, pairs.newer, older)
        lower = np.where(pairs.higher, older, pairs.newer)
        speaks = np.where(pairs.by_columns, has[upper], said[upper])
        source[pairs.where] = np.where(pairs.both & ~speaks, lower, upper)
    return source


def _higher(versions: Versions, older: Positions, newer: Positions) -> Mask:
    """Per pair, whether the newer version is the higher one."""
    if not _compares(versions):
        return np.ones(len(newer), dtype=np.bool_)
    old, new = pa.array(older), pa.array(newer)
    higher = newer_wins(
        [values.take(new) for values in versions.ordering], [values.take(old) for values in versions.ordering]
    )
    before = goes_by_time(versions, older)
    return (higher | before | goes_by_time(versions, newer)) & ~(before & _flagged(versions, newer, LISTED))


def _compares(versions: Versions) -> bool:
    return bool(versions.layout.rules.in_log.ordered and versions.layout.ordering)


def _flagged(versions: Versions, at: Positions, flag: int) -> Mask:
    flagged: Mask = np.not_equal(versions.flags[at] & flag, 0)
    return flagged


def _lacking(versions: Versions) -> Mapping[str, Mask]:
    """The columns that some rows do not have."""
    if not versions.has_partial_rows:
        return {}
    masks = ((name, ~versions.has(name)) for name in versions.layout.schema.names)
    return {name: mask for name, mask in masks if mask.any()}
