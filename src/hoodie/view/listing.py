"""What lies in the partitions of a table: files told apart by their names.

1. A folder is a partition when it holds a partition metafile (`.hoodie_partition_metadata`, or the same with the
   extension of a base file format). Partitions do not nest: below one, nothing is looked at.
2. The root can be a partition, `""`: the table is not partitioned then. `.hoodie` is never looked into.
3. One call lists each folder once: finding partitions and finding their files is the same walk. Where only some
   partitions are wanted (`PartitionChoice`), folders in which none of them can lie are not listed.

Files with other names (checksums, temporary files, strangers) are left out. Nothing here knows the timeline.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from hoodie.engine import Engine, LocalEngine, TaskId
from hoodie.layout import FederatedStorage
from hoodie.spec import is_partition_metafile, keys, parse_base_file_name, parse_data_file_name, parse_log_file_name
from hoodie.storage import FileInfo, Listable, Listing, Storage
from hoodie.view.file_slice import BaseFile, LogFile
from hoodie.view.partition_choice import PartitionChoice

LISTING_THREADS = 16
FOLDERS_OF_PREFIXES = 4
"""Partitions of a table with storage paths up to which the folders of each are listed under all prefixes."""


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """Data files of one partition in path order, whether committed or not. Change-data files (`.cdc`) are no part of
    `logs`: no slice is read with them, but they go with it when it is cleaned.
    """

    partition: str
    bases: tuple[BaseFile, ...]
    logs: tuple[LogFile, ...]
    changes: tuple[LogFile, ...] = field(default=(), compare=False)

    @property
    def everything(self) -> tuple[BaseFile | LogFile, ...]:
        """Base files, then log files."""
        return self.bases + self.logs


def list_partitions(storage: Storage, engine: Engine | None = None) -> tuple[str, ...]:
    """Paths of all partitions, sorted. Lists every folder of the table down to the partitions."""
    return tuple(found.partition for found in list_files(storage, engine=engine))


def list_data_paths(storage: Storage) -> tuple[str, ...]:
    """Paths of all data files, by folder and name, also in folders that are no partitions: a writer makes a folder one
    when its first file is there, and may die in between. Lists every folder of the table down to the partitions.
    """
    if isinstance(storage, FederatedStorage):
        files = storage.data_files()
    else:
        walked = _walked(storage, LocalEngine(LISTING_THREADS), None)
        files = tuple(file for _, listing in walked for file in listing.files)
    paths = (file.path for file in files if parse_data_file_name(file.path.rpartition("/")[2]) is not None)
    return tuple(sorted(paths, key=lambda path: path.rpartition("/")))


def list_files(
    storage: Listable,
    partitions: Collection[str] | None = None,
    *,
    engine: Engine | None = None,
    choice: PartitionChoice | None = None,
) -> tuple[PartitionFiles, ...]:
    """Data files of the given partitions (None: of all there are, or of those of a `choice`), ordered by partition.

    A given partition that does not exist comes back without files. Folders of one depth are listed at the same time.
    Where files lie under prefixes, each prefix is listed once; for a few partitions, each folder of them there.
    """
    engine = engine or LocalEngine(LISTING_THREADS)
    if isinstance(storage, FederatedStorage) and (partitions is None or len(partitions) > FOLDERS_OF_PREFIXES):
        return _chosen(_by_prefixes(storage, partitions), choice)
    if partitions is not None:
        listed = _list_folders(storage, sorted(set(partitions)), engine)
        return tuple(partition_files(folder, listing) for folder, listing in listed)
    walked = _walked(storage, engine, choice)
    found = [partition_files(folder, listing) for folder, listing in walked if _is_partition(listing)]
    return _chosen(tuple(sorted(found, key=lambda files: files.partition)), choice)


def _walked(storage: Listable, engine: Engine, choice: PartitionChoice | None) -> Iterator[tuple[str, Listing]]:
    """Folders of the table down to the partitions, or to those of a `choice`, with what is in each."""
    folders = [""]
    while folders:
        deeper: list[str] = []
        for folder, listing in _list_folders(storage, folders, engine):
            yield folder, listing
            if not _is_partition(listing):
                deeper.extend(path for path in listing.dirs if path != keys.HOODIE_DIR)
        worth = None if choice is None else choice.worth_listing(deeper)
        folders = deeper if worth is None else [path for path in deeper if path in worth]


def partition_files(partition: str, listing: Listing) -> PartitionFiles:
    """The data files among the direct children of a partition's folder."""
    bases: list[BaseFile] = []
    logs: list[LogFile] = []
    changes: list[LogFile] = []
    for file in listing.files:
        name = file.path.rpartition("/")[2]
        if is_partition_metafile(name):
            continue
        log = parse_log_file_name(name)
        if log is not None:
            if log.kind == "log":
                (changes if log.is_cdc else logs).append(LogFile(file.path, log, file.size_bytes))
            continue
        base = parse_base_file_name(name)
        if base is not None:
            bases.append(BaseFile(file.path, base, file.size_bytes))
    return PartitionFiles(partition, tuple(bases), tuple(logs), tuple(changes))


def _chosen(found: tuple[PartitionFiles, ...], choice: PartitionChoice | None) -> tuple[PartitionFiles, ...]:
    if choice is None:
        return found
    wanted = choice.of([files.partition for files in found])
    return tuple(files for files in found if files.partition in wanted)


def _by_prefixes(storage: FederatedStorage, partitions: Collection[str] | None) -> tuple[PartitionFiles, ...]:
    """Files of the partitions that have a metafile, or data files where theirs was lost."""
    inside: dict[str, list[FileInfo]] = {}
    for file in storage.data_files():
        inside.setdefault(file.path.rpartition("/")[0], []).append(file)
    if partitions is None:
        found = {folder: Listing(tuple(files), ()) for folder, files in inside.items()}
        wanted = [folder for folder, listing in found.items() if _is_partition(listing) or _has_data(listing)]
    else:
        wanted = list(set(partitions))
    return tuple(partition_files(one, Listing(tuple(inside.get(one, ())), ())) for one in sorted(wanted))


@dataclass(frozen=True, slots=True)
class _ListTask:
    storage: Listable
    folder: str


def _list_folders(storage: Listable, folders: Iterable[str], engine: Engine) -> list[tuple[str, Listing]]:
    return engine.run(_list_folder, [_ListTask(storage, folder) for folder in folders], "list files")


def _list_folder(_: TaskId, task: _ListTask) -> tuple[str, Listing]:
    return task.folder, task.storage.list_dir(task.folder)


def _is_partition(listing: Listing) -> bool:
    return any(is_partition_metafile(file.path.rpartition("/")[2]) for file in listing.files)


def _has_data(listing: Listing) -> bool:
    return any(parse_data_file_name(file.path.rpartition("/")[2]) is not None for file in listing.files)
