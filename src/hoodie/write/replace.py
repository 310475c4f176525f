"""Which file groups an overwriting operation replaces."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Sequence

from hoodie.view import FileSlice

log = logging.getLogger(__name__)


def plan_replaced(slices: Iterable[FileSlice], partitions: Collection[str]) -> dict[str, tuple[str, ...]]:
    """File ids by partition: every live file group of `partitions`. Partitions without any are left out."""
    replaced: dict[str, list[str]] = {}
    for one in slices:
        if one.partition in partitions:
            replaced.setdefault(one.partition, []).append(one.file_id)
    return {name: tuple(ids) for name, ids in replaced.items()}


def match_partitions(patterns: Sequence[str], existing: Sequence[str]) -> tuple[str, ...]:
    """Those of the `existing` partitions that `patterns` name: a plain path names itself, `*` stands for any text.

    A pattern that names none is logged, not refused: deleting what is gone already is no mistake.
    """
    chosen: set[str] = set()
    for pattern in patterns:
        regex = re.compile(".*".join(re.escape(part) for part in pattern.strip().strip("/").split("*")), re.DOTALL)
        matches = [name for name in existing if regex.fullmatch(name)]
        if not matches:
            log.warning("no partition is called %r", pattern)
        chosen.update(matches)
    return tuple(name for name in existing if name in chosen)
