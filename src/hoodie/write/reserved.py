"""File groups that a pending clustering will replace: nothing else may change or fill them until it is done.

Hudi rejects such updates too (its default update strategy). A clustering in version 6 is a replacecommit with a plan.
"""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.errors import Conflict
from hoodie.spec import parse_requested_replace
from hoodie.storage import Storage
from hoodie.timeline import Timeline, instant_path, load_requested
from hoodie.view import GroupId

_ACTIONS = ("clustering", "replacecommit")


def load_reserved(storage: Storage, timeline: Timeline) -> frozenset[GroupId]:
    """The file groups that pending clusterings take as input. Reads the plan of each."""
    groups: set[GroupId] = set()
    for instant in timeline.pending():
        if instant.action in _ACTIONS:
            data = load_requested(storage, timeline.profile, instant)
            path = instant_path(timeline.profile, instant)
            groups.update(parse_requested_replace(data, path).group_ids)
    return frozenset(groups)


def ensure_free(groups: Iterable[GroupId], reserved: frozenset[GroupId]) -> None:
    """Checks that none of the file groups a write wants to change is reserved.

    Raises:
        Conflict: one is.
    """
    taken = sorted(set(groups) & reserved)
    if taken:
        partition, file_id = taken[0]
        raise Conflict(
            f"{len(taken)} file groups to be changed are input of a pending clustering, for example {file_id} in "
            f"partition {partition!r}",
            remedy="Let the clustering finish (or roll it back) with Apache Hudi, then retry; a resize of buckets is "
            "carried out by Table.resize_buckets, too",
            groups=len(taken),
        )
