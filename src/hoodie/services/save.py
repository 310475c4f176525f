"""One write as users ask for it: save modes, making the table, and the services that follow the commit.

1. A first write that fails leaves no table.
2. Save mode overwrite is one commit when the table stays of its kind; see `hoodie.write.overwrite` for the other case.
3. Services run when the commit is done and the table lock was given back; see `after_commit`.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from typing import Literal

import pyarrow as pa

from hoodie.config import Config
from hoodie.engine import LocalEngine, again_and_again
from hoodie.env import Env
from hoodie.errors import CommitUnknown, Fenced, HudiError, Invalid, Unsupported
from hoodie.layout.opening import access_of
from hoodie.layout.properties import layout_properties, parse_layout
from hoodie.layout.required import metadata_is_off
from hoodie.locks import held_lock, parse_lock_options
from hoodie.metadata import FILES
from hoodie.metadata_writer import rebuild_partitions
from hoodie.records import storable, without_meta
from hoodie.remote.embedding import with_embedded_server
from hoodie.services.after_commit import run_after_commit
from hoodie.services.ingest import Request, have_keys, run_request, with_note, write_and_look, write_locked
from hoodie.spec import TableConfig, keys, path_in, profile_of
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.state.table_state import TableState
from hoodie.storage import Storage
from hoodie.timeline import Timeline, is_table, load_table_config, new_instant_time
from hoodie.transaction import (
    Committed,
    EarlyConflict,
    HeldThroughout,
    InstantTaken,
    LockPolicy,
    Transaction,
    WriteConflict,
    locking,
    write_policy,
)
from hoodie.transaction.heartbeat import await_end, heartbeat_rule
from hoodie.view import list_partitions
from hoodie.write import (
    Engines,
    Operation,
    Write,
    create_table,
    ensure_compatible,
    evolve_schema,
    is_writable,
    load_switch,
    parse_operation,
    parse_write_options,
    plan_table,
    run_switch,
)
from hoodie.write.layout_options import ensure_same_layout

log = logging.getLogger(__name__)

SaveMode = Literal["append", "overwrite", "ignore", "error", "errorifexists"]

_RETRIES = "hoodie.write.num.retries.on.conflict.failures"
_REST_S = 0.2
_OPERATION = "hoodie.datasource.write.operation"
_LOCAL = LocalEngine()


def write_table(storage: Storage, request: Request, env: Env) -> Committed:
    """The outcome of one operation on the table that exists at `storage`; services that are due follow it.

    Raises:
        Conflict: another writer is at work. Invalid: no table, bad rows or options; nothing was written.
    """
    request = _with_server(storage, request)
    committed, state = _tried(storage, request, env)
    run_after_commit(storage, request.config, request.engine, env, state)
    return committed


def _tried(storage: Storage, request: Request, env: Env) -> tuple[Committed, TableState | None]:
    """The outcome of one operation, and the table after it. A write that has to give way to another is repeated as
    often as options say, with a short rest of random length in between.
    """
    config = request.config
    policy, options = write_policy(config), parse_lock_options(config)
    left = config.integer(_RETRIES) if policy is LockPolicy.AT_BOTH_ENDS else 0
    if left:
        request = replace(request, source=None if request.source is None else again_and_again(request.source))
    while True:
        try:
            with locking(storage, request.operation, env, policy, options) as lock:
                return write_and_look(lock, request)
        except (WriteConflict, InstantTaken) as conflict:
            if not left:
                raise
            left -= 1
            log.warning("repeating the %s, which had to give way: %s", request.operation, conflict.cause)
            env.sleep(_REST_S * env.random())
            if isinstance(conflict, EarlyConflict):  # the other may go on for long, and is met again until it ends
                other = str(conflict.facts["other"])
                await_end(storage, other, heartbeat_rule(config), env, options.wait_ms / 1000)


def save_rows(
    storage: Storage, request: Request, mode: SaveMode, env: Env, *, is_there: bool | None = None
) -> Committed | None:
    """The outcome of a write in a save mode; the table is made if need be. None when mode `ignore` found a table.
    `is_there`: whether a table is, for who has just looked.

    What is decided before the table is held is decided again when another writer made the table meanwhile.
    """
    found = is_table(storage) if is_there is None else is_there
    request = _with_server(storage, request)
    if not (found or _continue_switch(storage, request.config, env)):
        _ensure_not_deleting(request, mode)
        committed = _first_write(storage, request, env)
        if committed is not None:
            run_after_commit(storage, request.config, request.engine, env)
            return committed
        if request.source is not None:
            operation, _ = chosen_operation(request.config, storage, mode, request.source.schema, env)
            request = replace(request, operation=operation)
    return _save_into(storage, request, mode, env)


def _with_server(storage: Storage, request: Request) -> Request:
    return replace(request, config=with_embedded_server(storage, request.config, request.engine))


def _save_into(storage: Storage, request: Request, mode: SaveMode, env: Env) -> Committed | None:
    """The same for a table that exists."""
    if mode in ("error", "errorifexists"):
        raise Invalid(
            f"A Hudi table exists at {storage.uri}", remedy='Use mode "append" to write to it', path=storage.uri
        )
    if mode == "ignore":
        return None
    _ensure_not_deleting(request, mode)
    if mode != "overwrite" or request.operation not in ("upsert", "insert", "bulk_insert"):
        return write_table(storage, request, env)
    committed = _overwritten(storage, request, env)
    run_after_commit(storage, request.config, request.engine, env)
    return committed


def _ensure_not_deleting(request: Request, mode: SaveMode) -> None:
    if request.operation == "delete" and mode == "overwrite":
        raise Invalid("A delete cannot overwrite", remedy='Use mode "append" with operation delete', mode=mode)


def chosen_operation(
    config: Config, storage: Storage, mode: SaveMode, schema: pa.Schema, env: Env
) -> tuple[Operation, bool | None]:
    """The operation the options ask for; upsert otherwise, or insert where keys are made automatically. With it,
    whether there is a table, where that had to be asked.

    Rows of such a table that were read from it carry their keys, so they are updates.
    """
    if config.is_set(_OPERATION):
        return parse_operation(config.text(_OPERATION)), None
    is_there = is_table(storage) if mode == "append" else None
    if is_there:
        keyed = bool(load_table_config(storage, env).record_key_fields) or have_keys(schema)
    else:
        keyed = config.is_set("hoodie.datasource.write.recordkey.field")
    return (parse_operation(config.text(_OPERATION)) if keyed else "insert"), is_there


def _first_write(storage: Storage, request: Request, env: Env) -> Committed | None:
    """A write that makes the table. When it fails, there is no table. None when another writer has made it."""
    if request.source is None or request.operation in ("delete", "delete_partition"):
        raise Invalid(
            f"There is no table at {storage.uri} to {request.operation} from", remedy="Check the path", path=storage.uri
        )
    schema = storable(without_meta(request.source.schema))
    made = False
    with held_lock(storage, request.operation, options=parse_lock_options(request.config), env=env) as held:
        storage = held.fenced(storage)
        if is_table(storage):
            return None
        try:
            create_table(storage, request.config, schema, env)
            made = True
            return write_locked(HeldThroughout(load_handle(storage, env)), request)
        except (CommitUnknown, Fenced, InstantTaken):
            raise
        except (Exception, KeyboardInterrupt):
            _discard(storage, env, made=made)
            raise


def _overwritten(storage: Storage, request: Request, env: Env) -> Committed:
    """Save mode overwrite of a table that exists."""
    load_table_config(storage, env)
    # Nobody may be at work beside a switch of tables, whatever the policy of writes is.
    options = parse_lock_options(request.config)
    with locking(storage, "overwrite", env, LockPolicy.THROUGHOUT, options) as lock, lock.to_begin() as handle:
        difference = _difference(handle, request.config)
        if difference is None:
            return write_locked(lock, replace(request, whole_table=True))
        log.info("overwrite makes a new table: %s", difference)
        return _replaced_by_another_kind(handle, request)


def _difference(handle: TableHandle, config: Config) -> str | None:
    """Why a table made by these options would be another kind than the one there; None when it would not."""
    if not is_writable(handle.config):
        return f"{handle.config.name} is a table this package does not write"
    try:
        ensure_compatible(config, handle.config, whole_table=True)
    except (Invalid, Unsupported) as difference:
        return str(difference)
    return None


def _replaced_by_another_kind(old: TableHandle, request: Request) -> Committed:
    if request.source is None:
        raise Invalid("An overwrite needs rows", remedy="Pass them as data")
    ensure_same_layout(request.config, old.config)
    timeline = timeline_of(old)
    config = plan_table(old.storage, request.config, storable(without_meta(request.source.schema)))
    if old.config.is_federated:
        config = _laid_out_as(old, config, request.config)
    new = TableHandle(old.storage, config, profile_of(config), old.env)
    options = with_note(parse_write_options(request.operation, request.config, config, new.profile), request)
    change = evolve_schema(options, config, None, request.source.schema, request.config)
    nothing = Timeline(new.profile, ())
    instant = new_instant_time(new.env, config.timezone, timeline.last_time())
    write = Write(
        handle=new,
        timeline=nothing,
        plans=PendingPlans(new.storage, nothing),
        options=options,
        engines=Engines(_LOCAL, request.engine),
        schema=change.write_schema,
        table_schema=change.table_schema,
        transaction=Transaction(old, instant, HeldThroughout(old)),
    )
    with write.transaction:
        committed = run_request(write, request)
    _make_metadata(old.storage, old.env)
    return committed


def _laid_out_as(old: TableHandle, config: TableConfig, asked: Config) -> TableConfig:
    """The properties of a table in the place of another, with the same storage layout.

    Raises:
        Invalid: the metadata table, which such a table needs, is turned off.
    """
    if not asked.flag("hoodie.metadata.enable"):
        raise metadata_is_off(old.storage.uri)
    layout = parse_layout(old.config.raw, access_of(old.storage).own)
    return config if layout is None else config.with_changes(layout_properties(layout, config.table_type))


def _make_metadata(storage: Storage, env: Env) -> None:
    """The metadata table of a new table with storage paths, which nobody can read without it. Who dies before leaves a
    table that readers refuse, until the next write or `hoodie doctor --fix` makes it.
    """
    handle = load_handle(storage, env)
    if handle.config.is_federated and not handle.config.is_metadata_table_ready:
        rebuild_partitions(handle, (FILES,), _LOCAL)


def _continue_switch(storage: Storage, config: Config, env: Env) -> bool:
    """Whether an overwrite that died after its point of no return was found, and is finished now."""
    if load_switch(storage) is None:
        return False
    with held_lock(storage, "finish overwrite", options=parse_lock_options(config).waiting(0), env=env) as held:
        storage = held.fenced(storage)
        switch = None if is_table(storage) else load_switch(storage)
        if switch is not None:
            log.info("finishing the interrupted overwrite %s", switch.instant)
            run_switch(storage, switch, env)
            _make_metadata(storage, env)
    return is_table(storage)


def _discard(storage: Storage, env: Env, *, made: bool) -> None:
    """Remove the table that a failed first write made, if nothing was ever committed to it."""
    with suppress(HudiError):
        if made:
            if timeline_of(load_handle(storage, env)).completed():
                return
            for partition in list_partitions(storage):
                storage.delete(path_in(partition, keys.PARTITION_METAFILE_PREFIX))
        elif is_table(storage) or any(True for _ in storage.list(keys.HOODIE_DIR)):
            return
        storage.delete_dir(keys.HOODIE_DIR)
