"""Files of a partition that somebody knows by name and size."""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.spec import parse_base_file_name, parse_log_file_name, path_in
from hoodie.view.file_slice import BaseFile, LogFile
from hoodie.view.listing import PartitionFiles


def named_files(partition: str, files: Iterable[tuple[str, int]]) -> PartitionFiles:
    """Files with names and sizes as those of a partition, in the order given."""
    bases: list[BaseFile] = []
    logs: list[LogFile] = []
    changes: list[LogFile] = []
    for name, size in files:
        log = parse_log_file_name(name) if name.startswith(".") else None
        base = parse_base_file_name(name) if log is None else None
        if log is not None:
            (changes if log.is_cdc else logs).append(LogFile(path_in(partition, name), log, size))
        elif base is not None:
            bases.append(BaseFile(path_in(partition, name), base, size))
    return PartitionFiles(partition, tuple(bases), tuple(logs), tuple(changes))
