"""The tasks of a write: from planned files to what runs on a worker, a base file or a log file each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hoodie.engine import TaskId
from hoodie.index import Positions
from hoodie.metadata_writer import write_needs
from hoodie.spec import new_file_id
from hoodie.write.change_log import change_logging_of
from hoodie.write.file_task import FileTask, WriteTarget, write_file
from hoodie.write.incoming import KEY, Incoming, RowsRef
from hoodie.write.job import Write
from hoodie.write.log_place import Compactions, log_place, new_group_place
from hoodie.write.log_task import LogOptions, LogTask, append_log
from hoodie.write.plan import PlannedFile, goes_to_log
from hoodie.write.skeletons import stitched_rows
from hoodie.write.written_file import WrittenFile


def plan_tasks(
    write: Write, incoming: Incoming, files: Sequence[PlannedFile], compactions: Compactions
) -> list[FileTask | LogTask]:
    """One task for each planned file."""
    target = write_target(write)
    options = write.options
    tasks: list[FileTask | LogTask] = []
    for file in files:
        to_log = goes_to_log(file, inserts_too=options.inserts_to_logs, begins=options.begins_in_logs)
        if options.log is not None and options.changes_logs and to_log:
            tasks.append(_log_task(write, target, options.log, incoming, file, compactions))
        else:
            tasks.append(_file_task(write, target, incoming, file))
    return tasks


def run_task(task_id: TaskId, task: FileTask | LogTask) -> tuple[WrittenFile, ...]:
    """The files the task has written."""
    return append_log(task_id, task) if isinstance(task, LogTask) else (write_file(task_id, task),)


def write_target(write: Write) -> WriteTarget:
    """What all files of a write have in common."""
    options = write.options
    schema = write.schema if write.table_schema is None else write.table_schema
    if options.partial is not None:
        schema = pa.schema([write.schema.field(name) for name in options.partial])
    return WriteTarget(
        storage=write.handle.storage,
        env=write.handle.env,
        instant=write.instant,
        schema=schema,
        dropped=options.dropped_columns,
        populate_meta_fields=options.populate_meta_fields,
        copy_from_bytes=options.copy_from_bytes,
        blank="" if options.operation == "bulk_insert" else None,
        table_name=write.handle.config.name,
        delete_marker=options.delete_marker,
        options=options.base_file,
        markers=write.transaction.announcing(write.handle, write.timeline, options.recorded_operation),
        changes=change_logging_of(write.handle),
        needs=write_needs(write.handle, write.timeline, write.known, write.metadata, write.table_schema),
    )


def _file_task(write: Write, target: WriteTarget, incoming: Incoming, file: PlannedFile) -> FileTask:
    return FileTask(
        target=target,
        partition=file.partition,
        file_id=_file_id(write, file),
        old=None if file.slice is None else file.slice.base,
        rows=_rows_of(incoming, file),
        update_rows=file.update_rows,
        drop_rows=file.drop_rows,
        merge_rule=write.options.merge_rule,
        ordering=write.options.ordering,
        stitched=stitched_rows(write, file.slice),
        kept=write.kept,
    )


def _log_task(  # noqa: PLR0917
    write: Write,
    target: WriteTarget,
    log: LogOptions,
    incoming: Incoming,
    file: PlannedFile,
    compactions: Compactions,
) -> LogTask:
    if file.slice is None:
        place = new_group_place(_file_id(write, file), write.instant)
    else:
        pending = compactions.get(file.slice.group_id)
        logs_changes = write.handle.config.cdc_enabled
        place = log_place(
            write.handle.profile.log_naming, file.slice, write.instant, pending, logs_changes=logs_changes
        )
    return LogTask(
        target=target,
        log=log,
        place=place,
        partition=file.partition,
        rows=_rows_of(incoming, file),
        update_rows=file.update_rows,
        gone=_keys_of(incoming, file.drop_positions),
        gone_rows=file.drop_rows,
        ordering=write.options.ordering,
        is_partial=write.options.partial is not None,
    )


def _rows_of(incoming: Incoming, file: PlannedFile) -> RowsRef:
    """The rows of updates, then those of inserts."""
    wanted = np.concatenate([file.update_positions, file.insert_positions])
    return incoming.select(wanted) if len(wanted) else _no_rows(incoming)


def _keys_of(incoming: Incoming, wanted: Positions) -> RowsRef:
    """The keys of some rows. Only the parts with them are looked at: there may be as many files as parts."""
    rows = incoming.holding(wanted).project([KEY])
    return rows.select(wanted) if len(wanted) else _no_rows(rows)


def _no_rows(incoming: Incoming) -> RowsRef:
    return RowsRef((), None, incoming.schema)


def _file_id(write: Write, file: PlannedFile) -> str:
    if file.slice is not None:
        return file.slice.file_id
    return file.new_file_id or new_file_id(write.handle.env.uuid(), 0)
