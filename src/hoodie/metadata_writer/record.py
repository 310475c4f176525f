"""Keeping the metadata table true: what every action of the table's timeline calls before it completes.

1. An update is a delta commit of the metadata table at the instant of the action, completed before the action is.
   Readers count it when the action has completed (`hoodie.metadata.valid_instants`), so one that never does is
   invisible; its rollback takes the delta commit back.
2. Doing it again for an instant first takes back what was recorded before.
3. Partitions that are being built are updated, too: nothing that happens meanwhile is missed.
4. The caller holds the table lock.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace

import pyarrow as pa

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import Conflict, Corrupt
from hoodie.layout.required import metadata_is_damaged
from hoodie.metadata import FILES, IndexDefinition, load_index_definitions
from hoodie.metadata.store import ensure_finished
from hoodie.metadata_writer.compact import compact_if_due, finish_compactions
from hoodie.metadata_writer.definitions import (
    definitions_after,
    store_index_definitions,
    with_readable_definitions,
)
from hoodie.metadata_writer.delta_commit import write_delta_commit
from hoodie.metadata_writer.drop_index import give_up_builds
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.indexes.registry import index_of, is_named, ordered
from hoodie.metadata_writer.initialise import add_groups, initialise, may_initialise
from hoodie.metadata_writer.known import KnownMetadata
from hoodie.metadata_writer.look import MetadataLook, look_at_metadata
from hoodie.metadata_writer.metadata_handle import load_metadata_handle, open_metadata_handle
from hoodie.metadata_writer.metadata_index import Records
from hoodie.metadata_writer.options import MetadataOptions
from hoodie.metadata_writer.partition_state import (
    maintained_partitions,
    remember,
    set_aside,
    withdraw,
    without_partitions,
)
from hoodie.metadata_writer.requested_indexes import (
    dropped_by_name,
    requested_definitions,
    unwanted_partitions,
    wanted_partitions,
)
from hoodie.metadata_writer.undo import has_partition_made_after, last_compaction, roll_back, settle
from hoodie.metadata_writer.update import TableUpdate
from hoodie.spec import DELTA_COMMIT, ROLLBACK, WRITE_ACTIONS, Instant, InstantTime
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.timeline import Timeline
from hoodie.view import list_files

log = logging.getLogger(__name__)

_LISTING = LocalEngine(16)


def record_update(  # noqa: PLR0917
    handle: TableHandle,
    update: TableUpdate,
    engine: Engine,
    options: MetadataOptions | None = None,
    timeline: Timeline | None = None,
    known: KnownMetadata | None = None,
) -> None:
    """Records the action in the metadata table, where it counts as soon as the action's instant completes.

    Nothing happens when the table has no metadata table, or (rollbacks since version 8) there is nothing to say.
    `timeline`: the table's, from before the action or with it pending; loaded when it is not given. `known`: what
    `ensure_metadata` gave, by a caller that has held the table lock since. A damaged metadata table is dropped, with a
    warning: the next write makes it again, with all it had.

    Raises:
        Corrupt: it is damaged, and the table's files lie under storage paths.
    """
    if not handle.config.is_metadata_table_ready or _says_nothing(update):
        return
    try:
        table = timeline_of(handle) if timeline is None else timeline
        _record(handle, update, engine, options or MetadataOptions(), table, known or _look(handle, table))
    except Corrupt as damage:
        _ensure_may_go(handle, damage)
        _drop_damaged(handle, damage)


def is_recorded(handle: TableHandle, target: Instant) -> bool:
    """Whether the metadata table says something about the write `target`, completed or not."""
    if not handle.config.is_metadata_table_ready:
        return False
    try:
        return timeline_of(open_metadata_handle(handle)).find(target.requested, DELTA_COMMIT) is not None
    except Corrupt:
        return True


def told_before_the_end(handle: TableHandle) -> frozenset[InstantTime]:
    """The pending writes and plans of which the metadata table knows all. Nobody tells it but under the table lock,
    which is held from there to the completed instant: for who has that lock, they are dead or have lost it.
    """
    if not handle.config.is_metadata_table_ready:
        return frozenset()
    pending = [one for one in timeline_of(handle).pending() if one.action in WRITE_ACTIONS]
    if not pending:
        return frozenset()
    try:
        told = timeline_of(open_metadata_handle(handle)).completed()
    except Corrupt:
        return frozenset()
    known = {one.requested for one in told if one.action == DELTA_COMMIT}
    return frozenset(one.requested for one in pending) & known


def undo_update(
    handle: TableHandle,
    target: Instant,
    rollback: InstantTime | None,
    engine: Engine,
    *,
    was_completed: bool = False,
) -> TableHandle:
    """The handle of a table whose metadata table says nothing about the write `target` any more.

    `rollback`: the instant of the table's rollback, for the record; None when a writer takes its own write back.
    `was_completed`: the write was, or may have been. What a compaction of the metadata table has merged cannot be taken
    back, nor what one of its partitions was made of: then the metadata table is dropped with a warning, and the next
    write makes it again. A writer that takes its own write back touches nothing else: it may have lost the table lock,
    and what is unfinished is then at work.
    """
    del engine
    if not handle.config.is_metadata_table_ready:
        return handle
    try:
        metadata = open_metadata_handle(handle)
        timeline = timeline_of(metadata)
        if rollback is not None:
            timeline = settle(metadata, timeline, handle)
    except Corrupt as damage:
        return _drop_damaged(handle, damage)
    found = timeline.find(target.requested, DELTA_COMMIT)
    compacted = last_compaction(timeline)
    is_merged = (
        found is not None
        and found.is_completed
        and compacted is not None
        and metadata.profile.clock.of(found) <= compacted
    )
    is_made_with = was_completed and has_partition_made_after(metadata, timeline, found or target, timeline_of(handle))
    if is_merged or is_made_with:
        log.warning(
            "the metadata table of %s is dropped: %s, which is rolled back, is merged into its base files; "
            "the next write makes it again",
            handle.config.name,
            target.requested,
        )
        return set_aside(handle)
    if found is not None:
        roll_back(metadata, found, rollback if found.is_completed else None)
    return handle


def restore_metadata(handle: TableHandle, to: InstantTime, restore: InstantTime, engine: Engine) -> TableHandle:
    """The handle of a table whose metadata table was made anew from the files that are there.

    Called when the files of everything after `to` are gone, right before the restore completes. Version 6 cannot make a
    metadata table while an instant is pending, unless files lie under storage paths: it is dropped, and the next write
    makes it.
    """
    names = maintained_partitions(handle)
    if not names:
        return handle
    log.info("the metadata table of %s is made anew: restore %s to %s", handle.config.name, restore, to)
    return rebuild_partitions(handle, names, engine)


def ensure_metadata(  # noqa: PLR0917
    handle: TableHandle,
    config: Config,
    timeline: Timeline,
    engine: Engine,
    schema: pa.Schema | None = None,
    before: pa.Schema | None = None,
    look: MetadataLook | None = None,
) -> tuple[TableHandle, KnownMetadata | None]:
    """The handle of a table that has the metadata table the options ask for, and what is known of that; None where the
    table has none, or it has changed right now.

    Unless they say no (`hoodie.metadata.enable=false`, which drops it) it is made where there is none. Its partitions
    are added and dropped as they say. One that cannot be opened is made anew, with a warning. `timeline` is the
    table's, after failed writes were rolled back; `schema` its data columns after the write and `before` those before,
    where they are known. `look`: the metadata table, if nothing has changed since somebody looked under the table lock.

    Raises:
        Invalid, Unsupported: the table cannot have an index the options ask for. Nothing was changed, unless the rows
            were counted for it.
        Corrupt: the metadata table is damaged, and the table's files lie under storage paths.
    """
    had = maintained_partitions(handle)
    if look is None or look.handle is not handle:
        look = look_at_metadata(handle, config)
    if look is None:
        return (withdraw(handle, (FILES,)) if had else handle), None
    context = IndexContext(handle, timeline, engine, MetadataOptions.of(config), look.definitions, schema)
    if before is not None:
        context.remember_columns(before)
    unwanted = set(unwanted_partitions(context))
    wanted, requested = _wanted(context, unwanted)
    if had:
        try:
            metadata, seen = look.ensure_complete()
            ensure_finished(timeline, seen)
            metadata_timeline = finish_compactions(metadata, timeline, settle(metadata, seen, handle), engine)
        except Corrupt as damage:
            _ensure_may_go(handle, damage)
            log.warning("the metadata table of %s is damaged and made anew: %s", handle.config.name, damage)
            context = replace(_without(context, {FILES}, unwanted), rebuilt=frozenset(had) - unwanted)
            return _initialised(context, {*wanted, *had} - (unwanted - wanted), requested), None
        dropped = unwanted | _unkept(context, had)
        if dropped or dropped_by_name(config, context.definitions):
            return _initialised(_without(context, dropped, unwanted), wanted, requested), None
        kept = _initialised(context, wanted, requested)
        if kept is not handle:
            return kept, None
        listed = look.listed if metadata_timeline is seen else {}
        return kept, KnownMetadata(metadata, metadata_timeline, context.definitions, before, listed=listed)
    return _initialised(context, wanted, requested), None


def remake_withdrawn(handle: TableHandle, engine: Engine) -> None:
    """Makes the metadata table of a table with storage paths anew where an action had to withdraw it: without it nobody
    can read the table. Nothing happens otherwise.
    """
    fresh = load_handle(handle.storage, handle.env) if handle.config.is_federated else handle
    if fresh.config.is_federated and not fresh.config.is_metadata_table_ready:
        rebuild_partitions(fresh, (), engine)


def rebuild_partitions(handle: TableHandle, names: tuple[str, ...], engine: Engine) -> TableHandle:
    """The handle after partitions of the metadata table (all it has when none is named, or `files` is) were made anew
    from storage, as their definitions say. Where these are damaged, without the indexes that only they know. Builds of
    these that nobody completed are given up.
    """
    handle = with_readable_definitions(handle)
    had = maintained_partitions(handle)
    wanted = set(names or had)
    if FILES in wanted or not handle.config.is_metadata_table_ready:
        wanted |= set(had)
    if handle.config.is_federated and not handle.config.is_metadata_table_ready:
        wanted.add(FILES)  # it cannot be without
    give_up_builds(handle, wanted)
    handle = set_aside(handle) if FILES in wanted else withdraw(handle, tuple(wanted))
    context = replace(_context(handle, timeline_of(handle), engine, MetadataOptions()), rebuilt=frozenset(wanted))
    return _initialised(context, wanted)


def drop_partitions(handle: TableHandle, names: tuple[str, ...]) -> TableHandle:
    """The handle of a table whose metadata table has these partitions no more; with `files` among them none, nor builds
    of others that nobody completed.
    """
    if FILES in names:
        give_up_builds(handle, None)
    return withdraw(handle, names)


def compact_metadata(handle: TableHandle, engine: Engine, options: MetadataOptions | None = None) -> Instant | None:
    """The completed compaction of the metadata table, if one was due. Nothing of the table may be half done."""
    if not handle.config.is_metadata_table_ready:
        return None
    chosen = options or MetadataOptions()
    return compact_if_due(
        handle, open_metadata_handle(handle), engine, chosen.compact_after, maintained_partitions(handle)
    )


def _ensure_unfinished(handle: TableHandle, instant: InstantTime) -> None:
    """Checks that nobody has completed an action that is about to be recorded: what the metadata table says of it then
    is theirs, and no leftover.

    Raises:
        Conflict: somebody has, as another executor of the same plan.
    """
    now = timeline_of(handle).find(instant)
    if now is not None and now.is_completed:
        raise Conflict(
            f"The {now.action} {instant} is completed already",
            remedy="Read the table again; if this write is not in it, repeat it",
            instant=instant,
        )


def _record(  # noqa: PLR0917
    handle: TableHandle,
    update: TableUpdate,
    engine: Engine,
    options: MetadataOptions,
    table: Timeline,
    known: KnownMetadata,
) -> None:
    partitions = maintained_partitions(handle)
    metadata = known.metadata
    before = known.timeline.find(update.instant, DELTA_COMMIT)
    if before is not None:
        _ensure_unfinished(handle, update.instant)
        roll_back(metadata, before, None)
        known = replace(known, timeline=timeline_of(metadata), listed={})
    context = IndexContext(handle, table, engine, options, known.definitions, update.schema, known=known)
    unkept = _unkept(context, partitions)
    if unkept:
        context = context.with_handle(withdraw(handle, unkept))
        partitions = maintained_partitions(context.handle)
    # What is written is listed anyway, if it was not yet; who reads it before does not list it again.
    unlisted = [name for name in partitions if name not in known.listed]
    listed = {files.partition: files for files in list_files(metadata.storage, unlisted, engine=_LISTING)}
    listed |= {name: known.listed[name] for name in partitions if name in known.listed}
    if context.known is not None:
        context = replace(context, known=replace(context.known, listed=listed))
    context = _with_definitions(context, update)
    records: list[Records] = []
    grown: set[str] = set()
    for name in ordered(partitions):
        index = index_of(name, context)
        if index is None:
            continue
        records.extend(index.updated(context, update))
        new = index.new_file_ids(context, update)
        if new:
            add_groups(metadata, name, new, update.instant)
            grown.add(name)
    listed = {name: files for name, files in listed.items() if name not in grown}
    write_delta_commit(
        metadata, known.timeline, update.instant, records, context.definitions, engine, partitions, listed
    )


def _look(handle: TableHandle, table: Timeline) -> KnownMetadata:
    """The metadata table as it is now, once what nobody finished is taken back.

    Raises:
        Corrupt: it is damaged.
    """
    metadata, metadata_timeline = load_metadata_handle(handle)
    ensure_finished(table, metadata_timeline)
    metadata_timeline = settle(metadata, metadata_timeline, handle)
    definitions = _definitions(handle, maintained_partitions(handle))
    return KnownMetadata(metadata, metadata_timeline, definitions, None)


def _with_definitions(context: IndexContext, update: TableUpdate) -> IndexContext:
    """The context with the definitions that indexes have after the action, which are stored."""
    definitions = definitions_after(context, update)
    if definitions is not context.definitions:
        store_index_definitions(context.handle, definitions)
        context = replace(context, definitions=definitions)
    return context


def _wanted(context: IndexContext, unwanted: set[str]) -> tuple[set[str], dict[str, IndexDefinition]]:
    """The partitions that options ask for once the unwanted ones are gone, and definitions of new ones among them."""
    after = context.with_handle(without_partitions(context.handle, unwanted)) if unwanted else context
    wanted = set(wanted_partitions(after))
    requested = requested_definitions(after, wanted)
    return wanted | requested.keys(), requested


def _initialised(
    context: IndexContext, wanted: Collection[str], requested: Mapping[str, IndexDefinition] | None = None
) -> TableHandle:
    handle = context.handle
    had = maintained_partitions(handle) if handle.config.is_metadata_table_ready else ()
    missing = [name for name in ordered(wanted) if name not in had]
    if not missing:
        return handle
    if not may_initialise(handle, context.timeline):
        log.info("the metadata table of %s is not made now: an instant is pending", handle.config.name)
        return remember(handle, context.rebuilt)
    return initialise(context, missing, requested)


def _without(context: IndexContext, dropped: set[str], unwanted: set[str]) -> IndexContext:
    """The context after partitions were dropped. Definitions go along where options name them, and those of indexes
    with names that nobody wants: Hudi makes every such index anew that it finds a definition of.
    """
    config, known = context.options.config, context.definitions
    named = dropped_by_name(config, {*known, *unwanted})
    if named:
        give_up_builds(context.handle, named)
    handle = withdraw(context.handle, dropped)
    forgotten = named | set(filter(is_named, unwanted))
    left = {name: definition for name, definition in known.items() if name not in forgotten}
    if len(left) < len(known):
        handle = store_index_definitions(handle, left)
    return replace(context, definitions=left).with_handle(handle)


def _context(
    handle: TableHandle, timeline: Timeline, engine: Engine, options: MetadataOptions, schema: pa.Schema | None = None
) -> IndexContext:
    definitions = load_index_definitions(handle.storage, handle.config)
    return IndexContext(handle, timeline, engine, options, definitions, schema)


def _definitions(handle: TableHandle, partitions: tuple[str, ...]) -> Mapping[str, IndexDefinition]:
    """Definitions of the table's indexes, read only where some partition may have one."""
    return {} if partitions == (FILES,) else load_index_definitions(handle.storage, handle.config)


