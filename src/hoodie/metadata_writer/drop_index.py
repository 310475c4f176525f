"""Dropping an index: what DROP INDEX does.

1. The table's properties forget it first, then its folder goes, then its definition.
2. Dropping takes along what cannot be without it (`MetadataIndexKind.needs`).
3. A build that nobody completed is dropped like an index that is ready.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from hoodie.errors import Corrupt, Invalid
from hoodie.metadata import FILES, load_index_definitions
from hoodie.metadata_writer.definitions import store_index_definitions
from hoodie.metadata_writer.indexes.registry import dependents, partition_names
from hoodie.metadata_writer.partition_state import maintained_partitions, withdraw
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
    kept = set(maintained_partitions(handle))
    definitions = load_index_definitions(handle.storage, handle.config)
    there = kept | (definitions.keys() - {FILES})
    found = next((candidate for candidate in partition_names(name) if candidate in there), None)
    if found is None or found == FILES:
        others = ", ".join(sorted(kept - {FILES}))
        raise Invalid(
            f"There is no index {name!r} to drop" if found is None else f"{FILES} is the metadata table itself",
            remedy=f"There are {others or 'none'}"
            if found is None
            else "Set hoodie.metadata.enable=false to drop the metadata table",
        )
    gone = {found, *dependents({found}, kept)}
    give_up_builds(handle, gone)
    handle = withdraw(handle, gone)
    left = {key: definition for key, definition in definitions.items() if key not in gone}
    if len(left) < len(definitions):
        store_index_definitions(handle, left)
    return tuple(sorted(gone))


def give_up_builds(handle: TableHandle, names: Collection[str] | None) -> None:
    """Removes builds of these indexes (None: of all) that nobody completed from the timeline."""
    for instant in timeline_of(handle).pending():
        if instant.action != INDEXING:
            continue
        path = instant_path(handle.profile, replace(instant, state=State.REQUESTED))
        try:
            plan = parse_index_plan(load_requested(handle.storage, handle.profile, instant), path)
        except Corrupt:
            plan = ()
        if names is None or not plan or {indexed.name for indexed in plan} & set(names):
            log.info("the indexing %s was never completed and is given up", instant.requested)
            delete_instant_files(handle.storage, handle.profile, instant)
