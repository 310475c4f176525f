"""Which file groups an overwriting operation replaces."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Sequence

from hoodie.view import FileSlice


def plan_replaced(slices: Iterable[FileSlice], partitions: Collection[str]) -> dict[str, tuple[str, ...]]:
    """File ids by partition: every live file group of `partitions`. Partitions without any are left out."""
    replaced: dict[str, list[str]] = {}
    for one in slices:
        if one.partition in partitions:
            replaced.setdefault(one.partition, []).append(one.file_id)
    return {name: tuple(ids) for name, ids in replaced.items()}


def match_partitions(patterns: Sequence[str], existing: Sequence[str]) -> tuple[str, ...]:
    """Partitions named by `patterns`: a plain path names itself, `*` stands for any text (Hudi's wildcard)."""
    chosen: dict[str, None] = {}
    for pattern in patterns:
        matches = [name for name in existing if fnmatch.fnmatchcase(name, pattern)] if "*" in pattern else [pattern]
        chosen.update(dict.fromkeys(matches))
    return tuple(name for name in existing if name in chosen)
