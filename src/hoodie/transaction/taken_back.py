"""Log files that a rollback has taken back where they lie.

In version 6 a rollback leaves log files of slices that are older than the write: a command block behind them says that
the write's blocks do not count. They are the table's then, as they would be by its metadata table: who has looked at
the folder since, a service or the plan of a compaction, knows them, and nothing of the timeline would tell that they
went.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hoodie.errors import Corrupt, Missing, Unsupported
from hoodie.logs import read_blocks
from hoodie.spec import BlockKind, HeaderKey, InstantTime, LogFileName, parse_log_file_name
from hoodie.state.handle import TableHandle
from hoodie.storage import FileInfo, Storage

_MAX_COMMAND_BYTES = 1024


def taken_back(handle: TableHandle, instant: InstantTime, paths: Iterable[str]) -> frozenset[str]:
    """Those of `paths`, files of the write `instant`, that are log files behind which a command block takes its blocks
    back. Lists each folder of such files once.
    """
    if handle.profile.log_naming.has_one_write_per_file:
        return frozenset()
    found = set()
    logs: dict[str, list[tuple[LogFileName, FileInfo]]] = {}
    for path in paths:
        partition, _, file_name = path.rpartition("/")
        name = parse_log_file_name(file_name)
        if name is None or not is_of_its_slice(handle, path):
            continue
        if partition not in logs:
            logs[partition] = _logs_in(handle.storage, partition)
        behind = (file for other, file in logs[partition] if _is_behind(other, name))
        if any(_takes_back(handle.storage, file, instant) for file in behind):
            found.add(path)
    return frozenset(found)


def load_commands(storage: Storage, file: FileInfo) -> list[Mapping[HeaderKey, str]]:
    """Headers of the command blocks of a log file; none of one that is too large to hold nothing else.

    Raises:
        As `read_blocks`.
    """
    if file.size_bytes > _MAX_COMMAND_BYTES:
        return []
    blocks = read_blocks(storage, file.path, file.size_bytes)
    return [dict(block.header) for block in blocks if block.kind is BlockKind.COMMAND]


def is_of_its_slice(handle: TableHandle, path: str) -> bool:
    """Whether the name of a log file tells its slice, and not who wrote it."""
    name = parse_log_file_name(path.rpartition("/")[2])
    return name is not None and handle.profile.log_naming.writer_of(name) is None


def _logs_in(storage: Storage, partition: str) -> list[tuple[LogFileName, FileInfo]]:
    named = ((parse_log_file_name(file.path.rpartition("/")[2]), file) for file in storage.list_dir(partition).files)
    return [(name, file) for name, file in named if name is not None]


def _is_behind(other: LogFileName, name: LogFileName) -> bool:
    """Whether a log file is read after another of its slice: by the version first, then by the write token."""
    return other.file_id == name.file_id and other.instant == name.instant and other.order > name.order


def _takes_back(storage: Storage, file: FileInfo, instant: InstantTime) -> bool:
    try:
        commands = load_commands(storage, file)
    except (Corrupt, Missing, Unsupported):
        return False
    return any(command.get(HeaderKey.TARGET_INSTANT_TIME) == instant for command in commands)
