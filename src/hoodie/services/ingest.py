"""One write from its options to its completed instant: failed writes rolled back, planning, running, aborting.

1. How long the table lock is held is the decision of the `Locking` that the caller hands in.
2. Everything that can be refused without looking at rows is refused before anything changes: options against the table,
   schemas, what this package cannot write.
3. A write that fails is aborted by its transaction: no file, no instant. When even that fails, the next write rolls it
   back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine, Source, side_by_side, usable_cores
from hoodie.errors import Invalid
from hoodie.index import look_like_buckets, may_have_rings
from hoodie.metadata import FILES
from hoodie.metadata_writer import METADATA_ENABLE, MetadataOptions, drop_partitions, ensure_metadata, look_at_metadata
from hoodie.records import KEY_FIELD, from_avro, read_footer, without_meta
from hoodie.remote import AskedServer, asked_server, open_asked_view, open_writer_view
from hoodie.services.clustering.admin import give_up_plans
from hoodie.services.dropped_columns import ensure_not_dropped
from hoodie.services.rewrite.abandoned import drop_abandoned_plans
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.rollback.leftovers import list_leftovers
from hoodie.services.upgrading.upgrade import upgrade_if_asked
from hoodie.spec import TableConfig
from hoodie.state.handle import TableHandle
from hoodie.state.table_schema import SaidSchema, load_newest_schema, load_said
from hoodie.state.table_state import TableState, load_state, state_of
from hoodie.storage import Listing, Snapshot
from hoodie.storage.lock_holder import encode_holder, this_holder
from hoodie.timeline import Timeline, new_instant_time
from hoodie.transaction import (
    LOOKED_EXTRA,
    WRITER_EXTRA,
    AlsoNew,
    Committed,
    ConflictRule,
    Locking,
    NobodyElse,
    Transaction,
    parse_early_detection,
    writers_rule,
)
from hoodie.write import (
    Engines,
    Operation,
    Write,
    WriteOptions,
    announce,
    delete_partitions,
    ensure_compatible,
    ensure_may_not_wait,
    ensure_writable,
    evolve_schema,
    match_partitions,
    needs_stored_key,
    parse_write_options,
    partitions_of,
    run_write,
)
from hoodie.write.update_strategy import parse_update_strategy

_PARTIAL_SCHEMA = "hoodie.write.partial.update.schema"
_TO_DELETE = "hoodie.datasource.write.partitions.to.delete"
_LOCAL = LocalEngine(max(8, usable_cores()))
"""What a small commit runs on. Its tasks wait for the storage more than they compute."""


@dataclass(frozen=True, slots=True)
class CommitNote:
    """What a commit says in its extra metadata beside its options, and a look at the table right before: `ensure_new`
    raises when the table has the rows already. Nobody else writes between that look and the commit.
    """

    extra_metadata: Mapping[str, str]
    ensure_new: Callable[[TableHandle, Timeline], None]


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be written: the operation, its rows, its options, and who does the work.

    `partitions` names the partitions a partition delete is about (`*` stands for any text); without them the options or
    the rows say it. `whole_table` is save mode overwrite: the rows take the place of all others. `partial`: rows have
    some of the table's columns, and an upsert changes these only.
    """

    operation: Operation
    source: Source | None
    config: Config
    engine: Engine
    partitions: tuple[str, ...] | None = None
    whole_table: bool = False
    partial: bool = False
    note: CommitNote | None = None


def have_keys(schema: pa.Schema | None) -> bool:
    """Whether rows carry their record keys."""
    return schema is not None and KEY_FIELD in schema.names


def with_note(options: WriteOptions, request: Request) -> WriteOptions:
    """The options, with what the request's note adds to the commit."""
    if request.note is None:
        return options
    return replace(options, extra_metadata={**options.extra_metadata, **request.note.extra_metadata})


