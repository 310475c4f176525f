"""Which indexes options ask for, and which they say to drop. What each kind reads of the options is said by the kind.

1. A partition is made when an option asks for it, and dropped when an option, set by the caller, says no (unless
   `hoodie.metadata.auto.delete.partitions` forbids that). An option that nobody gave drops nothing.
2. With `hoodie.metadata.index.async` a write makes nothing but `files`: that is left to `build_index`, beside writers.
3. Indexes with names that are requested and there are left as they are. What is there and not requested any more stays,
   too: `hoodie.metadata.index.drop` drops it.
4. A column that the same write brings into the table cannot be indexed yet: the next write that asks makes the index.
5. A name under `hoodie.metadata.index.drop` means every index of that name, with or without prefix, and those that need
   it. It is not made by the same write either. A name that nothing has is no error: options are often given with every
   write.
6. Kinds go together with those they need.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.metadata import FILES, IndexDefinition
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.indexes import registry
from hoodie.metadata_writer.indexes.registry import dependents, ensure_possible, kind_of, partition_names
from hoodie.metadata_writer.partition_state import maintained_partitions
from hoodie.records import with_meta
from hoodie.records.columns import type_at

log = logging.getLogger(__name__)

DROP: Final = "hoodie.metadata.index.drop"
NAME: Final = "hoodie.index.name"
AUTO_DELETE: Final = "hoodie.metadata.auto.delete.partitions"
ASYNC: Final = "hoodie.metadata.index.async"


def wanted_partitions(context: IndexContext) -> tuple[str, ...]:
    """The partitions that a write with these options makes where they are not there, `files` first. Those of indexes
    with names are said by `requested_definitions`.

    Raises:
        Invalid, Unsupported: an index that is asked for cannot be kept for this table.
    """
    if context.options.config.flag(ASYNC):
        return (FILES,)
    wanted: list[str] = []
    for kind in registry.KINDS:
        if kind.is_wanted(context) and set(kind.needs) <= set(wanted):
            wanted.append(kind.name)
    dropped = dropped_by_name(context.options.config, wanted)
    names = tuple(name for name in wanted if name not in dropped)
    for name in names:
        ensure_possible(context.handle, name, kind_of(name).definition(context))
    return names


def unwanted_partitions(context: IndexContext) -> tuple[str, ...]:
    """The partitions there are that options set by the caller say no to, or to drop, and those that they want
    otherwise: such an index is made anew.
    """
    config, kept = context.options.config, set(maintained_partitions(context.handle))
    found = set()
    for kind in registry.KINDS:
        switch = kind.switch(context)
        is_off = bool(switch) and config.flag(AUTO_DELETE) and config.is_set(switch) and not config.flag(switch)
        if is_off or (not config.flag(ASYNC) and kind.is_outdated(context)):
            found.add(kind.name)
    found |= dependents(found, kept)
    return tuple(sorted((found & kept) | dropped_by_name(config, kept)))


def requested_definitions(context: IndexContext, wanted: Collection[str]) -> dict[str, IndexDefinition]:
    """Definitions by name of the indexes with names that options ask for and the table lacks. `wanted`: what the table
    is to have besides.

    Raises:
        Invalid, Unsupported: the table cannot have such an index.
    """
    config = context.options.config
    if config.flag(ASYNC):
        return {}
    requested = [found for kind in registry.KINDS if (found := kind.requested(config)) is not None]
    dropped = dropped_by_name(config, [definition.name for definition in requested])
    lacking = [found for found in requested if found.name not in dropped and not _is_there(context, found)]
    version = context.handle.profile.indexes.version
    return {found.name: replace(found, version=version) for found in lacking if _is_possible(context, found, wanted)}


def dropped_by_name(config: Config, names: Iterable[str]) -> set[str]:
    """Those of the indexes that the options say to drop, and those that need one they say to drop.

    Raises:
        Invalid: they name the list of files.
    """
    said = set(config.list(DROP))
    if FILES in said:
        raise Invalid(
            f"{DROP} cannot drop {FILES}: that is the metadata table itself",
            remedy="Set hoodie.metadata.enable=false to drop the metadata table",
            key=DROP,
        )
    candidates = set(names)
    gone = {partition for name in said for partition in partition_names(name)}
    return candidates & (gone | dependents(gone, candidates))


def _is_there(context: IndexContext, wanted: IndexDefinition) -> bool:
    """Whether the table has the index already, ready or being built.

    Raises:
        Invalid: its name belongs to an index of something else.
    """
    kind = kind_of(wanted.name)
    if kind.one_per_columns:
        others = map(context.definition_of, filter(kind.owns, maintained_partitions(context.handle)))
        if any(other is not None and other.source_fields == wanted.source_fields for other in others):
            return True
    known = context.definition_of(wanted.name)
    if known is not None and not kind.satisfies(known, wanted):
        raise Invalid(
            f"There is an index {wanted.name} already, and it is of something else than the options ask for",
            remedy=f"Give the new one another name with {NAME}, or drop the old one with {DROP}",
            index=wanted.name,
        )
    return known is not None


def _is_possible(context: IndexContext, wanted: IndexDefinition, others: Collection[str]) -> bool:
    """Whether the index can be made now; not while its column is still to come.

    Raises:
        Invalid, Unsupported: the table can never have it as it is.
    """
    kind = kind_of(wanted.name)
    ensure_possible(context.handle, wanted.name, wanted)
    kind.ensure_needs(context, {*others, *maintained_partitions(context.handle)})
    before, after = context.columns_before(), context.schema
    if after is not None:
        kind.ensure_columns(after, wanted)
    if before is not None and after is not None and type_at(with_meta(before), wanted.source_fields[0]) is None:
        log.info("the index %s is left to the next write: its column comes with this one", wanted.name)
        return False
    if before is not None:
        kind.ensure_columns(before, wanted)
    return before is not None or after is not None
