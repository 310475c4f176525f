"""The `files` partition: which files a partition of the table has, and which partitions there are.

1. A record maps names to size and a tombstone flag. Records of one key are united, oldest first. A name in both: a
   tombstone removes a live entry and stays where it meets none; else the greater size counts and the entry is live.
2. Tombstones that are left are no files.
3. The record of all partitions has their paths as names, and no sizes.

All records are laid out as one long column of entries; only names that occur more than once under one key are looked
at one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Corrupt
from hoodie.metadata.damage import REBUILD
from hoodie.metadata.records import Part

FILES_MAP: Final = "filesystemMetadata"


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Entries of records, grouped: those of `keys[i]` are the ones from `starts[i]` to `starts[i + 1]`."""

    keys: list[str]
    starts: list[int]
    names: list[str]
    sizes: list[int]
    is_deleted: list[bool]

    def live(self) -> dict[str, dict[str, int]]:
        """For each key the names without tombstone, with sizes."""
        found: dict[str, dict[str, int]] = {}
        for key, (start, end) in zip(self.keys, pairwise(self.starts), strict=True):
            entries = zip(self.names[start:end], self.sizes[start:end], self.is_deleted[start:end], strict=True)
            found[key] = {name: size for name, size, is_deleted in entries if not is_deleted}
        return found


def merge_entries(parts: Sequence[Part]) -> Entries:
    """The entries of every key that is not deleted, keys in order of first appearance.

    Raises:
        Corrupt: a record has no map, or a file without name or size.
    """
    flat = [_flat(part) for part in parts]
    keys = pa.concat_arrays([part.keys for part in parts] or [pa.array([], pa.string())]).dictionary_encode()
    codes = keys.indices.to_numpy().astype(np.int64)
    count = len(keys.dictionary)
    alive = _alive(parts, codes, count)
    entries = _joined(flat)
    counts = np.concatenate([np.zeros(0, np.int64), *(one.counts for one in flat)])
    of_key = np.repeat(codes, counts)
    counted = np.repeat(alive, counts)
    if not counted.all():
        of_key, entries = of_key[counted], entries.filter(pa.array(counted))
    order, deleted, sizes = _united(of_key, entries, count < len(codes))
    starts = np.searchsorted(of_key[order], np.arange(count + 1))
    kept = np.zeros(count, dtype=np.bool_)
    kept[codes[alive]] = True
    names = keys.dictionary.to_pylist()
    return Entries(
        [name for name, is_kept in zip(names, kept.tolist(), strict=True) if is_kept],
        [*starts[:-1][kept].tolist(), len(order)],
        entries.column("name").take(pa.array(order)).to_pylist(),
        sizes.tolist(),
        deleted.tolist(),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Flat:
    """Entries of one part; `counts` says how many each of its keys has."""

    counts: npt.NDArray[np.int64]
    entries: pa.Table


_NONE: Final = pa.schema([("name", pa.string()), ("size", pa.int64()), ("isDeleted", pa.bool_())]).empty_table()


def _flat(part: Part) -> _Flat:
    if part.rows is None:
        return _Flat(np.zeros(len(part.keys), np.int64), _NONE)
    maps = part.rows.column(FILES_MAP) if FILES_MAP in part.rows.column_names else None
    if maps is None or maps.null_count:
        raise Corrupt(f"{part.path} has a record of files without files", remedy=REBUILD, path=part.path)
    counts = [np.diff(chunk.offsets.to_numpy()) for chunk in maps.chunks]
    tables = [_entries(chunk) for chunk in maps.chunks]
    found = pa.concat_tables(tables) if tables else _NONE
    if any(column.null_count for column in found.columns):
        raise Corrupt(f"{part.path} has a file without name or size", remedy=REBUILD, path=part.path)
    return _Flat(np.concatenate([np.zeros(0, np.int64), *counts]).astype(np.int64), found)


def _entries(maps: pa.MapArray) -> pa.Table:
    """Names and files of all maps (none is null) in a row."""
    start, end = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
    files = maps.items[start:end]
    found = [maps.keys[start:end], pc.struct_field(files, "size"), pc.struct_field(files, "isDeleted")]
    return pa.Table.from_arrays(found, schema=_NONE.schema)


def _joined(flat: Sequence[_Flat]) -> pa.Table:
    return pa.concat_tables([_NONE, *(one.entries for one in flat)]).combine_chunks()


def _alive(parts: Sequence[Part], codes: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.bool_]:
    """For each row of the parts whether it counts: it is no deletion, and its key was not deleted after it."""
    is_deletion = np.concatenate([np.zeros(0, bool), *(np.full(len(part.keys), part.rows is None) for part in parts)])
    deleted_at = np.full(count, -1, dtype=np.int64)
    deletions = np.flatnonzero(is_deletion)
    deleted_at[codes[deletions]] = deletions
    return np.asarray(np.arange(len(codes)) > deleted_at[codes])


def _united(
    of_key: npt.NDArray[np.int64], entries: pa.Table, has_unions: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Which entries stay, by key, with their tombstone flags and sizes after the union. `has_unions`: some key has more
    than one record; a record alone has every name once.
    """
    deleted = entries.column("isDeleted").to_numpy().copy()
    sizes = entries.column("size").to_numpy().copy()
    if not has_unions:
        return np.arange(len(of_key)), deleted, sizes
    names = entries.column("name").combine_chunks().dictionary_encode()
    pairs = of_key * max(1, len(names.dictionary)) + names.indices.to_numpy()
    by_pair = np.argsort(pairs, kind="stable")
    heads = np.flatnonzero(np.diff(pairs[by_pair], prepend=-1))
    stays = np.ones(len(heads), dtype=np.bool_)
    ends = np.append(heads[1:], len(pairs))
    for head in np.flatnonzero(ends - heads > 1).tolist():
        versions = by_pair[heads[head] : ends[head]].tolist()
        state = _fold([(int(sizes[n]), bool(deleted[n])) for n in versions])
        stays[head] = state is not None
        if state is not None:
            sizes[versions[0]], deleted[versions[0]] = state
    chosen = np.sort(by_pair[heads[stays]])
    order = chosen[np.argsort(of_key[chosen], kind="stable")]
    return order, deleted[order], sizes[order]


def _fold(versions: list[tuple[int, bool]]) -> tuple[int, bool] | None:
    """Size and tombstone flag of a name after all its entries, oldest first; None when it is gone."""
    state: tuple[int, bool] | None = None
    for size, is_deleted in versions:
        if state is None:
            state = size, is_deleted
        elif is_deleted:
            state = (size, True) if state[1] else None
        else:
            state = max(state[0], size), False
    return state
