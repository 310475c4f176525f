"""The partitions that a plan of a clustering covers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hoodie.services.clustering.options import PartitionChoice

_HOURS = 24


def chosen_partitions(choice: PartitionChoice, known: Iterable[str], hour: int) -> tuple[str, ...]:
    """The partitions to cluster, of those that are `known`, in their order; `hour` of the day it is, 0 to 23.

    As in Hudi 1.2 the pattern is not asked about partitions that were selected by name, and the mode is.
    """
    names = tuple(known)
    if choice.selected:
        names = tuple(name for name in names if name in set(choice.selected))
    elif choice.pattern is not None:
        pattern = re.compile(choice.pattern)
        names = tuple(name for name in names if pattern.fullmatch(name))
    match choice.mode:
        case "RECENT_DAYS":
            kept = sorted(names, reverse=True)[max(0, choice.skip) :]
            recent = set(kept[: choice.lookback] if choice.lookback > 0 else kept)
            return tuple(name for name in names if name in recent)
        case "SELECTED_PARTITIONS":
            return tuple(
                name
                for name in names
                if (choice.begin is None or name >= choice.begin) and (choice.end is None or name <= choice.end)
            )
        case "DAY_ROLLING":
            rolling = {name for at, name in enumerate(sorted(names)) if at % _HOURS == hour}
            return tuple(name for name in names if name in rolling)
        case _:
            return names
