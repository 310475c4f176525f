"""Making an index: what CREATE INDEX does.

1. Building is an action of its own, `indexing`. First, holding the table: the index's definition is stored, its
   partition of the metadata table is announced as being built, its file groups are made. From then on writers keep it.
2. Then, beside running writers, the records of all that was committed before are written as base files nobody sees.
3. Last, holding the table again: a delta commit makes them visible, what completed meanwhile is caught up with, commit
   by commit, and the partition is announced as ready. Where catching up is not safe (the metadata table was compacted,
   something was cleaned or rolled back, the table has version 6) the records are made while the table is held.
4. A build that died is an `indexing` nobody completes: the same index can be built again, or dropped, at any time. One
   that finds that the table cannot have the index leaves nothing.
5. An index that others need comes with them: the record index with a secondary index, column statistics with those of
   partitions. Dropping takes the dependents along.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import Conflict, Fenced, Invalid
from hoodie.locks import parse_lock_options
from hoodie.metadata import FILES, IndexDefinition, load_index_definitions
from hoodie.metadata_writer.definitions import definitions_for, store_index_definitions
from hoodie.metadata_writer.delta_commit import BULK_INSERT, finish, write_bases, write_delta_commit
from hoodie.metadata_writer.drop_index import give_up_builds
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.indexes.registry import ensure_possible, index_of, is_named, kind_of, ordered
from hoodie.metadata_writer.initialise import add_groups, initialise, next_init_instant
from hoodie.metadata_writer.metadata_handle import listed_file_ids, open_metadata_handle
from hoodie.metadata_writer.metadata_index import MetadataIndex, Records
from hoodie.metadata_writer.options import MetadataOptions
from hoodie.metadata_writer.partition_state import announce, announce_inflight, maintained_partitions, withdraw
from hoodie.metadata_writer.undo import last_compaction, settle
from hoodie.metadata_writer.update import TableUpdate
from hoodie.notebook import Displayed
from hoodie.records import from_avro
from hoodie.spec import (
    COMPLETED_WRITE_ACTIONS,
    DELTA_COMMIT,
    INDEXING,
    INIT_INSTANT,
    Instant,
    InstantTime,
    PartitionMetafile,
    WriteStat,
    encode_partition_metafile,
    keys,
)
from hoodie.spec.index_plan import IndexedPartition, encode_index_metadata, encode_index_plan
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.timeline import (
    Timeline,
    complete,
    create_requested,
    instant_path,
    load_commit_metadata,
    new_instant_time,
    to_inflight,
)
from hoodie.transaction import TakenAtBothEnds

log = logging.getLogger(__name__)

_WAIT_SECONDS: Final = "hoodie.metadata.index.check.timeout.seconds"
_KEEP_ROWS: Final = frozenset({"COMPACT", "LOG_COMPACT"})
"""Operations that change no row."""


@dataclass(frozen=True, slots=True)
class IndexBuildResult(Displayed):
    """An index that is ready. `records` is how many its partition started with; `made_too` are indexes it needs that
    had to be made as well.
    """

    name: str
    kind: str
    instant: InstantTime
    completed: InstantTime | None
    records: int
    size_bytes: int
    duration_ms: int
    made_too: tuple[str, ...] = ()


def build_index(
    handle: TableHandle, definition: IndexDefinition, engine: Engine | None = None, config: Config | None = None
) -> IndexBuildResult:
    """The index, ready for readers and kept by writers from now on. Takes the table lock twice, shortly:
    to begin, where it waits for its turn as a writer does, and to end, where it waits for writers that are still
    running, up to `hoodie.metadata.index.check.timeout.seconds`.

    Raises:
        Invalid: there is such an index, or the table cannot have it. Unsupported: its column or function cannot be
            indexed. Conflict: another writer holds the table; nothing was made, or the build is left unfinished: call
            again. Fenced: somebody made the index anew, or dropped it, while it was built.
    """
    clock = handle.env.monotonic()
    config = config or Config()
    options = parse_lock_options(config)
    to_end = options.waiting(1000 * config.integer(_WAIT_SECONDS))
    lock = TakenAtBothEnds(handle.storage, handle.env, "index", options, to_end)
    with lock.to_begin() as held:
        plan = _schedule(held, definition, engine or LocalEngine(), config)
    try:
        staged = () if plan.must_hold else tuple(_stage(plan, plan.context, name) for name in plan.names)
        with lock.to_commit(plan.context.handle) as (held, now):
            done, staged = _finish(_under(held, plan), held, now, staged)
    except Invalid:
        with suppress(Conflict), lock.to_commit(plan.context.handle) as (held, _):
            _give_up(held, plan.names)
        raise
    stats = [stat for base_files in staged if base_files.name == definition.name for stat in base_files.stats]
    return IndexBuildResult(
        name=definition.name,
        kind=definition.kind,
        instant=done.requested,
        completed=done.completed,
        records=sum(stat.num_writes for stat in stats),
        size_bytes=sum(stat.file_size_bytes for stat in stats),
        duration_ms=int((handle.env.monotonic() - clock) * 1000),
        made_too=tuple(name for name in plan.names if name != definition.name),
    )


@dataclass(frozen=True, slots=True)
class _Begun:
    """By partition, the file groups that were made and the instant of their first records."""

    groups: Mapping[str, tuple[str, ...]]
    instants: Mapping[str, InstantTime]


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """A build that was begun, with the context from then. `must_hold`: its records are made while the table is held."""

    context: IndexContext
    inflight: Instant
    names: tuple[str, ...]
    begun: _Begun
    upto: InstantTime
    compacted: InstantTime | None
    must_hold: bool


@dataclass(frozen=True, slots=True)
class _Staged:
    """Base files of one partition, written and not yet visible."""

    name: str
    stats: tuple[WriteStat, ...]


def _schedule(handle: TableHandle, definition: IndexDefinition, engine: Engine, config: Config) -> _Plan:
    """The build, begun. The table is held."""
    timeline = timeline_of(handle)
    known = load_index_definitions(handle.storage, handle.config)
    context = IndexContext(handle, timeline, engine, MetadataOptions.of(config), known)
    _ensure_possible(context, definition)
    if not handle.config.is_metadata_table_ready:
        again = frozenset(maintained_partitions(handle)) - {
            definition.name
        }  # those of a metadata table that was dropped
        handle = initialise(replace(context, rebuilt=again), ordered({FILES, *again}))
    needed = (*kind_of(definition.name).needs, definition.name)
    names = tuple(name for name in needed if name not in handle.config.metadata_partitions)
    give_up_builds(handle, names)
    handle = withdraw(handle, set(names) & set(maintained_partitions(handle)))
    context = replace(context, handle=handle, definitions=_without(known, names))
    definitions = definitions_for(context, names)
    made, version = definitions.get(definition.name), handle.profile.indexes.version
    stored = kind_of(definition.name).stored(definition, made, version)
    if stored is not None:
        definitions[definition.name] = stored
    handle = store_index_definitions(handle, definitions)
    timeline = timeline_of(handle)
    announced = handle.config.with_changes({keys.METADATA_PARTITIONS_INFLIGHT: ",".join(names)})
    context = IndexContext(replace(handle, config=announced), timeline, engine, context.options, definitions)
    metadata = open_metadata_handle(handle)
    metadata_timeline = settle(metadata, timeline_of(metadata))
    begun = _begin(metadata, context, names)
    handle = announce_inflight(handle, names)
    context = replace(context, handle=handle)
    requested_at = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
    newest = timeline.last_completed_write()
    upto = newest.requested if newest else INIT_INSTANT
    payload = encode_index_plan([IndexedPartition(name, upto) for name in names], handle.profile.avro_generation)
    requested = create_requested(handle.storage, handle.profile, requested_at, INDEXING, payload)
    inflight = to_inflight(handle.storage, handle.profile, requested)
    must_hold = not handle.profile.indexes.is_built_beside_writes
    return _Plan(context, inflight, names, begun, upto, last_compaction(metadata_timeline), must_hold)


def _begin(metadata: TableHandle, context: IndexContext, names: Sequence[str]) -> _Begun:
    """The partitions, begun: their groups are settled and empty."""
    groups_at = next_init_instant(metadata, context.timeline)
    groups = to_inflight(
        metadata.storage,
        metadata.profile,
        create_requested(metadata.storage, metadata.profile, groups_at, DELTA_COMMIT),
    )
    instants: dict[str, InstantTime] = {}
    made: dict[str, tuple[str, ...]] = {}
    for name in names:
        # Not the instant of the groups: a delta commit that is taken back takes all files of its instant along, and
        # writers need settled groups from the announcement on.
        instants[name] = next_init_instant(metadata, context.timeline, (groups_at, *instants.values()))
        metadata.storage.delete_dir(name)
        made[name] = _make_groups(metadata, context, _index(name, context), groups_at)
    finish(metadata, groups, (), BULK_INSERT)
    return _Begun(made, instants)


def _under(held: TableHandle, plan: _Plan) -> _Plan:
    """The plan as it is gone on with under a lock of the table."""
    handle = replace(plan.context.handle, storage=held.storage)
    return replace(plan, context=replace(plan.context, handle=handle))


def _stage(plan: _Plan, context: IndexContext, name: str) -> _Staged:
    """The first records of a partition, as files that nobody sees."""
    index, metadata = _index(name, context), open_metadata_handle(context.handle)
    # A key goes to a group by their number: those made here count even where a listing does not show them yet.
    file_ids = {name: tuple(sorted({*plan.begun.groups[name], *listed_file_ids(metadata.storage, name)}))}
    records: Sequence[Records] = tuple(index.initial(context))
    stats = write_bases(metadata, plan.begun.instants[name], records, file_ids, context.definitions, context.engine)
    index.ensure_initialised(metadata, stats, context.options.config)
    return _Staged(name, stats)


def _finish(
    plan: _Plan, handle: TableHandle, now: Timeline, staged: tuple[_Staged, ...]
) -> tuple[Instant, tuple[_Staged, ...]]:
    """The completed indexing, and what it made visible. The table is held; `handle` and `now` are as it is.

    Raises:
        Fenced: somebody made the indexes anew meanwhile, or dropped them.
    """
    if not any(one.logical == plan.inflight.logical for one in now.pending()):
        raise Fenced(
            f"The build of {', '.join(plan.names)} was given up meanwhile: somebody made it anew, or dropped it",
            remedy="Look which indexes the table has (hoodie index), and build again what is missing",
            instant=plan.inflight.requested,
        )
    metadata = open_metadata_handle(handle)
    metadata_timeline = settle(metadata, timeline_of(metadata))
    known = {instant.logical for instant in plan.context.timeline.completed()}
    later = sorted(
        (instant for instant in now.completed() if instant.logical not in known),
        key=lambda instant: instant.completed or "",
    )
    may_catch_up = last_compaction(metadata_timeline) == plan.compacted and all(
        instant.action in COMPLETED_WRITE_ACTIONS for instant in later
    )
    if plan.must_hold or not may_catch_up:
        context = plan.context.at(now)
        if not may_catch_up:
            handle = withdraw(handle, plan.names)
            # New instants: what was committed to the groups before would be missed in those of now.
            plan = replace(plan, begun=_begin(metadata, context, plan.names))
            handle = announce_inflight(handle, plan.names)
        staged = tuple(_stage(plan, context, name) for name in plan.names)
        later = []
    for base_files in staged:
        requested = create_requested(
            metadata.storage, metadata.profile, plan.begun.instants[base_files.name], DELTA_COMMIT
        )
        finish(metadata, to_inflight(metadata.storage, metadata.profile, requested), base_files.stats, BULK_INSERT)
    before = plan.context.timeline
    for instant in later:
        _catch_up(plan, handle, before, instant)
        before = before.with_instant(instant)
    payload = encode_index_metadata(
        [IndexedPartition(name, plan.upto) for name in plan.names], handle.profile.avro_generation
    )
    done = complete(handle.storage, handle.profile, plan.inflight, payload, handle.env, handle.config.timezone)
    announce(handle, plan.names)
    return done, staged


def _give_up(handle: TableHandle, names: Sequence[str]) -> None:
    """Removes what a build left that can never succeed. The caller holds the table lock."""
    give_up_builds(handle, names)
    handle = withdraw(handle, names)
    known = load_index_definitions(handle.storage, handle.config)
    store_index_definitions(handle, _without(known, names))


def _catch_up(plan: _Plan, handle: TableHandle, before: Timeline, instant: Instant) -> None:
    """Records in the partitions what a write did that completed while they were built. Where its writer has told them
    already they are told again.
    """
    said = load_commit_metadata(handle.storage, handle.profile, instant)
    update = TableUpdate(
        instant.requested,
        instant.action,
        tuple(stat for _, stat in said.write_stats()),
        schema=from_avro(said.schema, instant_path(handle.profile, instant)) if said.schema else None,
        replaced=said.partition_to_replace_file_ids or {},
        keeps_rows=said.compacted or said.operation_type in _KEEP_ROWS,
    )
    context = plan.context.at(before, handle)
    records = [found for name in plan.names for found in _index(name, context).updated(context, update)]
    metadata = open_metadata_handle(handle)
    timeline = timeline_of(metadata)
    newest = max(filter(None, (timeline.last_time(), timeline_of(handle).last_time())), default=None)
    at = new_instant_time(handle.env, handle.config.timezone, newest)
    write_delta_commit(metadata, timeline, at, records, context.definitions, context.engine, plan.names)


def _ensure_possible(context: IndexContext, definition: IndexDefinition) -> None:
    """Checks that the table can have the index.

    Raises:
        Invalid: it has it, or cannot have it. Unsupported: its column cannot be indexed.
    """
    handle, name, kind = context.handle, definition.name, kind_of(definition.name)
    if name in handle.config.metadata_partitions:
        raise Invalid(f"There is an index {name} already", remedy="Drop it first, or choose another name", index=name)
    for needed in (name, *kind.needs):
        ensure_possible(handle, needed, definition)
    schema = context.columns_before()
    if schema is not None:
        kind.ensure_columns(schema, definition)
    elif is_named(name) or definition.source_fields:
        raise Invalid(f"The index {name} names columns, and the table has none yet", remedy="Write rows first")


def _without(definitions: Mapping[str, IndexDefinition], names: Sequence[str]) -> dict[str, IndexDefinition]:
    return {name: definition for name, definition in definitions.items() if name not in names}


def _index(name: str, context: IndexContext) -> MetadataIndex:
    index = index_of(name, context)
    if index is None:
        raise Invalid(f"The index {name} is of a kind that is not known here")
    return index


def _make_groups(
    metadata: TableHandle, context: IndexContext, index: MetadataIndex, instant: InstantTime
) -> tuple[str, ...]:
    """The file ids of the groups that were made."""
    metafile = encode_partition_metafile(PartitionMetafile(instant, 1), metadata.env.now())
    metadata.storage.put(f"{index.partition}/{keys.PARTITION_METAFILE_PREFIX}", metafile)
    file_ids = index.file_ids(context)
    add_groups(metadata, index.partition, file_ids, instant)
    return file_ids
