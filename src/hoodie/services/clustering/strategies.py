"""The plan strategies there are: by size, file by file, by commits, by ranges of keys or columns, at random. Pure."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from hoodie.services.clustering.overlap import boxes_of, connected, mean_depth
from hoodie.services.clustering.plan_strategy import PlainPlan, PlanFacts, PlanNeeds, packed
from hoodie.spec import InstantTime
from hoodie.view import FileSlice, GroupId

SliceOrder = Literal["SIZE", "INSTANT_TIME"]

CHECKPOINT: Final = "clustering.commit.checkpoint"
"""Hudi's key, in the extra metadata of a plan: the last commit that a plan by commits has looked at. Ours stands in
that of the clustering's commit, too.
"""


@dataclass(frozen=True, slots=True)
class BySize(PlainPlan):
    """Slices one after the other as `by` orders them, the largest or the oldest first, packed into groups."""

    by: tuple[SliceOrder, ...]
    max_bytes: int

    def arrange(self, slices: Sequence[FileSlice], facts: PlanFacts) -> Sequence[Sequence[FileSlice]]:
        """See `PlanStrategy`."""
        del facts
        ordered = list(slices)
        for key in reversed(self.by):
            if key == "SIZE":
                ordered.sort(key=lambda part: -part.size_bytes)
            else:
                ordered.sort(key=lambda part: "" if part.base is None else part.base.name.instant)
        return packed(ordered, self.max_bytes)


@dataclass(frozen=True, slots=True)
class FileByFile(PlainPlan):
    """Each slice by itself, the largest first."""

    def arrange(self, slices: Sequence[FileSlice], facts: PlanFacts) -> Sequence[Sequence[FileSlice]]:
        """See `PlanStrategy`."""
        del facts
        return [[part] for part in sorted(slices, key=lambda part: -part.size_bytes)]


@dataclass(frozen=True, slots=True)
class AtRandom(PlainPlan):
    """Slices as chance has it, packed into groups: none is left to the last for its name, age or size."""

    max_bytes: int

    def arrange(self, slices: Sequence[FileSlice], facts: PlanFacts) -> Sequence[Sequence[FileSlice]]:
        """See `PlanStrategy`."""
        shuffled = sorted(slices, key=lambda part: part.file_id)
        random.Random(facts.seed).shuffle(shuffled)  # the seed is the environment's
        return packed(shuffled, self.max_bytes)


@dataclass(frozen=True, slots=True)
class ByRanges(PlainPlan):
    """Slices whose ranges of `columns` overlap go together, those that overlap most before all others: look-ups read
    them all, and need not when their rows are sorted. Slices that overlap none become files of `target_bytes` with
    their neighbours; those of unknown ranges come last. Groups are as large as some files of the target size.
    """

    columns: tuple[str, ...]
    target_bytes: int
    max_bytes: int

    @property
    def needs(self) -> PlanNeeds:
        """See `PlanStrategy`."""
        return PlanNeeds(columns=self.columns)

    def arrange(self, slices: Sequence[FileSlice], facts: PlanFacts) -> Sequence[Sequence[FileSlice]]:
        """See `PlanStrategy`."""
        known: list[FileSlice] = []
        unknown: list[FileSlice] = []
        for part in slices:
            said = facts.ranges.get(part.group_id, {})
            (known if all(name in said for name in self.columns) else unknown).append(part)
        ranges = {part.group_id: [facts.ranges[part.group_id][name] for name in self.columns] for part in known}
        runs = [[known[at] for at in run] for run in connected(boxes_of([ranges[part.group_id] for part in known]))]
        deep = [run for run in runs if len(run) > 1]
        deep.sort(key=lambda run: -mean_depth([ranges[part.group_id] for part in run]))
        lone = [run[0] for run in runs if len(run) == 1]
        limit = max(self.target_bytes, self.max_bytes // self.target_bytes * self.target_bytes)
        groups = [group for run in deep for group in packed(run, limit)]
        return [*groups, *packed(lone, self.target_bytes), *packed(unknown, limit)]


@dataclass(frozen=True, slots=True)
class ByCommits(PlainPlan):
    """The files of commits after `after`, in the order of the commits and whatever their size: of each file group its
    newest slice, once. What was looked at is noted, so that the next plan begins behind it.
    """

    after: InstantTime
    max_bytes: int

    @property
    def needs(self) -> PlanNeeds:
        """See `PlanStrategy`."""
        return PlanNeeds(commits_after=self.after, any_size=True)

    def arrange(self, slices: Sequence[FileSlice], facts: PlanFacts) -> Sequence[Sequence[FileSlice]]:
        """See `PlanStrategy`."""
        left = {part.group_id: part for part in slices}
        found = [left.pop(group) for one in facts.commits for group in one.groups if group in left]
        return packed(found, self.max_bytes)

    def notes(self, left: Collection[GroupId], facts: PlanFacts) -> Mapping[str, str]:
        """See `PlanStrategy`. The checkpoint is the last commit before the first of which a file group is left."""
        seen = self.after
        for one in facts.commits:
            if not set(left).isdisjoint(one.groups):
                break
            seen = one.requested
        return {CHECKPOINT: seen} if seen else {}
