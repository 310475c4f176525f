"""File groups that were replaced as a whole: by insert_overwrite, delete_partition or clustering.

1. A completed replacecommit names the groups it replaces. From its requested time on they are not part of the table;
   their files stay until a clean removes them.
2. If several replacecommits name a group, the earliest counts.
3. A pending replacecommit replaces nothing yet. An archived one needs no thought: its files are gone by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hoodie.spec import CommitMetadata, InstantTime
from hoodie.view.file_slice import GroupId

Replaced = Mapping[GroupId, InstantTime]
"""Replaced groups and the requested time of the instant that replaced them."""


def replaced_groups(commits: Iterable[tuple[InstantTime, CommitMetadata]]) -> dict[GroupId, InstantTime]:
    """Groups replaced by the given completed replacecommits, each `(requested time, metadata)`."""
    replaced: dict[GroupId, InstantTime] = {}
    for requested, metadata in commits:
        for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
            for file_id in file_ids:
                known = replaced.get((partition, file_id))
                replaced[partition, file_id] = requested if known is None else min(known, requested)
    return replaced
