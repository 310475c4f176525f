"""What a table should hold: rows by key, after every commit. The answer that random histories are compared with.

1. A row is a value. A map of rows is never changed: each operation makes the next one.
2. Values never repeat: what was written by two commits is told apart by its text and number.

Knows no table and no storage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from hoodie.testing.lake import row, table_of

PARTS: Final = ("p0", "p1", "p2")


@dataclass(frozen=True, slots=True)
class Kept:
    """One row: its partition, its text, and the number by which event time orders it."""

    part: str
    text: str
    ts: int


Rows = Mapping[str, Kept]


def key_of(number: int) -> str:
    return f"k{number}"


def part_of(number: int, shift: int = 0) -> str:
    """The partition of a key; another one for another `shift`."""
    return PARTS[(number + shift) % len(PARTS)]


def given_rows(
    numbers: Iterable[int], stored: Rows, clock: int, *, shift: int | None = None, late: bool = False
) -> dict[str, Kept]:
    """New values of the keys, told apart by `clock`.

    With a `shift` each goes to the partition it says, else known keys stay where they are. `late` rows have a number
    below that of every row before.
    """
    ts = -clock if late else clock
    rows = {}
    for number in sorted(numbers):
        key = key_of(number)
        part = stored[key].part if shift is None and key in stored else part_of(number, shift or 0)
        rows[key] = Kept(part, f"{clock}-{number}", ts)
    return rows


def upserted(stored: Rows, given: Rows, *, by_event_time: bool) -> Rows:
    """`stored` with `given` in it; by event time a row whose number is lower than the stored one's changes nothing."""
    winners = {
        key: value
        for key, value in given.items()
        if not by_event_time or key not in stored or value.ts >= stored[key].ts
    }
    return {**stored, **winners}


def with_texts(stored: Rows, given: Rows) -> Rows:
    """`stored` with the texts of `given` for the keys it has."""
    return {
        **stored,
        **{key: replace(stored[key], text=value.text) for key, value in given.items() if key in stored},
    }


def without(stored: Rows, keys: Collection[str]) -> Rows:
    return {key: value for key, value in stored.items() if key not in keys}


def without_parts(stored: Rows, parts: Collection[str]) -> Rows:
    return {key: value for key, value in stored.items() if value.part not in parts}


def changed(before: Rows, after: Rows) -> Rows:
    """The rows of `after` that are not so in `before`."""
    return {key: value for key, value in after.items() if before.get(key) != value}


def arrow_rows(rows: Rows) -> pa.Table:
    """Columns `id`, `part`, `ts` and `v`, a row for each key."""
    return table_of([row(key, value.text, value.ts, value.part) for key, value in rows.items()])


def rows_of(table: pa.Table) -> Rows:
    """The rows of such a table; a key that occurs twice fails."""
    found = table.select(["id", "part", "v", "ts"]).to_pydict()
    assert len(found["id"]) == len(set(found["id"])), f"a key occurs twice: {sorted(found['id'])}"
    values: Iterable[tuple[Any, ...]] = zip(found["part"], found["v"], found["ts"], strict=True)
    return {key: Kept(*value) for key, value in zip(found["id"], values, strict=True)}
