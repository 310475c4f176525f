"""File groups that a pending clustering will replace: nothing else may change or fill them until it is done.

Hudi rejects such updates too (its default update strategy).
"""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.errors import Conflict
from hoodie.view import GroupId


def ensure_free(groups: Iterable[GroupId], clustered: frozenset[GroupId]) -> None:
    """Checks that none of the file groups a write wants to change is one that pending clusterings replace.

    Raises:
        Conflict: one is.
    """
    taken = sorted(set(groups) & clustered)
    if taken:
        partition, file_id = taken[0]
        raise Conflict(
            f"{len(taken)} file groups to be changed are input of a pending clustering, for example {file_id} in "
            f"partition {partition!r}",
            remedy="Let the clustering finish (or roll it back) with Apache Hudi, then retry; a resize of buckets is "
            "carried out by Table.resize_buckets, too",
            groups=len(taken),
        )
