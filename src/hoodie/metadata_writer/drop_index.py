"""Dropping an index: what DROP INDEX does.

1. The table's properties forget it first, then its folder goes, then its definition.
2. Dropping takes along what cannot be without it: secondary indexes need the record index, statistics of partitions
   need those of columns.
3. A build that nobody completed is dropped like an index that is ready.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from hoodie.errors import Corrupt, Invalid
from hoodie.metadata import COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX, load_index_definitions
from hoodie.metadata.partitions import EXPRESSION_PREFIX, SECONDARY_PREFIX
from hoodie.metadata_writer.definitions import store_index_definitions
from hoodie.metadata_writer.partition_state import kept_partitions, withdraw
from hoodie.spec import INDEXING, State
from hoodie.spec.index_plan import parse_index_plan
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.timeline import delete_instant_files, instant_path, load_requested

log = logging.getLogger(__name__)


def drop_index(handle: TableHandle, name: str) -> tuple[str, ...]:
    """The names of the indexes that are gone: the one with this name, with or without its prefix, and those that need
    it. The caller holds the table lock.

    Raises:
        Invalid: there is no such index, or it is the list of files.
    """
    handle = load_handle(handle.storage, handle.env)
    kept = set(kept_partitions(handle))
    definitions = load_index_definitions(handle.storage, handle.config)
    candidates = (name, SECONDARY_PREFIX + name, EXPRESSION_PREFIX + name)
    found = next((one for one in candidates if one in kept or (one in definitions and one != FILES)), None)
    if found is None or found == FILES:
        there = sorted(kept - {FILES})
        raise Invalid(
            f"There is no index {name!r} to drop" if found is None else f"{FILES} is the metadata table itself",
            remedy=f"There are {', '.join(there) or 'none'}"
            if found is None
            else "Set hoodie.metadata.enable=false to drop the metadata table",
        )
    gone = {found}
    if found == COLUMN_STATS:
        gone |= kept & {PARTITION_STATS}
    if found == RECORD_INDEX:
        gone |= {one for one in kept if one.startswith(SECONDARY_PREFIX)}
    give_up_builds(handle, gone)
    handle = withdraw(handle, gone)
    left = {key: one for key, one in definitions.items() if key not in gone}
    if len(left) < len(definitions):
        store_index_definitions(handle, left)
    return tuple(sorted(gone))


def give_up_builds(handle: TableHandle, names: Collection[str]) -> None:
    """Removes builds of these indexes that nobody completed from the timeline."""
    for instant in timeline_of(handle).pending():
        if instant.action != INDEXING:
            continue
        path = instant_path(handle.profile, replace(instant, state=State.REQUESTED))
        try:
            plan = parse_index_plan(load_requested(handle.storage, handle.profile, instant), path)
        except Corrupt:
            plan = ()
        if not plan or {one.name for one in plan} & set(names):
            log.info("the indexing %s was never completed and is given up", instant.requested)
            delete_instant_files(handle.storage, handle.profile, instant)
