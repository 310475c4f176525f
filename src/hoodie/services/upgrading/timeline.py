"""A timeline written in the form of another version: names, contents, completion times, history.

1. Every file of the active timeline is written anew where the target version looks for it; the old ones stay until the
   table's properties say the new version. So at every moment one of the two timelines is whole.
2. Version 6 has no completion times: the time a file was changed stands for them. Such a time may be much too late (a
   copied table), and log files of version 6 find their slice by it after an upgrade. A write is therefore taken to have
   completed before the next one began.
3. Going back to version 6, completed files get their completion time as time of change, where the storage has such a
   thing: Hudi 1.x places log files by it. They are written in order of completion, so the order is right everywhere.
4. The schema history has completion times in its names, too, and is treated alike.
5. The history is carried over as far as it says what writes did, and what cleans took: time travel asks for both.
   Archived rollbacks and the like serve no query; they stay behind.

Bytes: `docs/format/timeline.md`, `docs/format/history.md`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from hoodie.spec import (
    CLEAN,
    CLUSTERING,
    COMPLETED_WRITE_ACTIONS,
    REPLACE_COMMIT,
    SAVEPOINT,
    CommitMetadata,
    FormatProfile,
    Instant,
    InstantTime,
    State,
    WriteStat,
    encode_clean_metadata,
    next_instant_time,
    parse_commit,
    parse_instant_time,
    path_in,
)
from hoodie.spec.keys import HOODIE_DIR
from hoodie.spec.savepoint_metadata import SavepointMetadata, encode_savepoint_metadata, parse_savepoint_metadata
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage
from hoodie.timeline import (
    ArchivedFiles,
    StateContent,
    history_of,
    instant_path,
    is_clustering,
    list_instants,
    load_archived_cleans,
    load_archived_metadata,
    load_history,
)

Renames = Mapping[str, str]
"""Old path to new path of data files, from the table's root."""

SCHEMA_DIR = f"{HOODIE_DIR}/.schema"

_SCHEMA_NAME = "{}.schemacommit"
_SCHEMA_FILE = re.compile(r"([0-9]+)(?:_[0-9]+)?\.schemacommit")


@dataclass(frozen=True, slots=True)
class Move:
    """One file of the timeline: the state it stands for now, and the one it will stand for."""

    old: Instant
    new: Instant


def plan_moves(handle: TableHandle, target: FormatProfile) -> tuple[Move, ...]:
    """All files of the active timeline with what they become, pending ones first, then in order of completion. Reads
    the plans of replacecommits.
    """
    states = list_instants(handle.storage, handle.profile, handle.config.timezone)
    completions = plan_completions([one for one in states if one.is_completed])
    clusterings = _clusterings(handle, states, target)
    moves = []
    for one in states:
        new = one
        if one.is_completed:
            new = replace(one, completed=completions[one.logical, one.action], legacy_name=False)
        elif one.logical in clusterings:
            new = replace(one, action=CLUSTERING)
        moves.append(Move(one, new))
    return tuple(sorted(moves, key=lambda move: (move.new.completed or "", move.new)))


def plan_completions(completed: Iterable[Instant]) -> dict[tuple[tuple[InstantTime, str], str], InstantTime]:
    """Completion times that order as the instants do, by logical instant and action: those they have, but of a write no
    later than the request of the next one.
    """
    ordered = sorted(completed)
    writes = [one.requested for one in ordered if one.action in COMPLETED_WRITE_ACTIONS]
    following = dict(pairwise(writes))
    found = {}
    for one in ordered:
        time = max(one.completed or one.requested, one.requested)
        after = following.get(one.requested) if one.action in COMPLETED_WRITE_ACTIONS else None
        if after is not None and time >= after:
            time = _just_before(after, one.requested)
        found[one.logical, one.action] = time
    return found


def write_timeline(handle: TableHandle, target: FormatProfile, moves: Iterable[Move], renames: Renames) -> None:
    """The timeline in the form of `target`, beside the one that is there."""
    for move in moves:
        path = instant_path(handle.profile, move.old)
        data = converted(move.old, handle.storage.read(path), path, target, renames)
        new_path = instant_path(target, move.new)
        handle.storage.put(new_path, data)
        if not target.stores_completion_time and move.new.completed is not None and keeps_times(handle.storage):
            moment_ns = round(parse_instant_time(move.new.completed, handle.config.timezone).timestamp() * 1000) * 10**6
            os.utime(handle.storage.absolute(new_path), ns=(moment_ns, moment_ns))


def keeps_times(storage: Storage) -> bool:
    """Whether files can be given a time of change."""
    return storage.scheme == "file"


def write_schema_history(storage: Storage, target: FormatProfile, moves: Iterable[Move]) -> None:
    """The files of the schema history under the names of the target version, beside the old ones."""
    completions = {move.new.requested: move.new.completed for move in moves if move.new.completed is not None}
    for path, requested in _schema_files(storage):
        new = _SCHEMA_NAME.format(requested)
        if target.stores_completion_time:
            new = _SCHEMA_NAME.format(f"{requested}_{completions.get(requested, next_instant_time(requested))}")
        if path != f"{SCHEMA_DIR}/{new}":
            storage.put(f"{SCHEMA_DIR}/{new}", storage.read(path))