def _signed(options: WriteOptions, request: Request, handle: TableHandle, locking: Locking) -> WriteOptions:
    """The options of a commit that says who made it and whether keys were looked up, for those who give way to it."""
    if not locking.lets_others_in:
        return options
    who = encode_holder(this_holder(request.operation, handle.env)).decode()
    said = {WRITER_EXTRA: who, LOOKED_EXTRA: str(options.looks_up).lower()}
    return replace(options, extra_metadata={**options.extra_metadata, **said})


def write_locked(locking: Locking, request: Request) -> Committed:
    """The outcome of one operation on the table of `locking`. Raises as `write_table`."""
    return write_and_look(locking, request)[0]


def write_and_look(locking: Locking, request: Request) -> tuple[Committed, TableState | None]:
    """The same, and the table as the last look at it showed it, after the write. Raises as `write_table`.

    What the metadata table's timeline has then is known without a look: nobody else writes it under the table lock.
    """
    with ExitStack() as block:
        with locking.to_begin() as handle:
            write = _ready_write(handle, request, locking)
            block.enter_context(write.transaction)
            if locking.lets_others_in:
                announce(write)
        committed, after = run_request(write, request), write.transaction.after
    done = None if after is None else after.timeline.find(write.instant)
    if after is not None and done is not None and write.known is not None and not locking.lets_others_in:
        after = replace(after, metadata=write.known.timeline_after(done))
    return committed, after


def _ready_write(handle: TableHandle, request: Request, locking: Locking) -> Write:
    """The write, ready to run, after failed writes were rolled back. The table lock is held."""
    config, found = request.config, handle
    parse_early_detection(config)
    handle = upgrade_if_asked(handle, config, request.engine)
    ensure_writable(handle, config)
    ensure_compatible(config, handle.config)
    updates = parse_update_strategy(config, handle.config)
    # What lay below `.hoodie` when the lock was taken lies there still: nobody else writes, and nothing was done yet.
    below = locking.below if handle is found and locking.below is not None else Snapshot(handle.storage, "")
    server = asked_server(config)
    state, leftovers = side_by_side(partial(state_of, handle, below), partial(list_leftovers, below))
    if request.note is not None:
        request.note.ensure_new(handle, state.timeline)
    schema = None if request.source is None else request.source.schema
    options = parse_write_options(
        request.operation,
        config,
        handle.config,
        handle.profile,
        _stored_key(state, schema, server),
        whole_table=request.whole_table,
        rows_have_keys=have_keys(schema),
        partial=_partial_columns(request),
    )
    ensure_may_not_wait(handle, options, config)
    options = _signed(with_note(options, request), request, handle, locking)
    (current, said), look, has_rings = side_by_side(
        partial(_newest_schema, handle, state.timeline),
        partial(look_at_metadata, handle, config, below),
        partial(_has_rings, options, below),
    )
    change = evolve_schema(options, handle.config, current, schema, config)
    if current is not None and change.table_schema is not None and options.replaces != "table":
        ensure_not_dropped(state, current, change.table_schema)
    before = replace(state, handle=_without_unwanted_metadata(handle, config))
    state = _cleared(before, config, leftovers)
    look = look if state is before else None  # who cleared something away may have taken it out of the metadata table
    timeline = state.timeline
    handle, known = ensure_metadata(state.handle, config, timeline, request.engine, change.table_schema, current, look)
    instant = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
    return Write(
        handle=handle,
        timeline=timeline,
        plans=state.plans,
        options=options,
        engines=Engines(_LOCAL, request.engine),
        schema=change.write_schema,
        table_schema=change.table_schema,
        transaction=Transaction(handle, instant, locking, config, what=request.operation),
        metadata=MetadataOptions.of(config),
        known=known,
        server=server,
        rule=_rule(options, request, handle.config, locking),
        has_rings=has_rings,
        looks_bucketed=not options.knows_buckets
        and said is not None
        and look_like_buckets([one.file_id for _, one in said.metadata.write_stats()]),
        updates=updates,
        give_up=partial(give_up_plans, handle, locking, request.engine),
    )


