"""Plan strategies of a caller's own, with their answers checked.

A class is named by the option `hoodie.clustering.plan.strategy.class` of a call as `package.module:Class`, and made
with the options of the call and the table's config. It is never named by a table or a plan. A group with a slice twice
would write its rows twice, and nobody else would find out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hoodie.config import Config
from hoodie.config.own_class import answer_of_own_class, made_by_own_class
from hoodie.errors import Invalid
from hoodie.services.clustering.plan_strategy import GroupOfSlices, PlanFacts, PlanNeeds, PlanStrategy
from hoodie.services.clustering.row_order import GIVEN
from hoodie.spec import TableConfig
from hoodie.view import FileSlice, GroupId

PLAN_STRATEGY: Final = "hoodie.clustering.plan.strategy.class"


@dataclass(frozen=True, slots=True)
class OwnPlan:
    """The strategy of a class of the caller's own, whose name is `path`."""

    path: str
    own: PlanStrategy

    @property
    def needs(self) -> PlanNeeds:
        """See `PlanStrategy`."""
        return self.own.needs

    def arrange(self, slices: Sequence[FileSlice], facts: PlanFacts) -> Sequence[Sequence[FileSlice]]:
        """See `PlanStrategy`.

        Raises:
            Invalid: the class fails, or gives a slice twice or one that it was not given.
        """
        groups = answer_of_own_class(lambda: [list(group) for group in self.own.arrange(slices, facts)], self._wrong)
        given = [part for group in groups for part in group]
        known = {part.group_id: part for part in slices}
        if len({part.group_id for part in given}) < len(given) or any(
            known.get(part.group_id) != part for part in given
        ):
            raise self._wrong("arrange gives a slice twice, or one that it was not asked about")
        return [group for group in groups if group]

    def choose(self, groups: Sequence[GroupOfSlices]) -> Sequence[GroupOfSlices]:
        """See `PlanStrategy`.

        Raises:
            Invalid: the class fails, or gives other groups than those it was given.
        """
        chosen = answer_of_own_class(lambda: list(self.own.choose(groups)), self._wrong)
        found = {id(one) for one in chosen}
        if len(found) < len(chosen) or not found <= {id(one) for one in groups}:
            raise self._wrong("choose gives a group twice, or one that it was not asked about")
        return chosen

    def notes(self, left: Collection[GroupId], facts: PlanFacts) -> Mapping[str, str]:
        """See `PlanStrategy`.

        Raises:
            Invalid: the class fails.
        """
        return answer_of_own_class(
            lambda: {str(key): str(value) for key, value in self.own.notes(left, facts).items()}, self._wrong
        )

    def _wrong(self, what: str) -> Invalid:
        return Invalid(
            f"{PLAN_STRATEGY}={self.path}: {what}",
            remedy="No plan was stored; mend the class: hoodie.services.clustering.plan_strategy says what it promises",
            key=PLAN_STRATEGY,
        )


def own_plan(path: str, config: Config, table: TableConfig) -> OwnPlan:
    """The strategy that the class at `path` makes.

    Raises:
        Invalid: there is no such class, it cannot be made, or what it makes is no plan strategy.
    """
    made = made_by_own_class(PLAN_STRATEGY, path, config, table, given=GIVEN)
    if not isinstance(made, PlanStrategy) or not isinstance(made.needs, PlanNeeds):
        raise Invalid(
            f"{PLAN_STRATEGY}={path} makes no plan strategy but a {type(made).__name__}",
            remedy="Give it needs, arrange, choose and notes; PlainPlan has all but arrange",
            key=PLAN_STRATEGY,
        )
    return OwnPlan(path, made)
