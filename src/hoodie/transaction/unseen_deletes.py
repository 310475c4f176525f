"""Whether an insert that leaves known keys out and a write that deletes rows did not see each other.

Neither changes what only decided: the one leaves out a row because its key is stored, the other deletes nothing where
its key is not. Beside each other the key that is left out may be deleted, and a key that was not found may be added.
That is what neither order leaves, whatever the file groups are.

1. The insert says in which file groups it found keys that it left out (`LookedAt.kept`). It gives way to who deleted
   rows of one of them; which rows these are is not looked at.
2. The write that deletes knows the keys it looked for (`LookedAt.keys`). It gives way to an insert that looked keys up
   and added one of them. Keys are read from the files of that insert.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import pyarrow.compute as pc

from hoodie.errors import Missing
from hoodie.spec import WriteStat
from hoodie.transaction.moves import Move
from hoodie.transaction.pending_commit import PendingCommit
from hoodie.transaction.write_conflict import KEYS_TOLD, write_conflict
from hoodie.transaction.written_keys import keys_in

_INSERTS: Final = frozenset({"INSERT", "INSERT_PREPPED", ""})


def ensure_deletes_seen(pending: PendingCommit, other: Move, *, is_global: bool) -> None:
    """Checks that the write and another that completed since are what one of their orders leaves, where one of them
    deletes rows. `is_global`: a key is looked for in the whole table.

    Raises:
        WriteConflict: no order leaves that.
    """
    if pending.outcome.looked_at is None or other.is_compaction:
        return
    _ensure_kept(pending, other)
    if other.operation in _INSERTS and other.deed.looks_up and any(stat.num_deletes for stat in pending.outcome.stats):
        _ensure_none_added(pending, other, is_global=is_global)


def _ensure_kept(pending: PendingCommit, other: Move) -> None:
    looked, stats = pending.outcome.looked_at, pending.outcome.stats
    if looked is None or not stats:
        return
    less = {(stat.partition_path, stat.file_id) for stat in other.stats if stat.num_deletes}
    if both := less & looked.kept:
        what = "file groups with keys that this write found and left out"
        raise write_conflict(pending, other, both, (), what, "deleted rows of")


def _ensure_none_added(pending: PendingCommit, other: Move, *, is_global: bool) -> None:
    looked = pending.outcome.looked_at
    if looked is None or looked.keys is None or not pending.handle.config.populate_meta_fields:
        return
    keys = cache(looked.keys)
    for stat in other.stats:
        asked = keys(None if is_global else stat.partition_path) if _adds(stat) else None
        if asked is None:
            continue
        group = (stat.partition_path, stat.file_id)
        try:
            added = keys_in(pending.handle, stat)
        except Missing as gone:  # changed again and cleaned since
            what = "keys that this write looked for, in a file that is cleaned by now,"
            raise write_conflict(pending, other, [group], (), what, "may have added") from gone
        both = added.filter(pc.is_in(added, value_set=asked)).unique()
        if len(both):
            told = both.slice(0, KEYS_TOLD).to_pylist()
            raise write_conflict(pending, other, [group], told, "keys that this write looked for", "added")


def _adds(stat: WriteStat) -> bool:
    """Whether the file may have new rows. Those in a log file are not always counted."""
    return stat.path is not None and (stat.is_log or stat.adds_to_base)
