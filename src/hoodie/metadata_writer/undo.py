"""Taking back delta commits of the metadata table, and finding those that nobody finished.

1. The files of a delta commit are those its instant names; where it names none (Hudi's inflight instants) they are
   found by the instant in their name (version 8 and later) or in their blocks.
2. A log file that holds nothing else is deleted. One that others appended to stays and gets a command block behind it.
3. Files go first, then the completed instant, inflight, requested: who dies in between leaves a delta commit that is
   not completed, and the next writer rolls it back.
4. A rollback of the table is recorded in the metadata table too, for Hudi: at the same instant, or in version 6 with
   the suffix 006.
5. What a compaction has merged cannot be rolled back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count

from hoodie.errors import Conflict, Missing
from hoodie.logs import read_blocks
from hoodie.metadata_writer.delta_commit import spill_folder
from hoodie.spec import (
    DELTA_COMMIT,
    INDEXING,
    ROLLBACK,
    ROLLBACK_COMMAND,
    BlockKind,
    CommitMetadata,
    HeaderKey,
    Instant,
    InstantInfo,
    InstantTime,
    LogFileName,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
    State,
    encode_block,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from hoodie.spec.file_names import UNKNOWN_WRITE_TOKEN
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.timeline import (
    Timeline,
    complete,
    create_requested,
    delete_instant_files,
    instant_path,
    load_commit_metadata,
    to_inflight,
)
from hoodie.view import LogFile, PartitionFiles, list_files

log = logging.getLogger(__name__)


def last_compaction(timeline: Timeline) -> InstantTime | None:
    """The newest completed compaction of the metadata table."""
    return max((one.requested for one in timeline.completed() if one.action == "commit"), default=None)


def has_partition_made_after(metadata: TableHandle, timeline: Timeline, write: Instant, table: Timeline) -> bool:
    """Whether a partition of the metadata table was made when `write` (its delta commit, or where it has none the write
    itself) was there already. What it did is in the base files then, if it was completed. `table`: the table's
    timeline, whose builds of indexes give Hudi 1.x the instants of such partitions.
    """
    is_made, clock = metadata.profile.metadata_instants.is_initialisation, metadata.profile.clock
    builds = {one.requested for one in table.completed() if one.action == INDEXING}
    later = (one.requested for one in timeline.completed() if clock.of(one) > clock.of(write))
    return any(is_made(requested) or requested in builds for requested in later)


def settle(metadata: TableHandle, timeline: Timeline, beside: TableHandle | None = None) -> Timeline:
    """The timeline of the metadata table without delta commits and rollbacks that nobody finished.

    Ours are made under the table lock, so one that is found unfinished there is dead. Hudi's on Spark write theirs
    while they write data. `beside`: the table, where these may go on; who makes partitions anew does not give it, since
    such a writer would not know of them. Reads the table's instants, and what is unfinished, where there is any.
    """
    unfinished = [one for one in timeline.pending() if one.action in (DELTA_COMMIT, ROLLBACK)]
    if unfinished and beside is not None and beside.profile.metadata_instants.may_be_written_ahead:
        # After the metadata table was listed: whoever had begun there is pending in the table by now.
        pending = {one.requested for one in timeline_of(beside).pending()}
        unfinished = [one for one in unfinished if one.requested not in pending or _names_files(metadata, one)]
    for one in sorted(unfinished, reverse=True):
        log.info("rolling back the unfinished %s %s of the metadata table", one.action, one.requested)
        if one.action == DELTA_COMMIT:
            _remove_files(metadata, one, list(_paths_of(metadata, one)), None)
        delete_instant_files(metadata.storage, metadata.profile, one)
    return timeline_of(metadata) if unfinished else timeline


def roll_back(metadata: TableHandle, target: Instant, rollback: InstantTime | None) -> None:
    """Rolls back the delta commit `target` of the metadata table. `rollback`: record that it was rolled back.

    What is left of an earlier attempt to do this is gone, too.
    """
    paths = list(_paths_of(metadata, target))
    if rollback is None:
        # Who fails in between leaves one that is pending, which the next writer rolls back, and none without files.
        if target.is_completed:
            metadata.storage.delete(instant_path(metadata.profile, target))
        _remove_files(metadata, target, paths, None)
        delete_instant_files(metadata.storage, metadata.profile, target)
        return
    at = metadata.profile.metadata_instants.rollback(rollback)
    before = timeline_of(metadata).find(at, ROLLBACK)
    if before is not None:
        delete_instant_files(metadata.storage, metadata.profile, before)
    info = InstantInfo(target.requested, DELTA_COMMIT)
    requests = tuple(
        RollbackRequest(path.partition("/")[0], "", "", (metadata.storage.absolute(path),)) for path in paths
    )
    requested = create_requested(
        metadata.storage, metadata.profile, at, ROLLBACK, encode_rollback_plan(RollbackPlan(info, requests))
    )
    inflight = to_inflight(metadata.storage, metadata.profile, requested, is_new=True)
    clock = metadata.env.monotonic()
    deleted = _remove_files(metadata, target, paths, at)
    delete_instant_files(metadata.storage, metadata.profile, target)
    payload = RollbackMetadata(
        start_time=at,
        time_taken_ms=int((metadata.env.monotonic() - clock) * 1000),
        total_files_deleted=len(deleted),
        commits=(target.requested,),
        partitions=_by_partition(metadata, deleted),
        instants=(info,),
    )
    complete(
        metadata.storage,
        metadata.profile,
        inflight,
        encode_rollback_metadata(payload),
        metadata.env,
        metadata.config.timezone,
    )


def _remove_files(
    metadata: TableHandle, target: Instant, paths: Sequence[str], rollback: InstantTime | None
) -> list[str]:
    """Those of the files of a delta commit that were deleted. A file that it shares gets a command block behind it."""
    deleted: list[str] = []
    for path in paths:
        if _is_shared(metadata, path, target.requested):
            _append_command(metadata, path, target.requested, rollback or target.requested)
        elif metadata.storage.delete(path):
            deleted.append(path)
    metadata.storage.delete_dir(spill_folder(target.requested))
    return deleted


def _names_files(metadata: TableHandle, pending: Instant) -> bool:
    """Whether a pending delta commit says what it writes, as ours do and Hudi's do not."""
    return any(stat.path for _, stat in _metadata_of(metadata, pending).write_stats())