def sweep_schema_history(storage: Storage, profile: FormatProfile) -> None:
    """Remove the names of the other version."""
    for path, _ in _schema_files(storage):
        if ("_" in path.rpartition("/")[2]) is not profile.stores_completion_time:
            storage.delete(path)


def converted(one: Instant, data: bytes, path: str, target: FormatProfile, renames: Renames) -> bytes:
    """The content of an instant's file as `target` writes it."""
    if one.action in COMPLETED_WRITE_ACTIONS and one.state is not State.REQUESTED and data:
        metadata = renamed(parse_commit(data, path), renames)
        return target.commit_codec.encode(metadata, one.action)
    if one.action == CLEAN and one.state is State.INFLIGHT:
        return data if target.capabilities.clean_inflight_repeats_plan else b""
    if one.action == SAVEPOINT and data:
        return encode_savepoint_metadata(
            _resaved(parse_savepoint_metadata(data, path), renames), target.avro_generation
        )
    return data


def renamed(metadata: CommitMetadata, renames: Renames) -> CommitMetadata:
    """The metadata with the new paths of data files."""
    if not renames:
        return metadata
    stats = {
        partition: tuple(_restated(stat, renames) for stat in group)
        for partition, group in metadata.partition_to_write_stats.items()
    }
    return replace(metadata, partition_to_write_stats=stats)


def write_history(handle: TableHandle, target: FormatProfile) -> int:
    """The number of archived writes and cleans that were carried over into the history of `target`, which is empty
    before.
    """
    history = load_history(handle.storage, handle.profile)
    writes = [one for one in history if one.action in COMPLETED_WRITE_ACTIONS]
    metadata = load_archived_metadata(handle.storage, writes)
    contents = {one.instant.logical: target.commit_codec.encode(metadata[one.requested], one.action) for one in writes}
    for done in load_archived_cleans(handle.storage, handle.profile):
        contents[done.start_time, CLEAN] = encode_clean_metadata(done, target.avro_generation)
    archived = [one for one in history if one.instant.logical in contents]
    if not archived:
        return 0
    completions = plan_completions([replace(one.instant, legacy_name=False) for one in archived])
    instants = sorted(
        replace(one.instant, completed=completions[one.instant.logical, one.action], legacy_name=False)
        for one in archived
    )
    carried = [
        ArchivedFiles(one, (StateContent(one, one.completed or one.requested, "history", contents[one.logical]),))
        for one in instants
    ]
    history_of(handle.storage, target).append(instants, [carried])
    return len(carried)


def _clusterings(
    handle: TableHandle, states: Iterable[Instant], target: FormatProfile
) -> frozenset[tuple[InstantTime, str]]:
    """Logical instants that are clusterings, where the target version names them so and this one does not."""
    if not target.capabilities.clustering_action or handle.profile.capabilities.clustering_action:
        return frozenset()
    asked = [one for one in states if one.action == REPLACE_COMMIT and one.state is State.REQUESTED]
    return frozenset(one.logical for one in asked if is_clustering(handle.storage, handle.profile, one))


def _schema_files(storage: Storage) -> list[tuple[str, InstantTime]]:
    """Paths of the completed files of the schema history, each with the time it is requested."""
    names = (
        (file.path, _SCHEMA_FILE.fullmatch(file.path.rpartition("/")[2])) for file in storage.list_dir(SCHEMA_DIR).files
    )
    return [(path, match[1]) for path, match in names if match is not None]


def _just_before(after: InstantTime, at_least: InstantTime) -> InstantTime:
    """A time below `after` and not below `at_least`, close to the former where the digits allow."""
    before = str(int(after) - 1).zfill(len(after)) if int(after) % 1000 else at_least
    return max(before, at_least) if next_instant_time(at_least) < after else at_least


def _restated(stat: WriteStat, renames: Renames) -> WriteStat:
    path = stat.path or ""
    folder = path[: path.rfind("/") + 1]

    def name(old: str) -> str:  # a commit names the log files of its slice without their folder
        bare = old.rpartition("/")[2]
        return renames.get(folder + bare, folder + bare).rpartition("/")[2]

    log_files = None if stat.log_files is None else tuple(map(name, stat.log_files))
    return stat._replace(path=renames.get(path, stat.path), log_files=log_files)


def _resaved(metadata: SavepointMetadata, renames: Renames) -> SavepointMetadata:
    def name(partition: str, old: str) -> str:
        path = path_in(partition, old)
        return renames.get(path, path).rpartition("/")[2]

    files = {partition: tuple(name(partition, old) for old in names) for partition, names in metadata.files.items()}
    return replace(metadata, files=files)
