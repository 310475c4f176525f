"""Which file groups a write found where it looked for keys, or for what it replaces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.view import FileSlice, GroupId


@dataclass(frozen=True, slots=True)
class LookedAt:
    """The `slices` that were there, in these `partitions` (None: in all). `kept`: file groups with keys it found and
    left out its own rows of. `keys` gives those it looked for in a partition (None: all), None where there are none; it
    is None for a write that did not look keys up.
    """

    partitions: Collection[str] | None
    slices: Sequence[FileSlice]
    kept: frozenset[GroupId] = frozenset()
    keys: Callable[[str | None], pa.Array | None] | None = field(default=None, compare=False)

    def missed(self, groups: Iterable[GroupId]) -> frozenset[GroupId]:
        """Those of some file groups that lie where it looked, and were not found."""
        inside = None if self.partitions is None else set(self.partitions)
        asked = {one for one in groups if inside is None or one[0] in inside}
        return frozenset(asked.difference(one.group_id for one in self.slices) if asked else ())