def _paths_of(metadata: TableHandle, target: Instant) -> Iterator[str]:
    """Files that a delta commit has written, or may have."""
    said = [stat.path for _, stat in _metadata_of(metadata, target).write_stats() if stat.path]
    if target.is_completed or said:
        yield from said
        return
    for files in list_files(metadata.storage):
        if files.partition:
            yield from _unsaid(metadata, files, target.requested)


def _metadata_of(metadata: TableHandle, target: Instant) -> CommitMetadata:
    """What a delta commit says of itself. Of one that is listed as requested its inflight file is asked for by name: a
    listing that lags shows neither that file nor those that it names, and their blocks would count when the table
    repeats the action at the same instant.
    """
    if target.state is not State.REQUESTED:
        return load_commit_metadata(metadata.storage, metadata.profile, target)
    try:
        return load_commit_metadata(metadata.storage, metadata.profile, replace(target, state=State.INFLIGHT))
    except Missing:
        return CommitMetadata()


def _unsaid(metadata: TableHandle, files: PartitionFiles, instant: InstantTime) -> Iterator[str]:
    """Files of one partition that an instant which names none has written."""
    yield from (base.path for base in files.bases if base.name.instant == instant)
    for one in files.logs:
        writer = metadata.profile.log_naming.writer_of(one.name)
        if _holds(metadata, one, instant) if writer is None else writer == instant:
            yield one.path


def _holds(metadata: TableHandle, one: LogFile, instant: InstantTime) -> bool:
    blocks = read_blocks(metadata.storage, one.path, one.size_bytes)
    return any(block.header.get(HeaderKey.INSTANT_TIME) == instant for block in blocks)


def _is_shared(metadata: TableHandle, path: str, instant: InstantTime) -> bool:
    """Whether a log file has blocks of others. Files named by their writer have not."""
    if metadata.profile.log_naming.has_one_write_per_file or not path.rpartition("/")[2].startswith("."):
        return False
    found = [file for file in metadata.storage.list_dir(path.rpartition("/")[0]).files if file.path == path]
    blocks = [block for file in found for block in read_blocks(metadata.storage, path, file.size_bytes)]
    return any(block.header.get(HeaderKey.INSTANT_TIME, instant) != instant for block in blocks)


def _append_command(metadata: TableHandle, path: str, target: InstantTime, instant: InstantTime) -> None:
    """A new log file behind `path` that says that the blocks of `target` do not count."""
    partition, _, name = path.rpartition("/")
    files = next(iter(list_files(metadata.storage, [partition])))
    before = [one.name for one in files.logs if one.name.text.startswith(name.rpartition(".log.")[0] + ".log.")]
    newest = max(before, key=lambda one: one.version)
    block = encode_block(
        BlockKind.COMMAND,
        {
            HeaderKey.INSTANT_TIME: instant,
            HeaderKey.TARGET_INSTANT_TIME: target,
            HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
        },
        b"",
    )
    for version in count(newest.version + 1):
        with suppress(Conflict):  # another writer's, who came first
            behind = LogFileName(newest.file_id, newest.instant, version, UNKNOWN_WRITE_TOKEN)
            metadata.storage.create(f"{partition}/{behind.text}", block)
            return


def _by_partition(metadata: TableHandle, deleted: Sequence[str]) -> dict[str, RollbackPartition]:
    found: dict[str, list[str]] = {}
    for path in deleted:
        found.setdefault(path.partition("/")[0], []).append(metadata.storage.absolute(path))
    return {name: RollbackPartition(name, tuple(paths), ()) for name, paths in found.items()}
