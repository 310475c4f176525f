"""What decides which file slices go together: the promise of a plan strategy, and what it is told.

1. A strategy is asked partition by partition: it arranges slices into groups, the most worthwhile first. Which slices
   may be taken at all, how many files a group becomes, which groups are not worth it and how many a plan may have is
   decided around it, for all strategies alike (`plan`).
2. It is a value, and pure: what it wants to know beside the slices (`needs`) is loaded for it.
3. A class of the caller's own is made with the options of the call and the table's config, and its answers are checked
   (`own_strategies`). `PlainPlan` has all but `arrange`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from hoodie.services.clustering.overlap import ValueRange
from hoodie.spec import InstantTime, SortOrder
from hoodie.view import FileSlice, GroupId

RangesOf = Mapping[GroupId, Mapping[str, ValueRange]]


@dataclass(frozen=True, slots=True)
class PlanNeeds:
    """What a strategy wants to know: ranges of `columns` in each slice; the commits after an instant with the file
    groups they wrote to (`commits_after`; empty: all there are). `any_size`: slices are not limited to small ones.
    """

    columns: tuple[str, ...] = ()
    commits_after: InstantTime | None = None
    any_size: bool = False


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """A completed write, and the file groups of its base and log files, the largest file first."""

    requested: InstantTime
    groups: tuple[GroupId, ...]


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What was asked for. `ranges` lacks columns of slices of which nobody knows any; `seed` is a number from 0 to 1
    that differs from plan to plan.
    """

    ranges: RangesOf = field(default_factory=dict)
    commits: tuple[CommitFiles, ...] = ()
    seed: float = 0.0


@dataclass(frozen=True, slots=True)
class GroupOfSlices:
    """Slices of one partition whose rows go to `outputs` new file groups. `order`: how rows are sorted; None: they are
    not. `ranges` of columns over all its slices, as far as they are known of each.
    """

    partition: str
    slices: tuple[FileSlice, ...]
    outputs: int
    order: SortOrder | None = None
    ranges: Mapping[str, ValueRange] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Size of all files that are read."""
        return sum(part.size_bytes for part in self.slices)


@runtime_checkable
class PlanStrategy(Protocol):
    """Which slices go together."""

    @property
    def needs(self) -> PlanNeeds:
        """What it wants to know."""
        ...

    def arrange(self, slices: Sequence[FileSlice], facts: PlanFacts) -> Sequence[Sequence[FileSlice]]:
        """Groups of the slices of one partition, each slice in one at most, the most worthwhile group first."""
        ...

    def choose(self, groups: Sequence[GroupOfSlices]) -> Sequence[GroupOfSlices]:
        """Those of the groups of all partitions that the plan is to have, in its order, before it is cut to as many as
        it may have.
        """
        ...

    def notes(self, left: Collection[GroupId], facts: PlanFacts) -> Mapping[str, str]:
        """What the plan says of itself beside its groups; `left` are file groups that it may not have: they are about
        to be rewritten already, or it has no room for more groups.
        """
        ...


class PlainPlan:
    """A strategy that needs to know nothing, takes all groups and says nothing; `arrange` is missing."""

    @property
    def needs(self) -> PlanNeeds:
        """See `PlanStrategy`."""
        return PlanNeeds()

    def choose(self, groups: Sequence[GroupOfSlices]) -> Sequence[GroupOfSlices]:
        """See `PlanStrategy`."""
        return groups

    def notes(self, left: Collection[GroupId], facts: PlanFacts) -> Mapping[str, str]:
        """See `PlanStrategy`."""
        del left, facts
        return {}


def packed(slices: Sequence[FileSlice], max_bytes: int) -> list[list[FileSlice]]:
    """The slices in their order, in groups of at most so many bytes, or of one slice."""
    groups: list[list[FileSlice]] = []
    held = 0
    for part in slices:
        if groups and held + part.size_bytes <= max_bytes:
            groups[-1].append(part)
            held += part.size_bytes
        else:
            groups.append([part])
            held = part.size_bytes
    return groups
