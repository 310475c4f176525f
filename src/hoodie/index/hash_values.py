"""The values of a record key that a bucket index hashes.

1. A key without comma or without colon is one value, all of it: so is `id:7`.
2. Other keys are read as `name:value,name:value`. A name has neither comma nor colon and begins the key or follows a
   comma; everything else belongs to a value. Only values of the hash fields count, in the order of the key; where no
   such field stands in the key, all of it is one value.
3. The value `__null__` is a null, which hashes to 0 and joins as the text `null`; `__empty__` is the empty text.

This is how Hudi takes keys apart for its bucket indexes. It is done for whole columns: keys that hold the table's key
fields, and keys that hold no hash field, take no step of Python each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_SEPARATOR: Final = ",[^,:]*:"
_NULL: Final = "__null__"
_EMPTY: Final = "__empty__"

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyParts:
    """What keys are made of: the fields of the table's key in their order, and those of them that are hashed.

    Without `key_fields` every part of a key counts, whatever it is called.
    """

    key_fields: tuple[str, ...] = ()
    hash_fields: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[int, ...]:
        """Where the hashed fields stand in a key."""
        return tuple(n for n, name in enumerate(self.key_fields) if name in self.hash_fields)


EVERY_PART: Final = KeyParts()
"""Of keys of which nothing is known."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueGroup:
    """Keys with the same number of hashed values: `columns[i]` has value i of each of the keys `rows`."""

    rows: Rows
    columns: tuple[pa.StringArray, ...]


def value_groups(keys: pa.StringArray, parts: KeyParts) -> list[ValueGroup]:
    """The hashed values of all keys; each key is in one group. No nulls in `keys`."""
    composite = pc.and_(pc.match_substring(keys, ","), pc.match_substring(keys, ":"))
    mask = composite.to_numpy(zero_copy_only=False)
    if not mask.any():
        return [ValueGroup(np.arange(len(keys), dtype=np.int64), (keys,))]
    at = np.flatnonzero(mask).astype(np.int64)
    led = pc.binary_join_element_wise(",", keys.take(pa.array(at)), "")
    known, whole = _known_forms(led, parts)
    found = [_whole(keys, np.concatenate([np.flatnonzero(~mask), at[whole]]))]
    found += _split_up(led.filter(pa.array(known)), at[known], parts)
    odd = at[~known & ~whole]
    found += _by_hand(keys.take(pa.array(odd)).to_pylist(), odd, parts)
    return [group for group in found if len(group.rows)]


def hash_values(key: str, fields: Sequence[str] = ()) -> list[str | None]:
    """The hashed values of one key; without `fields` those of every field in it."""
    if "," not in key or ":" not in key:
        return [key]
    led = f",{key}"
    found = list(re.finditer(_SEPARATOR, led))
    ends = [*(one.start() for one in found[1:]), len(led)]
    named = [(one[0][1:-1], led[one.end() : end]) for one, end in zip(found, ends, strict=True)]
    return [_meant(value) for name, value in named if not fields or name in fields] or [key]


def _known_forms(led: pa.StringArray, parts: KeyParts) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which keys (each after a comma) hold exactly the key fields, and which no hash field at all."""
    if not parts.key_fields:
        return np.ones(len(led), dtype=np.bool_), np.zeros(len(led), dtype=np.bool_)
    form = "(?s)^" + ".*".join(f",{re.escape(name)}:" for name in parts.key_fields)
    counts = pc.count_substring_regex(led, _SEPARATOR)
    known = pc.and_(pc.match_substring_regex(led, form), pc.equal(counts, len(parts.key_fields)))
    names = "|".join(re.escape(name) for name in parts.hash_fields)
    some = pc.match_substring_regex(led, f",(?:{names}):")
    return known.to_numpy(zero_copy_only=False), ~some.to_numpy(zero_copy_only=False)


def _whole(keys: pa.StringArray, rows: Rows) -> ValueGroup:
    return ValueGroup(rows, (keys.take(pa.array(rows)),))


def _split_up(led: pa.StringArray, rows: Rows, parts: KeyParts) -> list[ValueGroup]:
    """Groups of keys in a known form, by the number of their parts."""
    pieces = pc.split_pattern_regex(led, _SEPARATOR)
    counts = pc.list_value_length(pieces).to_numpy(zero_copy_only=False)
    found = []
    for count in np.unique(counts).tolist():
        same = np.flatnonzero(counts == count)
        flat = pieces.take(pa.array(same)).flatten()
        places = parts.places or range(count - 1)
        # What stands before the first separator is no value.
        columns = (flat.take(pa.array(np.arange(len(same)) * count + place + 1)) for place in places)
        found.append(ValueGroup(rows[same], tuple(_meant_column(column) for column in columns)))
    return found


def _by_hand(keys: list[str], rows: Rows, parts: KeyParts) -> list[ValueGroup]:
    values = [hash_values(key, parts.hash_fields) for key in keys]
    counts = np.array([len(one) for one in values], dtype=np.int64)
    found = []
    for count in np.unique(counts).tolist():
        same = np.flatnonzero(counts == count)
        columns = (pa.array([values[n][place] for n in same.tolist()], pa.string()) for place in range(count))
        found.append(ValueGroup(rows[same], tuple(columns)))
    return found


def _meant(value: str) -> str | None:
    return None if value == _NULL else "" if value == _EMPTY else value


def _meant_column(values: pa.StringArray) -> pa.StringArray:
    values = pc.if_else(pc.equal(values, _EMPTY), "", values)
    return pc.if_else(pc.equal(values, _NULL), pa.scalar(None, pa.string()), values)
