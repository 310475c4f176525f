"""One write from its options to its completed instant: exclusion, healing, planning, taking back, save modes.

1. A write holds the table's writer exclusion from the first look at the table to the last file it deletes.
2. Everything that can be refused without looking at rows is refused before anything changes: options against the table,
   schemas, what this package cannot write.
3. A write that fails takes itself back: no file, no instant, and no table if it was to make one. When even that fails,
   the next write rolls it back.
4. Save mode overwrite is one commit when the table stays of its kind; see `hoodie.write.overwrite` for the other case.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine, Source
from hoodie.env import Env
from hoodie.errors import CommitUnknown, Fenced, HudiError, Invalid, Unsupported
from hoodie.handle import TableHandle, load_handle, timeline_of
from hoodie.read import load_newest_schema
from hoodie.records import KEY_FIELD, read_footer, storable, without_meta
from hoodie.services.rollback import heal, take_back
from hoodie.spec import keys, profile_of
from hoodie.storage import Storage
from hoodie.timeline import Timeline, is_table, load_table_config, new_instant_time
from hoodie.view import list_partitions, load_view
from hoodie.write import (
    Committed,
    Engines,
    InstantTaken,
    Operation,
    Write,
    create_table,
    delete_partitions,
    drop_metadata_table,
    ensure_compatible,
    ensure_writable,
    evolve_schema,
    is_writable,
    load_switch,
    match_partitions,
    needs_stored_key,
    parse_operation,
    parse_write_options,
    partitions_of,
    plan_table,
    run_switch,
    run_write,
)

log = logging.getLogger(__name__)

SaveMode = Literal["append", "overwrite", "ignore", "error", "errorifexists"]

_OPERATION = "hoodie.datasource.write.operation"
_TO_DELETE = "hoodie.datasource.write.partitions.to.delete"
_LOCAL = LocalEngine()


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be written: the operation, its rows, its options, and who does the work.

    `partitions` names the partitions a partition delete is about (`*` stands for any text); without them the options or
    the rows say it. `whole_table` is save mode overwrite: the rows take the place of all others.
    """

    operation: Operation
    source: Source | None
    config: Config
    engine: Engine
    partitions: tuple[str, ...] | None = None
    whole_table: bool = False


def write_table(storage: Storage, request: Request, env: Env) -> Committed:
    """The outcome of one operation on the table that exists at `storage`.

    Raises:
        Conflict: another writer is at work. Invalid: bad rows or options; nothing was written.
    """
    load_table_config(storage, env)  # without a table there is nothing to hold
    with storage.exclusive(request.operation):
        return _written(load_handle(storage, env), request)


def save_rows(storage: Storage, request: Request, mode: SaveMode, env: Env) -> Committed | None:
    """The outcome of a write in a save mode; the table is made if need be. None when mode `ignore` found a table."""
    exists = is_table(storage) or _continue_switch(storage, env)
    if exists and mode in ("error", "errorifexists"):
        raise Invalid(
            f"A Hudi table exists at {storage.uri}", remedy='Use mode "append" to write to it', path=storage.uri
        )
    if exists and mode == "ignore":
        return None
    if request.operation == "delete" and mode == "overwrite":
        raise Invalid("A delete cannot overwrite", remedy='Use mode "append" with operation delete', mode=mode)
    if not exists:
        return _first_write(storage, request, env)
    if mode == "overwrite" and request.operation in ("upsert", "insert", "bulk_insert"):
        return _overwritten(storage, request, env)
    return write_table(storage, request, env)


def chosen_operation(config: Config, storage: Storage, mode: SaveMode, schema: pa.Schema, env: Env) -> Operation:
    """The operation the options ask for; upsert otherwise, or insert where keys are made automatically.

    Rows of such a table that were read from it carry their keys, so they are updates.
    """
    if config.is_set(_OPERATION):
        return parse_operation(config.text(_OPERATION))
    if mode == "append" and is_table(storage):
        keyed = bool(load_table_config(storage, env).record_key_fields) or _have_keys(schema)
    else:
        keyed = config.is_set("hoodie.datasource.write.recordkey.field")
    return parse_operation(config.text(_OPERATION)) if keyed else "insert"


def _have_keys(schema: pa.Schema | None) -> bool:
    return schema is not None and KEY_FIELD in schema.names


def _first_write(storage: Storage, request: Request, env: Env) -> Committed:
    """A write that makes the table. When it fails, there is no table."""
    if request.source is None or request.operation in ("delete", "delete_partition"):
        raise Invalid(
            f"There is no table at {storage.uri} to {request.operation} from", remedy="Check the path", path=storage.uri
        )
    schema = storable(without_meta(request.source.schema))
    made = False
    with storage.exclusive(request.operation):
        try:
            if not is_table(storage):
                create_table(storage, request.config, schema, env)
                made = True
            return _written(load_handle(storage, env), request)
        except (CommitUnknown, Fenced, InstantTaken):
            raise
        except Exception:
            _discard(storage, env, made=made)
            raise


