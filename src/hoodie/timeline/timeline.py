"""What happened to a table, in order: the instants of the active timeline as one value.

1. For every logical instant the furthest state is held; a compaction is `compaction` while pending and `commit` once it
   is completed.
2. Order is by requested time, action, state. Times are compared as plain text.
3. An edit gives a new timeline (`with_instant`, `without`); `load_timeline` after the same change gives an equal one.

It does not read the archived history: times before the first write are taken as committed, as Hudi does. What of them
completed, and when, can be told to it (`with_archived`): a write that the history should have, and has not, was never
committed then. Before the oldest write of the history, which may have been cut, all count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from hoodie.notebook import Displayed
from hoodie.spec import COMPLETED_WRITE_ACTIONS, SAVEPOINT, WRITE_ACTIONS, FormatProfile, Instant, InstantTime
from hoodie.storage import FileInfo


@dataclass(frozen=True, slots=True)
class Timeline(Displayed):
    """The active timeline of one table. `instants` are ordered and have one entry per logical instant. `archived` has
    completion times of archived writes (by requested time), as far as somebody looked them up; it is all the history
    has from `archived_from` on. `plan_files` are those of pending plans, as they were listed (None: nobody did): a plan
    that is taken off for a file group, or put back, is another file at the same instant.
    """

    profile: FormatProfile
    instants: tuple[Instant, ...]
    archived: Mapping[InstantTime, InstantTime] = field(default_factory=dict, repr=False, compare=False)
    archived_from: InstantTime | None = field(default=None, repr=False, compare=False)
    plan_files: tuple[FileInfo, ...] | None = field(default=None, repr=False, compare=False)
    _completions: dict[InstantTime, InstantTime] = field(init=False, repr=False, compare=False)
    _first_write: Instant | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        writes = [i for i in self.instants if i.is_completed and i.action in COMPLETED_WRITE_ACTIONS]
        object.__setattr__(self, "_completions", {i.requested: i.completed or i.requested for i in writes})
        object.__setattr__(self, "_first_write", _first_write(self.instants))

    def completed(self) -> tuple[Instant, ...]:
        """All completed instants of any action."""
        return tuple(instant for instant in self.instants if instant.is_completed)

    def pending(self) -> tuple[Instant, ...]:
        """All requested and inflight instants of any action."""
        return tuple(instant for instant in self.instants if not instant.is_completed)

    def writes(self) -> tuple[Instant, ...]:
        """Instants that write data, completed or pending (pending ones also as compaction, clustering ...)."""
        return tuple(instant for instant in self.instants if instant.action in WRITE_ACTIONS)

    def completed_writes(self) -> tuple[Instant, ...]:
        """Completed instants that put data into the table, ordered by requested time."""
        return tuple(instant for instant in self.writes() if instant.is_completed)

    def find(self, requested: InstantTime, action: str | None = None) -> Instant | None:
        """The instant requested at a time. A savepoint shares its time with a commit: ask for it by action."""
        for instant in self.instants:
            fits = (
                instant.action != SAVEPOINT if action is None else action in (instant.action, instant.comparable_action)
            )
            if fits and instant.requested == requested:
                return instant
        return None

    def last_completed_write(self) -> Instant | None:
        """The completed write with the greatest requested time."""
        return max(self.completed_writes(), default=None)

    def last_time(self) -> InstantTime | None:
        """The greatest time known, requested or completed, of any action; new times must be greater."""
        return max((time for i in self.instants for time in (i.requested, i.completed) if time), default=None)

    @property
    def first_write_instant(self) -> Instant | None:
        """The start of the active timeline: the first write (pending ones too) that is not under a savepoint.

        Savepoints keep their commits active while later ones are archived, so those say nothing about the start.
        """
        return self._first_write

    def is_before_start(self, requested: InstantTime) -> bool:
        """Whether a time lies before the active timeline, in archived history."""
        return self._first_write is not None and requested < self._first_write.requested

    def is_committed(self, requested: InstantTime) -> bool:
        """Whether the write requested then is completed: in the active timeline, or as it lies before its start and
        the history, where it is known, has it or does not reach back that far.
        """
        if requested in self._completions:
            return True
        return self.is_before_start(requested) and (
            self.archived_from is None or requested < self.archived_from or requested in self.archived
        )

    def completion_of(self, requested: InstantTime) -> InstantTime | None:
        """When the write requested then completed; None if it has not, or is archived and was not looked up."""
        return self._completions.get(requested) or self.archived.get(requested)

    def with_instant(self, instant: Instant) -> Timeline:
        """The timeline after `instant` reached its state. An earlier state than the known one changes nothing."""
        return replace(self, instants=furthest([*self.instants, instant]), plan_files=None)

    def without(self, instant: Instant) -> Timeline:
        """The timeline after all files of the logical instant were removed."""
        kept = tuple(known for known in self.instants if known.logical != instant.logical)
        return replace(self, instants=kept, plan_files=None)

    def with_archived(self, completions: Mapping[InstantTime, InstantTime], *, whole: bool = False) -> Timeline:
        """The timeline that knows when these archived writes completed (requested → completed). `whole`: they are all
        that the history has.
        """
        start = min(completions, default=None) if whole else self.archived_from
        return replace(self, archived={**self.archived, **completions}, archived_from=start)


def furthest(instants: Iterable[Instant]) -> tuple[Instant, ...]:
    """One instant per logical instant, the furthest state (of equal states the last given), in timeline order."""
    found: dict[tuple[InstantTime, str], Instant] = {}
    for instant in instants:
        logical = instant.logical
        known = found.get(logical)
        if known is None or instant.state >= known.state:
            found[logical] = instant
    return tuple(sorted(found.values(), key=Instant.order))


def _first_write(instants: tuple[Instant, ...]) -> Instant | None:
    saved = {instant.requested for instant in instants if instant.action == SAVEPOINT}
    writes = [i for i in instants if i.action in WRITE_ACTIONS]
    return next((i for i in writes if i.requested not in saved), writes[-1] if writes else None)
