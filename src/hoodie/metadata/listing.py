"""The files of a table as its metadata table lists them: what a walk through all folders gives, without the walk.

1. The result has the shape of `view.list_files`. It has the files of settled writes only, so it cannot tell what a dead
   writer left; slicing would leave those out anyway.
2. Partition metafiles are left out, and change-data files stand apart, as they do in listings.
3. A name in it is a path below the table, or the metadata table is damaged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from hoodie.errors import Corrupt, Invalid
from hoodie.metadata.damage import REBUILD
from hoodie.metadata.file_entries import FILES_MAP, Entries, merge_entries
from hoodie.metadata.keys import ALL_PARTITIONS, files_key, partition_of
from hoodie.metadata.partitions import FILES, group_of_keys
from hoodie.metadata.records import EVERYTHING, Wanted
from hoodie.metadata.store import MetadataStore
from hoodie.spec import keys, parse_base_file_name, parse_log_file_name
from hoodie.storage import checked_path
from hoodie.view import BaseFile, LogFile, PartitionFiles, collecting_later


def list_metadata_files(store: MetadataStore, partitions: Collection[str] | None = None) -> tuple[PartitionFiles, ...]:
    """Data files of the given partitions (None: of all there are), ordered by partition.

    A given partition that the metadata table does not know comes back without files.

    Raises:
        Corrupt: the metadata table is damaged.
    """
    with collecting_later():
        return _listed(load_entries(store, partitions).live(), partitions)


def list_metadata_partitions(store: MetadataStore) -> tuple[str, ...]:
    """Paths of all partitions, sorted: one record is read.

    Raises:
        Corrupt: the metadata table is damaged.
    """
    read = store.read(FILES, by_group(store, FILES, [ALL_PARTITIONS]), (FILES_MAP,))
    listed = merge_entries([part for group in read for part in group]).live().get(ALL_PARTITIONS)
    return tuple(sorted(_partitions(listed)))


def _listed(known: dict[str, dict[str, int]], partitions: Collection[str] | None) -> tuple[PartitionFiles, ...]:
    if partitions is None:
        partitions = _partitions(known.pop(ALL_PARTITIONS, None))
    found = (_partition_files(partition, known.get(files_key(partition), {})) for partition in sorted(set(partitions)))
    return tuple(found)


def _partitions(listed: Mapping[str, int] | None) -> list[str]:
    if listed is None:  # it is there from the first commit on: the files were changed while they were read
        raise _damaged(f"the record {ALL_PARTITIONS} is missing")
    return [partition_of(name) for name in listed]


def load_entries(store: MetadataStore, partitions: Collection[str] | None = None) -> Entries:
    """The merged records of the partition `files`, tombstones included: all, or those of some partitions."""
    wanted: Mapping[str, Wanted] | Wanted = EVERYTHING
    if partitions is not None:
        names = sorted({files_key(partition) for partition in partitions})
        wanted = by_group(store, FILES, names)
    read = store.read(FILES, wanted, (FILES_MAP,))
    return merge_entries([part for group in read for part in group])


def by_group(store: MetadataStore, partition: str, names: Collection[str]) -> dict[str, Wanted]:
    """What to ask of which file group to get the records with these keys."""
    groups = store.groups(partition)
    numbers = group_of_keys(pa.array(names, pa.string()), len(groups)).tolist()
    asked: dict[str, list[str]] = {}
    for name, number in zip(names, numbers, strict=True):
        asked.setdefault(groups[number].file_id, []).append(name)
    return {file_id: Wanted(keys=tuple(found)) for file_id, found in asked.items()}


def _partition_files(partition: str, sizes: Mapping[str, int]) -> PartitionFiles:
    folder = f"{_checked(partition)}/" if partition else ""
    bases: list[BaseFile] = []
    logs: list[LogFile] = []
    changes: list[LogFile] = []
    for name in sorted(sizes):
        if name[:1] == ".":
            log = parse_log_file_name(name)
            if log is not None and log.kind == "log":
                (changes if log.is_cdc else logs).append(LogFile(folder + name, log, sizes[name]))
            continue
        base = parse_base_file_name(name)
        if base is not None:
            bases.append(BaseFile(folder + name, base, sizes[name]))
    return PartitionFiles(partition, tuple(bases), tuple(logs), tuple(changes))


def _checked(partition: str) -> str:
    try:
        return checked_path(partition)
    except Invalid as error:
        raise _damaged(f"it lists the partition {partition!r}, which is not a path below the table") from error


def _damaged(what: str) -> Corrupt:
    path = f"{keys.METADATA_TABLE_DIR}/{FILES}"
    return Corrupt(f"{path} is damaged: {what}", remedy=REBUILD, path=path)