def _written(handle: TableHandle, request: Request) -> Committed:
    """The caller holds the writer exclusion."""
    config = request.config
    ensure_writable(handle, config)
    ensure_compatible(config, handle.config)
    timeline = timeline_of(handle)
    schema = None if request.source is None else request.source.schema
    options = parse_write_options(
        request.operation,
        config,
        handle.config,
        handle.profile,
        _stored_key(handle, timeline, schema),
        whole_table=request.whole_table,
        rows_have_keys=_have_keys(schema),
    )
    current = load_newest_schema(handle.storage, handle.config, timeline)
    change = evolve_schema(options, handle.config, current, schema, config)
    handle = drop_metadata_table(handle, config)
    timeline = heal(handle, _LOCAL, timeline)
    instant = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
    engines = Engines(_LOCAL, request.engine)
    return _run(Write(handle, timeline, options, engines, change.write_schema, change.table_schema, instant), request)


def _run(write: Write, request: Request) -> Committed:
    home = write.overwritten or write.handle
    try:
        if request.operation == "delete_partition":
            return delete_partitions(write, _named_partitions(write, request))
        if request.source is None:
            raise Invalid(f"Operation {request.operation} needs rows", remedy="Pass them as data")
        return run_write(write, request.source)
    except (CommitUnknown, Fenced, InstantTaken):
        raise
    except Exception:
        cause = sys.exc_info()[1]
        try:
            take_back(home, _LOCAL, write.instant)
        except HudiError as error:
            log.warning(
                "the failed write (%s) could not be taken back now: %s; the next write will do it", cause, error
            )
        raise


def _overwritten(storage: Storage, request: Request, env: Env) -> Committed:
    """Save mode overwrite of a table that exists."""
    load_table_config(storage, env)
    with storage.exclusive("overwrite"):
        handle = load_handle(storage, env)
        difference = _difference(handle, request.config)
        if difference is None:
            return _written(
                handle,
                Request(request.operation, request.source, request.config, request.engine, whole_table=True),
            )
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
    timeline = timeline_of(old)
    config = plan_table(old.storage, request.config, storable(without_meta(request.source.schema)))
    new = TableHandle(old.storage, config, profile_of(config), old.env)
    options = parse_write_options(request.operation, request.config, config, new.profile)
    change = evolve_schema(options, config, None, request.source.schema, request.config)
    return _run(
        Write(
            handle=new,
            timeline=Timeline(new.profile, ()),
            options=options,
            engines=Engines(_LOCAL, request.engine),
            schema=change.write_schema,
            table_schema=change.table_schema,
            instant=new_instant_time(new.env, config.timezone, timeline.last_time()),
            overwritten=old,
        ),
        request,
    )


def _continue_switch(storage: Storage, env: Env) -> bool:
    """Whether an overwrite that died after its point of no return was found, and is finished now."""
    if load_switch(storage) is None:
        return False
    with storage.exclusive("finish overwrite"):
        switch = None if is_table(storage) else load_switch(storage)
        if switch is not None:
            log.info("finishing the interrupted overwrite %s", switch.instant)
            run_switch(storage, switch, env)
    return is_table(storage)


def _named_partitions(write: Write, request: Request) -> tuple[str, ...]:
    existing = list_partitions(write.handle.storage)
    if request.partitions is not None:
        return match_partitions(request.partitions, existing)
    if request.config.is_set(_TO_DELETE):
        return match_partitions(request.config.list(_TO_DELETE), existing)
    if request.source is None:
        raise Invalid("delete_partition names no partition", remedy=f"Set {_TO_DELETE} or pass rows of the partitions")
    return tuple(name for name in partitions_of(write, request.source) if name in set(existing))


def _stored_key(handle: TableHandle, timeline: Timeline, schema: pa.Schema | None) -> str | None:
    """A record key the table holds, where its spelling decides how new keys are spelled."""
    if not needs_stored_key(handle.config, handle.profile, schema):
        return None
    slices = load_view(handle.storage, handle.config, timeline).slices_at()
    footers = (read_footer(handle.storage, one.base.path) for one in slices if one.base is not None)
    return next((footer.min_key for footer in footers if footer.min_key is not None), None)


def _discard(storage: Storage, env: Env, *, made: bool) -> None:
    """Remove the table that a failed first write made, if nothing was ever committed to it."""
    with suppress(HudiError):
        if made:
            if timeline_of(load_handle(storage, env)).completed():
                return
            for partition in list_partitions(storage):
                metafile = keys.PARTITION_METAFILE_PREFIX
                storage.delete(f"{partition}/{metafile}" if partition else metafile)
        elif is_table(storage) or any(True for _ in storage.list(keys.HOODIE_DIR)):
            return
        storage.delete_dir(keys.HOODIE_DIR)