def _newest_schema(handle: TableHandle, timeline: Timeline) -> tuple[pa.Schema | None, SaidSchema | None]:
    """The table's own schema, and the commit that says it."""
    said = load_said(handle.storage, timeline, None)
    return load_newest_schema(handle.storage, handle.config, timeline, said), said


def _has_rings(options: WriteOptions, below: Snapshot) -> bool:
    """Whether there may be rings that the write is not told of. Lists a folder where nobody has seen what is there."""
    stores_rows = options.operation != "delete"
    return stores_rows and not options.knows_buckets and may_have_rings(below)


def _rule(options: WriteOptions, request: Request, table: TableConfig, locking: Locking) -> ConflictRule:
    """What others may do while the write runs."""
    if not locking.lets_others_in:
        return NobodyElse()
    traits = options.index.traits
    rule = writers_rule(
        request.config, table, options.operation, keys_once=options.looks_up, is_global=traits.is_global
    )
    return rule if request.note is None else AlsoNew(rule, request.note.ensure_new)


def _cleared(state: TableState, config: Config, leftovers: Listing) -> TableState:
    """The state after failed writes were rolled back, and plans that nobody will carry out taken off."""
    timeline = roll_back_failed_writes(state.handle, _LOCAL, state.timeline, config, leftovers)
    if timeline is not state.timeline:
        state = load_state(state.handle.storage, state.handle.env)  # a rollback may have had to drop the metadata table
    return drop_abandoned_plans(state, _LOCAL, config)


def _without_unwanted_metadata(handle: TableHandle, config: Config) -> TableHandle:
    """The handle without a metadata table that the options say is to go: no rollback has to keep it up to date then."""
    is_off = config.is_set(METADATA_ENABLE) and not config.flag(METADATA_ENABLE)
    return drop_partitions(handle, (FILES,)) if is_off and handle.config.has_metadata_table else handle


def _partial_columns(request: Request) -> tuple[str, ...] | None:
    """The columns an update of some columns is about; None when rows are whole."""
    config, source = request.config, request.source
    if config.is_set(_PARTIAL_SCHEMA):
        return tuple(from_avro(config.text(_PARTIAL_SCHEMA)).names)
    return tuple(without_meta(source.schema).names) if request.partial and source is not None else None


def run_request(write: Write, request: Request) -> Committed:
    """The outcome of a write that is ready to run, inside the block of its transaction. Raises as `write_table`."""
    if request.operation == "delete_partition":
        return delete_partitions(write, _named_partitions(write, request))
    if request.source is None:
        raise Invalid(f"Operation {request.operation} needs rows", remedy="Pass them as data")
    return run_write(write, request.source)


def _named_partitions(write: Write, request: Request) -> tuple[str, ...]:
    existing = open_writer_view(write.server, write.handle, write.timeline, plans=write.plans).partitions()
    if request.partitions is not None:
        return match_partitions(request.partitions, existing)
    if request.config.is_set(_TO_DELETE):
        return match_partitions(request.config.list(_TO_DELETE), existing)
    if request.source is None:
        raise Invalid("delete_partition names no partition", remedy=f"Set {_TO_DELETE} or pass rows of the partitions")
    return tuple(name for name in partitions_of(write, request.source) if name in set(existing))


def _stored_key(state: TableState, schema: pa.Schema | None, server: AskedServer | None) -> str | None:
    """A record key the table holds, where its spelling decides how new keys are spelled."""
    handle = state.handle
    if not needs_stored_key(handle.config, handle.profile, schema):
        return None
    slices = open_asked_view(server, handle, state.timeline, plans=state.plans).load().slices_at()
    footers = (read_footer(handle.storage, part.base.path) for part in slices if part.base is not None)
    return next((footer.min_key for footer in footers if footer.min_key is not None), None)
