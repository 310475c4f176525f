"""One record per key out of what base file and log blocks say, by the rules of Hudi's metadata payload.

1. Parts come oldest first. A deleted key is gone until a later part has it again.
2. Bloom filters, record index and secondary index: the newest record counts.
3. Statistics: the newest counts when it is a tombstone, replaces one, or says that its bounds are tight. Otherwise both
   are one: least minimum, greatest maximum, sums of counts and sizes.
4. Files: `file_entries` has the rule; their records are unions of maps.

The newest record of each key is found in one pass over dictionary codes; only keys whose records must be added up are
looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.metadata.records import KEY, Part, concat_records

STATS: Final = "ColumnStatsMetadata"

_SUMS: Final = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")

_NO_KEYS: Final = pa.schema([(KEY, pa.string())]).empty_table()

_Stats = Mapping[str, Any]


def merge_newest(parts: Sequence[Part]) -> pa.Table:
    """The newest record of every key that is not deleted, in order of first appearance; no columns without parts."""
    stack = _stacked(parts)
    if len(parts) == 1 and not stack.is_deleted.any():
        return stack.rows
    newest = stack.newest()
    return stack.rows.take(pa.array(newest[~stack.is_deleted[newest]]))


def merge_stats(parts: Sequence[Part]) -> pa.Table:
    """Records of statistics, one for every key that is not deleted, in order of first appearance."""
    merged = merge_newest(parts)
    if len(parts) <= 1 or not merged.num_rows:
        return merged
    widened = {key: _added_up(versions) for key, versions in _to_add_up(_stacked(parts))}
    if not widened:
        return merged
    place = merged.schema.get_field_index(STATS)
    field = merged.schema.field(place)
    rows = zip(merged.column(KEY).to_pylist(), merged.column(place).to_pylist(), strict=True)
    return merged.set_column(place, field, pa.array([widened.get(key, found) for key, found in rows], field.type))


def outlived_keys(parts: Sequence[Part]) -> pa.Array:
    """Keys (string) of statistics whose newest record in the parts counts whatever an older one says."""
    stack = _stacked(parts)
    newest = stack.newest()
    keys = stack.rows.column(KEY).combine_chunks().take(pa.array(newest))
    if stack.rows.schema.get_field_index(STATS) < 0:
        return keys  # all of them are deleted
    return keys.filter(pa.array(_stands_alone(stack)[newest]))


@dataclass(frozen=True, slots=True, eq=False)
class _Stack:
    """All parts as one table, oldest first; rows of deleted keys have nothing but the key. `codes` number the keys."""

    rows: pa.Table
    is_deleted: npt.NDArray[np.bool_]
    codes: npt.NDArray[np.int64]
    count: int

    def newest(self) -> npt.NDArray[np.int64]:
        """The last row of each key."""
        found = np.zeros(self.count, dtype=np.int64)
        found[self.codes] = np.arange(len(self.codes))
        return found


def _stacked(parts: Sequence[Part]) -> _Stack:
    tables = [pa.table({KEY: part.keys}) if part.rows is None else part.rows for part in parts]
    rows = concat_records(tables or [_NO_KEYS])
    deleted = [np.full(len(part.keys), part.rows is None) for part in parts]
    names = rows.column(KEY).combine_chunks().dictionary_encode()
    codes = names.indices.to_numpy().astype(np.int64)
    return _Stack(rows, np.concatenate([np.zeros(0, bool), *deleted]), codes, len(names.dictionary))


def _to_add_up(stack: _Stack) -> Iterable[tuple[str, list[_Stats | None]]]:
    """Keys whose newest record does not stand alone, with their records from the last one that did."""
    found = stack.rows.column(STATS)
    since = np.full(stack.count, -1, dtype=np.int64)
    settled = np.flatnonzero(_stands_alone(stack))
    since[stack.codes[settled]] = settled
    after = np.flatnonzero(np.arange(len(stack.codes)) >= since[stack.codes])
    times = np.bincount(stack.codes[after], minlength=stack.count)
    several = after[times[stack.codes[after]] > 1]
    several = several[np.argsort(stack.codes[several], kind="stable")]
    for at in np.split(several, np.flatnonzero(np.diff(stack.codes[several])) + 1):
        if len(at):
            yield stack.rows.column(KEY)[int(at[0])].as_py(), [found[n].as_py() for n in at.tolist()]


def _stands_alone(stack: _Stack) -> npt.NDArray[np.bool_]:
    """Per record of statistics whether nothing before it is added to it."""
    found = stack.rows.column(STATS)
    has_none = np.asarray(found.is_null().to_numpy())
    return has_none | _is_set(found, "isDeleted") | _is_set(found, "isTightBound")


def _is_set(stats: pa.ChunkedArray, flag: str) -> npt.NDArray[np.bool_]:
    if stats.type.get_field_index(flag) < 0:
        return np.zeros(len(stats), dtype=np.bool_)
    values = pc.fill_null(pc.struct_field(stats, flag), False)
    return np.asarray(values.to_numpy())


def _added_up(versions: Sequence[_Stats | None]) -> dict[str, Any]:
    """Statistics that cover all versions since the last tombstone. None: the key was deleted."""
    total: dict[str, Any] = {}
    for version in versions:
        if not version or not total or total["isDeleted"] or version["isDeleted"]:
            total = dict(version or {})
            continue
        sums = {name: (total[name] or 0) + (version[name] or 0) for name in _SUMS}
        bounds = {
            "minValue": _outer(min, total["minValue"], version["minValue"]),
            "maxValue": _outer(max, total["maxValue"], version["maxValue"]),
        }
        total = {**version, **sums, **bounds}
    return total


def _outer(choose: Any, one: _Stats | None, two: _Stats | None) -> _Stats | None:
    """The lesser or greater of two wrapped values; the only one there is; None when their types differ."""
    known = [value for value in (_bare(one), _bare(two)) if value is not None]
    if len(known) < 2:
        return one if _bare(two) is None else two
    (kind, first), (other, second) = known
    if kind != other:
        return None
    return one if choose(first, second) == first else two


def _bare(wrapped: _Stats | None) -> tuple[str, Any] | None:
    """The member of the union that is set, and its value."""
    members = ((name, value) for name, value in (wrapped or {}).items() if value is not None)
    return next(((name, value["value"]) for name, value in members if value.get("value") is not None), None)
