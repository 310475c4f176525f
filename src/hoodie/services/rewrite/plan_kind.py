"""A kind of plans that replace files by files, as a value: compaction, log compaction, resize of buckets.

1. A kind says the action of its instants while they are pending, the operation its commits name, which pending plans
   are its own, and how the files of one are written. Locks, attempts, what dead executors left, giving up and
   completing are the executor's (`executor`).
2. What `rewrite` gives back decides how a plan completes: with `replaced` file groups it is a replacecommit, without
   them a commit that says nothing new, only in other files.
3. `rule` says what others may do meanwhile. Where writers honour what a plan sets aside (`hoodie.state.pending_plans`)
   that is anything (`PlanSetAside`). Any other kind is carried out by a caller who holds the table lock from the plan
   on; when a write has moved all the same, it does not complete (`NobodyElse`).

Kinds are modules of this package's neighbours, registered in `kinds`; they are not loaded from outside. They hold no
state: one may be asked from any thread. Contract: `hoodie.testing.plan_kind_contract.PlanKindContract`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.errors import Invalid
from hoodie.metadata_writer import FileFacts
from hoodie.services.rewrite.options import RewriteOptions
from hoodie.spec import CLUSTERING, REPLACE_COMMIT, FormatProfile, Instant, InstantTime, WriteStat
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.transaction import ConflictRule, PlanSetAside


@dataclass(frozen=True, slots=True)
class PlanRun:
    """One attempt to carry out a plan: its inflight `instant`, the table and the plans it was begun on, and who does
    the work. `attempt`: where the attempt numbers in the names of its files begin (`RewriteTarget`).
    """

    handle: TableHandle
    config: Config
    options: RewriteOptions
    engine: Engine
    plans: PendingPlans
    instant: Instant
    attempt: int


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What one attempt has written, which nobody sees yet. `extra_metadata` goes into the commit; `replaced`: file ids
    by partition that the new files take the place of, None when they go on with their file groups. `settle` is called
    when the commit is visible, and not at all when the executor dies there: nothing may depend on it. `facts`: what is
    known of some of the files beside their statistics, by path.
    """

    stats: tuple[WriteStat, ...]
    extra_metadata: Mapping[str, str]
    replaced: Mapping[str, tuple[str, ...]] | None = None
    settle: Callable[[], None] = _nothing
    facts: Mapping[str, FileFacts] = field(default_factory=dict)


_SET_ASIDE: Final = PlanSetAside()


def _none(plans: PendingPlans) -> Sequence[Instant]:
    del plans
    return ()


@dataclass(frozen=True, slots=True)
class PlanKind:
    """What one kind of plans says of itself. `name` is what people call it.

    `pending` gives its pending plans, oldest first. `rewrite` writes the files of one through `PlanRun.engine`: it
    announces each by a marker before it is there, names it after the attempt, changes no row that a snapshot reads, and
    may write nothing else that counts before the commit. Errors are those of reading and writing; what was written by
    then is removed by the executor, and by the next one if that dies. `abandoned` are pending plans that this package
    made and never leaves pending: whoever holds the table lock and finds one takes it off.
    """

    name: str
    action: str
    operation: str
    pending: Callable[[PendingPlans], Sequence[Instant]]
    rewrite: Callable[[PlanRun], Rewritten]
    rule: ConflictRule = _SET_ASIDE
    abandoned: Callable[[PendingPlans], Sequence[Instant]] = _none

    def pending_action(self, profile: FormatProfile) -> str:
        """The action of its instants on timelines of this version."""
        if self.action == CLUSTERING and not profile.capabilities.clustering_action:
            return REPLACE_COMMIT
        return self.action

    def find(self, plans: PendingPlans, requested: InstantTime | None) -> Instant | None:
        """The pending plan that was asked for; the oldest one where none was, None where there is none.

        Raises:
            Invalid: there is no such plan.
        """
        found = self.pending(plans)
        if requested is None:
            return found[0] if found else None
        for one in found:
            if one.requested == requested:
                return one
        raise Invalid(
            f"There is no pending {self.name} {requested}",
            remedy=f"Pending are: {', '.join(one.requested for one in found) or 'none'}",
            instant=requested,
        )