def _ensure_may_go(handle: TableHandle, damage: Corrupt) -> None:
    """Checks that a write may go on without the metadata table, or with one that it makes from a listing.

    Raises:
        Corrupt: the table's files lie under storage paths; `hoodie doctor --fix` makes the metadata table anew.
    """
    if handle.config.is_federated:
        raise metadata_is_damaged(handle.storage.uri, damage) from damage


def _drop_damaged(handle: TableHandle, damage: Corrupt) -> TableHandle:
    """The handle of a table that has no metadata table any more."""
    fresh = load_handle(handle.storage, handle.env)
    if not fresh.config.is_metadata_table_ready:
        return fresh
    log.warning(
        "the metadata table of %s is damaged and dropped; the next write makes it again: %s", handle.config.name, damage
    )
    return set_aside(fresh)


def _unkept(context: IndexContext, partitions: tuple[str, ...]) -> set[str]:
    """Partitions that cannot be kept true here and therefore have to go."""
    names = {name for name in partitions if index_of(name, context) is None}
    if names:
        log.warning(
            "the metadata table of %s loses %s, which cannot be kept up to date here",
            context.handle.config.name,
            ", ".join(sorted(names)),
        )
    return names


def _says_nothing(update: TableUpdate) -> bool:
    """A rollback since version 8 only takes back; in version 6 it may leave log files that grew."""
    return update.action == ROLLBACK and not update.sizes and not update.stats and not update.deleted
