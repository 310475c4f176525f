"""File groups that a pending clustering will replace: nothing else may change or fill them until it is done.

Hudi rejects such updates too (its default update strategy).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hoodie.errors import Conflict
from hoodie.spec import InstantTime
from hoodie.view import GroupId


def ensure_free(groups: Iterable[GroupId], clustered: Mapping[GroupId, InstantTime]) -> None:
    """Checks that none of the file groups a write wants to change is one that a pending clustering replaces;
    `clustered`: the plan of each such group.

    Raises:
        Conflict: one is.
    """
    taken = sorted(set(groups) & clustered.keys())
    if taken:
        partition, file_id = taken[0]
        instant = clustered[taken[0]]
        raise Conflict(
            f"The pending clustering {instant} replaces {len(taken)} of the file groups to be changed, for example "
            f"{file_id} in partition {partition!r}",
            remedy="Carry it out (hoodie cluster, a resize of buckets by hoodie resize) or take it off (hoodie cluster "
            f"--op unschedule --instant {instant}), then write again",
            groups=len(taken),
            instant=instant,
        )
