"""Making partitions of the metadata table from what the table holds now.

1. `files` comes first and alone makes the metadata table; what lay in its folder is a leftover and goes.
2. A partition is: its folder with a metafile, an empty log file for each file group, base files with the records, and
   the delta commit that says so. Then the properties of the table announce it.
3. Who dies before that leaves a folder that no reader looks at; it is removed when the partition is made again.
4. Instants: in version 8 and later zeros counting up, in version 6 the newest completed instant of the table (zeros
   when there is none) with a number from 010 on behind it. An instant that exists is not taken again.
5. Version 6 cannot be initialised while something of the table is pending: files of it would be missed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hoodie.engine import LocalEngine, TaskId
from hoodie.metadata import IndexDefinition
from hoodie.metadata_writer.definitions import definitions_for, store_index_definitions
from hoodie.metadata_writer.delta_commit import BULK_INSERT, finish, write_bases
from hoodie.metadata_writer.group_files import empty_log
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.indexes.registry import index_of, ordered
from hoodie.metadata_writer.metadata_handle import create_metadata_handle, open_metadata_handle
from hoodie.metadata_writer.metadata_index import MetadataIndex
from hoodie.metadata_writer.partition_state import announce
from hoodie.metadata_writer.undo import settle
from hoodie.spec import (
    DELTA_COMMIT,
    INDEXING,
    InstantTime,
    LogFileName,
    PartitionMetafile,
    encode_partition_metafile,
    keys,
)
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.storage import Storage
from hoodie.timeline import Timeline, create_requested, to_inflight

log = logging.getLogger(__name__)

_PARTITION_METAFILE = keys.PARTITION_METAFILE_PREFIX
_FILES_AT_ONCE = LocalEngine(8)


def may_initialise(handle: TableHandle, timeline: Timeline) -> bool:
    """Whether the metadata table can be made now. A build of an index that is pending, or died, writes no data. A table
    with storage paths, which can neither be read nor written without a metadata table, waits for nothing: what is
    pending is not listed, and is recorded when it completes, as in later versions.
    """
    waits_for = [one for one in timeline.pending() if one.action != INDEXING and not handle.config.is_federated]
    return not handle.profile.metadata_instants.has_to_wait(waits_for)


def initialise(
    context: IndexContext, partitions: Sequence[str], requested: Mapping[str, IndexDefinition] | None = None
) -> TableHandle:
    """The handle of a table whose metadata table has these partitions, besides those it had. Existing ones among them
    are not asked for; names that nobody can keep are left out. `requested`: definitions of new indexes among them.
    """
    handle = context.handle
    if not handle.config.is_metadata_table_ready:
        metadata = create_metadata_handle(handle)
    else:
        metadata = open_metadata_handle(handle)
        settle(metadata, timeline_of(metadata))
    definitions = {**definitions_for(context, partitions), **(requested or {})}
    if definitions != dict(context.definitions):
        handle = store_index_definitions(handle, definitions)
        context = replace(context, handle=handle, definitions=definitions)
    done = []
    for name in ordered(partitions):
        index = index_of(name, context)
        if index is not None:
            make_partition(metadata, context, index, next_init_instant(metadata, context.timeline))
            done.append(name)
    log.info("the metadata table of %s has now %s", handle.config.name, ", ".join(done))
    return announce(handle, done)


def make_partition(metadata: TableHandle, context: IndexContext, index: MetadataIndex, instant: InstantTime) -> None:
    """Writes the partition of `index` into the metadata table, as the delta commit `instant`."""
    metadata.storage.delete_dir(index.partition)
    file_ids = index.file_ids(context)
    records = tuple(index.initial(context))
    requested = create_requested(metadata.storage, metadata.profile, instant, DELTA_COMMIT)
    inflight = to_inflight(metadata.storage, metadata.profile, requested, is_new=True)
    metafile = encode_partition_metafile(PartitionMetafile(instant, 1), metadata.env.now())
    metadata.storage.put(f"{index.partition}/{_PARTITION_METAFILE}", metafile)
    add_groups(metadata, index.partition, file_ids, instant)
    groups = {index.partition: file_ids}
    stats = write_bases(metadata, instant, records, groups, context.definitions, context.engine)
    index.ensure_initialised(metadata, stats, context.options.config)
    finish(metadata, inflight, stats, BULK_INSERT)


def add_groups(metadata: TableHandle, partition: str, file_ids: Sequence[str], instant: InstantTime) -> None:
    """Creates the file groups: each has a log file of no deletes."""
    tasks = [
        (metadata.storage, f"{partition}/{LogFileName(file_id, instant, 1, '0-0-0').text}", instant)
        for file_id in file_ids
    ]
    _FILES_AT_ONCE.run(_put_empty, tasks, "file groups")


def next_init_instant(metadata: TableHandle, table: Timeline, besides: Iterable[InstantTime] = ()) -> InstantTime:
    """The instant of the next partition that is made; `besides`: instants that are given away already."""
    taken = {*besides, *(one.requested for one in timeline_of(metadata).instants)}
    candidates = metadata.profile.metadata_instants.initialisations(table.completed())
    return next(one for one in candidates if one not in taken)


def _put_empty(_: TaskId, task: tuple[Storage, str, InstantTime]) -> None:
    storage, path, instant = task
    storage.put(path, empty_log(instant))
