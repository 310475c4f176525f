"""The instants of a metadata table's own actions: those beside the delta commits that repeat its table's actions.

1. Version 6: they are instants of the table with three more digits, so that they sort right behind those. An action of
   the table that is still pending might sort before them: then nothing of the metadata table's own is begun.
2. Versions 8 and later: initialisations count up from zero, which sorts before everything, a rollback has the instant
   of the table's rollback, and other actions get a time like any other.

Pure. Examples: `docs/format/metadata-table.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from hoodie.spec.instant import Instant, InstantTime
from hoodie.spec.instant_time import INIT_INSTANT, INSTANT_DIGITS

_V6_COMPACTION = "001"
_V6_CLEAN = "002"
_V6_ROLLBACK = "006"
_V6_FIRST_INITIALISATION = 10
_SUFFIXES = 1000


class MetadataInstants(Protocol):
    """How actions of a metadata table are timed."""

    may_be_written_ahead: ClassVar[bool]
    """Whether a writer may write its delta commit while it writes data, without the table lock: Hudi 1.x does so by
    `hoodie.metadata.streaming.write.enabled`.
    """

    def has_to_wait(self, pending: Iterable[Instant]) -> bool:
        """Whether these pending actions of the table stand in the way of one that is the metadata table's own."""
        ...

    def initialisations(self, completed: Iterable[Instant]) -> Iterator[InstantTime]:
        """Instants for partitions that are made, in the order they are given away. `completed`: those of the table."""
        ...

    def is_initialisation(self, instant: InstantTime) -> bool:
        """Whether it is one of those."""
        ...

    def rollback(self, rollback: InstantTime) -> InstantTime:
        """The instant of what `rollback` of the table does to the metadata table."""
        ...

    def compaction(self, last: InstantTime) -> InstantTime | None:
        """The instant of a compaction after the delta commit `last`; None for a time like any other."""
        ...

    def clean(self, compaction: InstantTime) -> InstantTime | None:
        """The instant of the clean that follows a compaction; None for a time like any other."""
        ...


@dataclass(frozen=True, slots=True)
class SuffixedInstants:
    """Tables of version 6."""

    may_be_written_ahead: ClassVar[bool] = False

    def has_to_wait(self, pending: Iterable[Instant]) -> bool:
        return any(True for _ in pending)

    def initialisations(self, completed: Iterable[Instant]) -> Iterator[InstantTime]:
        done = max((one.requested for one in completed), default=INIT_INSTANT)
        return (f"{done}{number:03d}" for number in range(_V6_FIRST_INITIALISATION, _SUFFIXES))

    def is_initialisation(self, instant: InstantTime) -> bool:
        return instant.startswith(INIT_INSTANT) or _has_suffix_of_one(instant)

    def rollback(self, rollback: InstantTime) -> InstantTime:
        return rollback + _V6_ROLLBACK

    def compaction(self, last: InstantTime) -> InstantTime | None:
        return last + _V6_COMPACTION

    def clean(self, compaction: InstantTime) -> InstantTime | None:
        return compaction[: -len(_V6_COMPACTION)] + _V6_CLEAN


@dataclass(frozen=True, slots=True)
class PlainInstants:
    """Tables of version 8 and later."""

    may_be_written_ahead: ClassVar[bool] = True

    def has_to_wait(self, pending: Iterable[Instant]) -> bool:
        del pending
        return False

    def initialisations(self, completed: Iterable[Instant]) -> Iterator[InstantTime]:
        del completed
        return (f"{INIT_INSTANT}{number:03d}" for number in range(_SUFFIXES))

    def is_initialisation(self, instant: InstantTime) -> bool:
        # One that was made before an upgrade keeps its name.
        return instant.startswith(INIT_INSTANT) or _has_suffix_of_one(instant)

    def rollback(self, rollback: InstantTime) -> InstantTime:
        return rollback

    def compaction(self, last: InstantTime) -> InstantTime | None:
        del last
        return None

    def clean(self, compaction: InstantTime) -> InstantTime | None:
        del compaction
        return None


def _has_suffix_of_one(instant: InstantTime) -> bool:
    suffix = instant[INSTANT_DIGITS:]
    return suffix.isdigit() and int(suffix) >= _V6_FIRST_INITIALISATION
