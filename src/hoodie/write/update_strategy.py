"""What a write does that wants file groups which a pending clustering will replace: it gives way, or the plan does.

1. Nothing may change or fill such a group while the plan is pending: whoever carries it out would lose the change. So a
   write either raises, or takes the plan off first. Hudi's Allow strategy without its rollback writes all the same, and
   is refused here.
2. A class of the caller's own is named by the option `hoodie.clustering.updates.strategy` of a call as
   `package.module:Class`, and made with the options of the call and the table's config. It is never named by a table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from hoodie.config import Config
from hoodie.config.own_class import answer_of_own_class, made_by_own_class
from hoodie.errors import Conflict, Invalid, Unsupported
from hoodie.spec import InstantTime, TableConfig
from hoodie.view import GroupId

UPDATES: Final = "hoodie.clustering.updates.strategy"
GIVES_UP: Final = "hoodie.clustering.rollback.pending.replacecommit.on.conflict"


@runtime_checkable
class UpdateStrategy(Protocol):
    """What becomes of plans that are in the way of a write. A frozen value."""

    def plans_to_give_up(self, taken: Mapping[GroupId, InstantTime]) -> Collection[InstantTime]:
        """The pending clusterings that are taken off for the write: all that are in its way. `taken`: the plan of each
        file group that the write wants to change.

        Raises:
            Conflict: the write gives way.
        """
        ...


@dataclass(frozen=True, slots=True)
class Reject:
    """The write gives way: Hudi's default, and ours."""

    def plans_to_give_up(self, taken: Mapping[GroupId, InstantTime]) -> Collection[InstantTime]:
        """See `UpdateStrategy`."""
        raise in_the_way(taken)


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The plans give way: Hudi's Allow strategy with its rollback."""

    def plans_to_give_up(self, taken: Mapping[GroupId, InstantTime]) -> Collection[InstantTime]:
        """See `UpdateStrategy`."""
        return frozenset(taken.values())


@dataclass(frozen=True, slots=True)
class OwnUpdates:
    """A strategy of the caller's own, whose class is `path`; a plan that stays in the way makes the write give way."""

    path: str
    own: UpdateStrategy

    def plans_to_give_up(self, taken: Mapping[GroupId, InstantTime]) -> Collection[InstantTime]:
        """See `UpdateStrategy`.

        Raises:
            Invalid: the class fails.
        """

        def wrong(said: str) -> Invalid:
            return Invalid(
                f"{UPDATES}={self.path}: {said}",
                remedy="Nothing was written; mend `plans_to_give_up` of the class",
                key=UPDATES,
            )

        given_up = answer_of_own_class(lambda: frozenset(self.own.plans_to_give_up(taken)), wrong)
        left = {group: plan for group, plan in taken.items() if plan not in given_up}
        if left:
            raise in_the_way(left)
        return given_up & frozenset(taken.values())


def parse_update_strategy(config: Config, table: TableConfig) -> UpdateStrategy:
    """The strategy that the options ask for.

    Raises:
        Invalid: a class of the caller's own that cannot be made. Unsupported: a strategy that is not known here.
    """
    name = config.text(UPDATES)
    if ":" in name:
        given = "the options of the write (Config) and the table's config (TableConfig)"
        made = made_by_own_class(UPDATES, name, config, table, given=given)
        if not isinstance(made, UpdateStrategy):
            raise Invalid(
                f"{UPDATES}={name} makes no update strategy but a {type(made).__name__}",
                remedy="Give it `plans_to_give_up(taken)`",
                key=UPDATES,
            )
        return OwnUpdates(name, made)
    short = name.strip().rpartition(".")[2].removeprefix("Spark").removesuffix("UpdateStrategy")
    match short:
        case "" | "Reject":
            return Reject()
        case "Allow" if config.flag(GIVES_UP):
            return GiveUp()
        case "Allow":
            raise Unsupported(
                f"{UPDATES}={name} without {GIVES_UP} lets an update change what a pending clustering replaces",
                remedy=f"The update would be lost: set {GIVES_UP}=true, so that the plan is taken off first",
                key=UPDATES,
            )
        case _:
            raise Unsupported(
                f"{UPDATES} is {name}, which is not known here",
                remedy="Leave it out, use Reject or Allow, or name a class of your own as package.module:Class",
                key=UPDATES,
            )


def taken_groups(groups: Iterable[GroupId], clustered: Mapping[GroupId, InstantTime]) -> dict[GroupId, InstantTime]:
    """Those of the groups that a pending clustering replaces, with its instant; `clustered`: the plan of each such."""
    return {group: clustered[group] for group in sorted(set(groups) & clustered.keys())}


def in_the_way(taken: Mapping[GroupId, InstantTime]) -> Conflict:
    """The error of a write that wants these file groups; there is one at least."""
    (partition, file_id), instant = next(iter(taken.items()))
    return Conflict(
        f"The pending clustering {instant} replaces {len(taken)} of the file groups to be changed, for example "
        f"{file_id} in partition {partition!r}",
        remedy="Carry it out (hoodie cluster, a resize of buckets by hoodie resize) or take it off (hoodie cluster "
        f"--op unschedule --instant {instant}), then write again. {UPDATES}=Allow with {GIVES_UP}=true takes it off",
        groups=len(taken),
        instant=instant,
    )
