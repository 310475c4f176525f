"""Records of the partition `files`: which partitions the table has, and which files they hold.

1. A partition's record maps file names to sizes; a removed file has a tombstone. The record of all partitions names
   every partition that an action touched, and merging adds them up.
2. Files of change data are listed too. Empty files and partition metafiles are not.
3. A file of several log appends of one action is listed with the greatest size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final

import pyarrow as pa

from hoodie.metadata import FILES
from hoodie.metadata.file_entries import FILES_MAP
from hoodie.metadata.keys import ALL_PARTITIONS, files_key
from hoodie.metadata.partitions import RecordType
from hoodie.metadata.records import KEY, TYPE
from hoodie.metadata_writer.index_check import CheckedTable
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.metadata_index import MetadataIndex, MetadataIndexKind, MetadataRecords, group_file_ids
from hoodie.metadata_writer.update import TableUpdate

Sizes = Mapping[str, int | None]
"""File names to bytes; None: the file is gone."""

_MAPS = pa.map_(
    pa.string(),
    pa.struct([pa.field("size", pa.int64(), nullable=False), pa.field("isDeleted", pa.bool_(), nullable=False)]),
)


class FilesIndex(MetadataIndex):
    """The list of files."""

    partition = FILES

    def file_ids(self, context: IndexContext) -> tuple[str, ...]:
        """One group."""
        del context
        return group_file_ids("files-", 1)

    def initial(self, context: IndexContext) -> Iterator[MetadataRecords]:
        """All files of completed writes."""
        files: dict[str, dict[str, int | None]] = {name: {} for name in context.view().partitions}
        for part in context.view().all_slices():
            for file in (part.base, *part.logs):
                if file is not None and file.size_bytes > 0:
                    files[part.partition][file.path.rpartition("/")[2]] = file.size_bytes
        for listed in context.view().files:
            for change in listed.changes:
                if context.view().timeline.is_committed(change.name.instant):
                    files[listed.partition][change.name.text] = change.size_bytes
        yield files_records(files, ())

    def updated(self, context: IndexContext, update: TableUpdate) -> Iterator[MetadataRecords]:
        """Files written, grown and removed."""
        del context
        files: dict[str, dict[str, int | None]] = defaultdict(dict)
        for stat in update.stats:
            for path, size in stat.file_sizes.items():
                _add(files, path, size)
        for path, size in update.sizes.items():
            _add(files, path, size)
        for partition, names in update.deleted.items():
            files[partition].update(dict.fromkeys((name.rpartition("/")[2] for name in names), None))
        for partition in (*update.replaced, *update.deleted_partitions):
            files.setdefault(partition, {})
        if files or update.action in _ALWAYS:
            yield files_records(files, update.deleted_partitions)

    def check(self, table: CheckedTable) -> None:
        """Compares nothing: `hoodie.metadata.validate` holds the list against storage."""
        del table


_ALWAYS = frozenset({"commit", "deltacommit", "replacecommit"})


def files_records(files: Mapping[str, Sizes], gone: tuple[str, ...]) -> MetadataRecords:
    """The record of all partitions, and one for every partition that has something to say. `gone` are partitions that
    are no more.
    """
    every = [(files_key(name), (0, name in gone)) for name in sorted(files)]
    keys, maps, types = [ALL_PARTITIONS], [every], [RecordType.ALL_PARTITIONS]
    for partition in sorted(files):
        found = files[partition]
        if found:
            keys.append(files_key(partition))
            maps.append([(name, (found[name] or 0, found[name] is None)) for name in sorted(found)])
            types.append(RecordType.FILES)
    return MetadataRecords(
        FILES,
        pa.table(
            {
                KEY: pa.array(keys, pa.string()),
                TYPE: pa.array([int(kind) for kind in types], pa.int32()),
                FILES_MAP: _maps(maps),
            }
        ),
    )


def _maps(maps: list[list[tuple[str, tuple[int, bool]]]]) -> pa.Array:
    entries = [entry for entries in maps for entry in entries]
    offsets = [0, *accumulate(map(len, maps))]
    values = pa.StructArray.from_arrays(
        [
            pa.array([size for _, (size, _) in entries], pa.int64()),
            pa.array([is_deleted for _, (_, is_deleted) in entries], pa.bool_()),
        ],
        fields=list(_MAPS.item_type),
    )
    names = pa.array([name for name, _ in entries], pa.string())
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), names, values, type=_MAPS)


def _add(files: dict[str, dict[str, int | None]], path: str, size: int) -> None:
    partition, _, name = path.rpartition("/")
    known = files[partition].get(name) or 0
    files[partition][name] = max(known, size)


class FilesKind(MetadataIndexKind):
    """The list of files: the metadata table has it before anything else."""

    name = FILES

    def open(self, partition: str, context: IndexContext) -> FilesIndex:
        """The list of files of any table."""
        del partition, context
        return FilesIndex()

    def is_wanted(self, context: IndexContext) -> bool:
        """Always: whoever wants a metadata table wants it."""
        del context
        return True


KIND: Final = FilesKind()
