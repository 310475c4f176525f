"""Whether two writes that did not see each other leave what one of the two orders leaves, where one overwrites.

1. An overwrite replaces the file groups it saw. Files that another wrote in its partitions meanwhile stay: rows of both
   are there. That is what "first the overwrite, then the other" leaves only if the other would have done the same then.
2. Plain inserts and bulk inserts would: they add rows to whatever there is. So they go with every overwrite.
3. Who looks keys up would not: the key may be among the rows of the overwrite. Another overwrite would not either.
4. A partition delete adds no rows, so an upsert finds no key after it that it did not find before, but what it changed,
   and changed file groups are compared anyway. An insert that leaves out known keys may have left out deleted ones.

All of it is pure. It knows partitions; file groups that both changed are compared elsewhere (`overlaps`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hoodie.spec import CommitMetadata

LOOKED_EXTRA: Final = "hoodie.writer.looked.up.keys"
"""In the extra metadata of a commit: whether it searched the table for its keys (`true`, `false`)."""

_TABLE: Final = "INSERT_OVERWRITE_TABLE"
_DELETE_PARTITION: Final = "DELETE_PARTITION"
_OVERWRITES: Final = frozenset({_TABLE, "INSERT_OVERWRITE"})
_LOOKS_NEVER: Final = _OVERWRITES | {
    _DELETE_PARTITION,
    "BULK_INSERT",
    "BULK_INSERT_PREPPED",
    "CLUSTER",
    "COMPACT",
    "LOG_COMPACT",
}
_CHANGES_WHAT_IT_FINDS: Final = frozenset({"UPSERT", "UPSERT_PREPPED", "DELETE", "DELETE_PREPPED"})


@dataclass(frozen=True, slots=True)
class Deed:
    """What a write is to those beside it: its operation, whether it searched for its keys, and the partitions in which
    it has `written` files and `replaced` file groups.
    """

    operation: str = ""
    looks_up: bool = False
    written: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()

    @property
    def is_overwrite(self) -> bool:
        """Whether its rows take the place of others."""
        return self.operation in _OVERWRITES

    @property
    def takes_place(self) -> bool:
        """Whether rows of others go by it."""
        return self.is_overwrite or self.operation == _DELETE_PARTITION

    def takes_place_in(self, partitions: frozenset[str]) -> frozenset[str]:
        """Those of some partitions whose rows it takes the place of."""
        if self.operation == _TABLE:
            return partitions
        if self.is_overwrite:
            return partitions & (self.written | self.replaced)
        return partitions & self.replaced if self.operation == _DELETE_PARTITION else frozenset()


NO_DEED: Final = Deed()
"""Of what has not completed, or is asked about without a commit."""


def deed_of(operation: str, said: CommitMetadata) -> Deed:
    """The deed of a write whose commit says this."""
    return Deed(
        operation,
        _looks_up(operation, said.extra_metadata or {}),
        frozenset(name for name, _ in said.write_stats()),
        frozenset(said.partition_to_replace_file_ids or ()),
    )


def without_order(one: Deed, two: Deed) -> frozenset[str]:
    """The partitions where neither order of the two explains what is there."""
    return _outlives(one, two) | _outlives(two, one)


def _outlives(one: Deed, overwrite: Deed) -> frozenset[str]:
    """The partitions where rows of one write stay beside an overwrite, after which it would have written others."""
    both = overwrite.takes_place_in(one.written)
    if overwrite.operation == _DELETE_PARTITION:
        return both if one.looks_up and one.operation not in _CHANGES_WHAT_IT_FINDS else frozenset()
    return both if one.looks_up or one.is_overwrite else frozenset()


def _looks_up(operation: str, extra: Mapping[str, str]) -> bool:
    """Whether it searched for its keys. Others do not say it: their inserts may have been told to drop known keys."""
    said = extra.get(LOOKED_EXTRA)
    return operation not in _LOOKS_NEVER if said is None else said == "true"
