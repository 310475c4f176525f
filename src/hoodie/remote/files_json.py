"""Base files, log files, file slices and file groups as a timeline server writes them.

1. Fields stand in Hudi's order, and nulls are written. Optional values are lists of no or one element.
2. `fileStatus` is written as null, which Hudi's readers take (its own views in RocksDB do the same): path and length
   stand in the file's own fields, nobody reads the rest, and it is two fifths of an answer. Where it is, it counts.
3. Paths are written below the base path as the client spells it. Read is only the name: folder and scheme depend on
   where the server has the file from, and the partition is known. A name that leads out of the table is refused.
4. Log files of a slice are newest first here, oldest first in a `FileSlice`.
"""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.remote.instants_json import timeline_json
from hoodie.remote.json_values import Json, elements, member, not_understood, optional, short
from hoodie.remote.names import ensure_file_name, ensure_partition_name
from hoodie.spec import Instant, parse_base_file_name, parse_log_file_name, path_in
from hoodie.view import BaseFile, FileGroup, FileSlice, LogFile


def base_file_json(file: BaseFile, base_path: str) -> Json:
    """The object of a base file of the table at `base_path`."""
    return {
        "fileStatus": None,
        "fullPath": f"{base_path}/{file.path}",
        "fileLen": file.size_bytes,
        "commitTime": file.name.instant,
        "fileId": file.name.file_id,
        "bootstrapBaseFile": None,
    }


def log_file_json(file: LogFile, base_path: str) -> Json:
    """The object of a log file."""
    return {"fileStatus": None, "path": f"{base_path}/{file.path}", "len": file.size_bytes}


def slice_json(part: FileSlice, base_path: str) -> Json:
    """The object of a file slice."""
    return {
        "baseFile": None if part.base is None else base_file_json(part.base, base_path),
        "logFiles": [log_file_json(log, base_path) for log in reversed(part.logs)],
        "partition": part.partition,
        "fileId": part.file_id,
        "baseInstant": part.base_instant,
    }


def groups_json(groups: Iterable[FileGroup], base_path: str, timeline: Iterable[Instant]) -> Json:
    """The array of file groups. The timeline of writes stands in the first one only, and must: a client refuses
    others.
    """
    found = [
        {
            "partition": group.partition,
            "fileId": group.file_id,
            "slices": [slice_json(part, base_path) for part in group.slices],
            "timeline": None,
        }
        for group in groups
    ]
    if found:
        found[0]["timeline"] = timeline_json(timeline)
    return found


def parse_base_file(value: Json, partition: str) -> BaseFile:
    """The base file of an object.

    Raises:
        Unavailable: it is none.
    """
    name, size = _name_and_size(value, "fullPath", "fileLen")
    parsed = parse_base_file_name(name)
    if parsed is None:
        raise not_understood(f"{short(name)} is no base file")
    return BaseFile(path_in(partition, name), parsed, size)


def parse_log_file(value: Json, partition: str) -> LogFile:
    """The log file of an object. Raises as `parse_base_file`."""
    name, size = _name_and_size(value, "path", "len")
    parsed = parse_log_file_name(name)
    if parsed is None:
        raise not_understood(f"{short(name)} is no log file")
    return LogFile(path_in(partition, name), parsed, size)


def parse_slice(value: Json) -> FileSlice:
    """The file slice of an object. Raises as `parse_base_file`."""
    partition = ensure_partition_name(member(value, "partition", str))
    base = optional(value, "baseFile", dict)
    logs = [parse_log_file(one, partition) for one in elements(member(value, "logFiles", list))]
    return FileSlice(
        partition,
        member(value, "fileId", str),
        member(value, "baseInstant", str),
        None if base is None else parse_base_file(base, partition),
        tuple(sorted(logs, key=lambda log: log.name.order)),
    )


def parse_group(value: Json) -> FileGroup:
    """The file group of an object; its timeline is left out. Raises as `parse_base_file`."""
    partition = ensure_partition_name(member(value, "partition", str))
    slices = tuple(parse_slice(one) for one in elements(member(value, "slices", list)))
    for part in slices:
        if part.partition != partition:
            raise not_understood(f"a file group of {short(partition)} has a slice of {short(part.partition)}")
    return FileGroup(partition, member(value, "fileId", str), slices)


def _name_and_size(value: Json, path: str, size: str) -> tuple[str, int]:
    """The name and length of a file: by its file status, or where that is null by the fields named here."""
    status = optional(value, "fileStatus", dict)
    if status is None:
        return _name(member(value, path, str)), member(value, size, int)
    return _name(member(member(status, "path", dict), "uri", str)), member(status, "length", int)


def _name(path: str) -> str:
    return ensure_file_name(path.rpartition("/")[2])
