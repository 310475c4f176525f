"""Merge functions of users: registered in Python under the id a table stores, never loaded by a name in a file.

1. A table whose merge mode is CUSTOM stores a strategy id (Hudi: the id of a `HoodieRecordMerger`), or the name of a
   payload class. Either is the name a merger is registered under.
2. A merger works on whole tables: row i of `older` and row i of `newer` have one key, and row i of the answer is what
   they become. It is called for rows only; where a side is a delete, ordering values decide.
3. The merger travels to workers inside the rules, pickled: its class has to be importable there.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from hoodie.errors import Invalid, Unsupported
from hoodie.records import align


class Merger(Protocol):
    """Makes one version of two."""

    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        """As many rows as `older` and `newer` have, with their columns (order does not matter, types are cast).

        Keys must stay. A row that the table's delete marker (or `_hoodie_is_deleted`) marks is a delete.
        """
        ...


_REGISTERED: dict[str, Merger] = {}


def register_merger(name: str, merger: Merger) -> None:
    """Uses `merger` from now on, in this process, for tables with the merge strategy id (or payload class) `name`."""
    _REGISTERED[name] = merger


def registered_merger(strategy_id: str | None, payload_class: str | None) -> Merger:
    """The merger of a table with this strategy id and payload class. The class is the more special name.

    Raises:
        Unsupported: nobody registered one.
    """
    names = [name for name in (payload_class, strategy_id) if name]
    found = next((_REGISTERED[name] for name in names if name in _REGISTERED), None)
    if found is not None:
        return found
    called = " and ".join(
        f"{kind} {name}" for kind, name in (("strategy id", strategy_id), ("payload class", payload_class)) if name
    )
    raise Unsupported(
        f"The table merges rows by its own rule ({called or 'without a name'}), and no merger is registered for it",
        remedy=f'Register one: hoodie.merge.register_merger("{names[0] if names else "<id>"}", merger)',
        strategy_id=strategy_id,
        payload_class=payload_class,
    )


def merged_by(merger: Merger, older: pa.Table, newer: pa.Table, key: str) -> pa.Table:
    """What `merger` makes of the pairs, in the schema of `newer`.

    Raises:
        Invalid: the answer has other rows or other keys.
    """
    merged = merger.merge(older, newer)
    if merged.num_rows != newer.num_rows:
        raise _broken(merger, f"made {merged.num_rows} rows of {newer.num_rows} pairs")
    merged = align(merged, newer.schema)
    if not merged.column(key).equals(newer.column(key)):
        raise _broken(merger, f"changed values of the key column {key}")
    return merged


def _broken(merger: Merger, what: str) -> Invalid:
    return Invalid(
        f"The merger {type(merger).__qualname__} {what}", remedy="Return one row for each pair, with its key"
    )
