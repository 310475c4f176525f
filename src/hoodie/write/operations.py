"""The write operations, from rows to a completed instant.

1. Order of events: evaluate the input once, tag, plan, open the instant, write files, finalise, complete. For bad rows
   found in the first step nothing has been written at all.
2. A bulk insert and an append write while they read, so their instant is opened first; its transaction aborts it when
   the input turns out bad.
3. Every operation is `plan` over values and `run` through an engine; this module only puts them in order.
4. A merge-on-read table takes changes of stored rows in log files and new rows in base files; everything before that is
   the same for both kinds of table.

The caller has rolled back failed writes, and runs this inside the block of the write's transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hoodie.engine import BulkInsertSortMode, Source
from hoodie.errors import HudiError
from hoodie.metadata_writer import MetadataParticipant
from hoodie.records import OpenInputs, to_avro
from hoodie.remote import open_writer_view
from hoodie.spec import (
    EMPTY_REPLACE,
    REPLACE_COMMIT,
    CommitMetadata,
    delete_partition_request,
    encode_requested_replace,
    keys,
    marker_dir,
    workload_profile,
)
from hoodie.transaction import Committed, LookedAt, Outcome
from hoodie.view import FileSlice, View
from hoodie.write.bulk import BulkTask, run_bulk_insert
from hoodie.write.incoming import Incoming
from hoodie.write.incoming_keys import every_key, load_keys
from hoodie.write.index_steps import NO_ROWS, IndexParticipant, begin_indexed, tell_index, written_groups
from hoodie.write.job import Write
from hoodie.write.keyed_input import KeyedForm, Spool, in_driver, load_partition_paths, local_job, prepare_input
from hoodie.write.log_place import pending_compactions
from hoodie.write.log_task import LogTask
from hoodie.write.overwrite import finish_overwrite
from hoodie.write.placing import plan_placed_files
from hoodie.write.plan import (
    PlannedFile,
    plan_work,
)
from hoodie.write.replace import plan_replaced
from hoodie.write.revived_keys import without_revived_keys
from hoodie.write.skeletons import load_skeleton_sources, with_source_bytes
from hoodie.write.tasks import plan_tasks, run_task, write_target
from hoodie.write.unnamed_buckets import ensure_outside_buckets, may_meet_buckets
from hoodie.write.update_strategy import taken_groups
from hoodie.write.written_file import WrittenFile, facts_by_path

log = logging.getLogger(__name__)

_SPOOL_SUFFIX = ".spool"


def run_write(write: Write, source: Source) -> Committed:
    """The outcome of the operation `write.options.operation` with the rows of `source`.

    Raises:
        Invalid: rows without key, bad partition values, duplicates under policy `fail`.
        Conflict: another writer was at work. Fenced: another writer rolled this write back.
    """
    options = write.options
    competes = options.index.traits.is_global and (options.combine or options.looks_up)
    form = KeyedForm(
        options.keys,
        write.schema,
        write.instant,
        arrival=competes,
        carried=options.carried_keys,
        storage=write.handle.storage,
    )
    if options.writes_while_reading:
        return _bulk_insert(write, source, form)
    folder = marker_dir(write.instant) + _SPOOL_SUFFIX
    spool = Spool(write.handle.storage, folder, options.inline_bytes, options.index.spool_order())
    try:
        incoming = prepare_input(source, form, spool)
        committed = _write_tagged(write, incoming)
    except BaseException:
        _drop_spooled(write, spool)
        raise
    if not incoming.in_memory:
        _drop_spooled(write, spool)
    return committed


def _drop_spooled(write: Write, spool: Spool) -> None:
    """Delete the input that waited in files. A failure costs disk space only, so it is logged."""
    try:
        write.handle.storage.delete_dir(spool.folder)
    except HudiError as error:
        log.warning("could not delete the spooled input of %s: %s", write.instant, error)


def delete_partitions(write: Write, partitions: Sequence[str]) -> Committed:
    """The outcome of replacing every file group of `partitions` by nothing."""
    view = _load_view(write, partitions)
    replaced = plan_replaced(view.slices_at(), partitions)
    ensure_outside_buckets(write, view.slices_at(), (), partitions)
    _begin(write, workload_profile(write.options.recorded_operation, {}), replaced, ())
    index = begin_indexed(write, NO_ROWS, view, view.slices_at(), partitions, write.engines.local)
    index.before_write()
    looked = LookedAt(partitions, view.slices_at())
    committed = _commit(write, [], replaced, partitions, ran_once=True, looked=looked)
    tell_index(write, index, ())
    return committed


def partitions_of(write: Write, source: Source) -> tuple[str, ...]:
    """Partition paths of the rows of `source`: what a partition delete with rows means."""
    return load_partition_paths(
        source, KeyedForm(write.options.keys, write.schema, write.instant, carried=write.options.carried_keys)
    )


def _write_tagged(write: Write, incoming: Incoming) -> Committed:
    options = write.options
    partitions = _partitions(write, incoming)
    view = _load_view(write, partitions)
    known = None if write.known is None else write.known.with_view(view, partitions)
    # The view may have learnt which archived writes were committed.
    write = replace(write, timeline=view.timeline, known=known)
    slices = view.slices_at()
    touches = options.looks_up or options.fills_small_files
    if touches:
        write = replace(write, sources=load_skeleton_sources(write.handle, slices))
    sized = [with_source_bytes(write, one) for one in slices] if touches else []
    held = sum(one.base.size_bytes for one in sized if one.base is not None)
    engine = local_job(incoming, held, options.local_job_bytes, write.engines.spread, write.engines.local)
    compactions = pending_compactions(view)
    gone = () if options.replaces == "nothing" else incoming.partitions
    with OpenInputs() as kept:
        if engine is write.engines.local and not options.changes_logs:
            write = replace(write, kept=kept)
        index = begin_indexed(write, every_key(incoming), view, slices, gone, engine)
        placed = plan_placed_files(write, incoming, slices, compactions, engine, index)
        files = placed.files
        replaced = _replaced(write, incoming.partitions, slices)
        filled = {file.partition for file in files if len(file.insert_positions)}
        if may_meet_buckets(write) and not filled <= {one.partition for one in slices}:
            _ensure_no_buckets(write)
        ensure_outside_buckets(write, slices, filled, replaced or ())
        work = workload_profile(options.recorded_operation, plan_work(files))
        _begin(write, work, replaced or {}, files)
        tasks = plan_tasks(write, incoming, files, compactions)
        if all(isinstance(task, LogTask) for task in tasks):
            # Log files are written from the rows at hand: only these count, not the files they were looked up in.
            engine = local_job(incoming, 0, options.local_job_bytes, write.engines.spread, write.engines.local)
        index.before_write()
        written = engine.run(run_task, tasks, options.operation)
    write = without_revived_keys(write, incoming, files, tasks, engine)
    done = [file for group in written for file in group]
    traits = options.index.traits
    groups = written_groups(files, tasks) if traits.follows_keys or traits.joins_commit else ()
    known_partitions = {one.partition for one in slices}
    parties = (IndexParticipant(index, groups),) if traits.joins_commit else ()
    asked = partial(load_keys, incoming) if options.looks_up else None
    looks = options.looks_up or options.replaces != "nothing"
    looked = LookedAt(partitions, slices, placed.kept, asked) if looks else None
    once = engine.runs_tasks_once
    committed = _commit(write, done, replaced, known_partitions, parties, ran_once=once, looked=looked)
    tell_index(write, index, groups if traits.follows_keys else ())
    return committed


def _ensure_no_buckets(write: Write) -> None:
    """Checks that no partition of the table has buckets that nobody named. Raises as `ensure_outside_buckets`."""
    slices = _load_view(write).slices_at()
    ensure_outside_buckets(write, slices, {one.partition for one in slices})


def _partitions(write: Write, incoming: Incoming) -> tuple[str, ...] | None:
    """The partitions this write has to know; None: all."""
    options = write.options
    everywhere = options.replaces == "table" or (options.index.traits.is_global and options.looks_up)
    return None if everywhere else incoming.partitions


def _load_view(write: Write, partitions: Collection[str] | None = None) -> View:
    """The table, or some of its partitions, by its timeline server or its metadata table where it has one."""
    state = None if write.known is None else write.known.state
    return open_writer_view(write.server, write.handle, write.timeline, state, write.plans).load(partitions)


def _replaced(
    write: Write, partitions: Sequence[str], slices: Sequence[FileSlice]
) -> Mapping[str, tuple[str, ...]] | None:
    """File groups the new rows take the place of; None for a write that replaces none."""
    match write.options.replaces:
        case "nothing":
            return None
        case "partitions":
            return plan_replaced(slices, partitions)
        case "table":
            return plan_replaced(slices, {one.partition for one in slices})


def _bulk_insert(write: Write, source: Source, form: KeyedForm) -> Committed:
    replaced, known, looked = None, frozenset[str](), None
    if may_meet_buckets(write):
        _ensure_no_buckets(write)
    if write.options.replaces == "table":
        slices = _load_view(write).slices_at()
        known = frozenset(one.partition for one in slices)
        replaced, looked = plan_replaced(slices, known), LookedAt(None, slices)
    _begin(write, None, replaced or {}, ())
    options = write.options
    task = BulkTask(write_target(write), form, options.sizing.max_file_bytes, fits_filters=options.appends)
    is_bulk = options.operation == "bulk_insert"
    if not is_bulk and options.local_job_bytes:
        # An insert may be small, and then a job of Spark costs more than its rows.
        source = in_driver(source, options.inline_bytes)
    done = run_bulk_insert(source, task, options.sort_mode if is_bulk else BulkInsertSortMode.NONE)
    return _commit(write, done, replaced, known, looked=looked)


def announce(write: Write) -> None:
    """Creates the requested instant of the write, before anything is planned.

    Raises:
        InstantTaken: there is such an instant.
    """
    write.transaction.announce(*_request(write))


def _request(write: Write) -> tuple[str, bytes]:
    """The action of the write, and what its requested file says."""
    home, options = write.transaction.handle, write.options
    deletes = options.operation == "delete_partition"
    if options.replaces == "nothing" and not deletes:
        return write.handle.config.write_action, b""
    generation = home.profile.avro_generation
    request = delete_partition_request(generation) if deletes else EMPTY_REPLACE
    return REPLACE_COMMIT, encode_requested_replace(request, generation)


def _begin(
    write: Write,
    workload: CommitMetadata | None,
    replaced: Mapping[str, tuple[str, ...]],
    files: Iterable[PlannedFile],
) -> None:
    """Begins the instant of the write.

    Raises:
        Conflict: the write wants file groups of a pending clustering and gives way to it, or its instant exists.
    """
    home = write.transaction.handle
    changed = [file.slice.group_id for file in files if file.slice is not None]
    changed.extend((partition, file_id) for partition, ids in replaced.items() for file_id in ids)
    taken = taken_groups(changed, write.plans.clustered()) if changed else {}
    if taken:
        write.give_up(write.updates.plans_to_give_up(taken))
    action, plan = _request(write)
    payload = b"" if workload is None else home.profile.commit_codec.encode(workload, action)
    write.transaction.begin(action, plan, payload)


def _commit(
    write: Write,
    files: Sequence[WrittenFile],
    replaced: Mapping[str, tuple[str, ...]] | None,
    known_partitions: Iterable[str],
    parties: Sequence[IndexParticipant] = (),
    *,
    ran_once: bool = False,
    looked: LookedAt | None = None,
) -> Committed:
    options, extra = write.options, dict(write.options.extra_metadata)
    if write.table_schema is not None:
        extra[keys.SCHEMA_EXTRA] = to_avro(write.table_schema, write.handle.config.name)
    outcome = Outcome(
        options.recorded_operation,
        tuple(file.stat for file in files),
        extra,
        replaced,
        knows_inserts=not options.index.traits.inserts_to_logs,
        ran_once=ran_once,
        looked_at=looked,
    )
    if write.overwritten is not None:
        for party in parties:
            party.tell()
        done = finish_overwrite(write.transaction, write.handle, write.timeline, outcome)
    else:
        metadata = MetadataParticipant(write.engines.spread, write.metadata, write.known, facts_by_path(files))
        done = write.transaction.commit(outcome, write.timeline, known_partitions, (*parties, metadata), write.rule)
    return outcome.committed(done, options.operation)
