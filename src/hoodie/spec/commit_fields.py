"""How commit metadata maps to named values: the one table that the JSON and the Avro form share.

1. `STAT_FIELDS` names every value of a write stat as Hudi spells it, beside ours.
2. Parsing is lenient about what is missing (Hudi's defaults) and unknown (dropped), strict about types.
3. Partitions and files are named by paths below the table; any other is damage.

It does not know bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from hoodie.spec.commit_metadata import CommitMetadata
from hoodie.spec.typed_values import dict_of, inside_table, numbers_of, texts_of, typed, wrong
from hoodie.spec.write_stat import RuntimeStats, WriteStat

REPLACED = "partitionToReplaceFileIds"

TEXT_FIELDS = {
    "fileId": "file_id",
    "path": "path",
    "prevCommit": "prev_commit",
    "partitionPath": "partition_path",
    "prevBaseFile": "prev_base_file",
    "tempPath": "temp_path",
    "baseFile": "base_file",
}
COUNT_FIELDS = {
    "numWrites": "num_writes",
    "numDeletes": "num_deletes",
    "numUpdateWrites": "num_update_writes",
    "numInserts": "num_inserts",
    "numUpdates": "num_updates",
    "totalWriteBytes": "total_write_bytes",
    "totalWriteErrors": "total_write_errors",
    "fileSizeInBytes": "file_size_bytes",
    "totalLogRecords": "total_log_records",
    "totalLogFilesCompacted": "total_log_files_compacted",
    "totalLogSizeCompacted": "total_log_size_compacted",
    "totalLogReadTimeMs": "total_log_read_time_ms",
    "totalUpdatedRecordsCompacted": "total_updated_records_compacted",
    "totalLogBlocks": "total_log_blocks",
    "totalCorruptLogBlock": "total_corrupt_log_blocks",
    "totalRollbackBlocks": "total_rollback_blocks",
}
NUMBER_FIELDS = {
    "minEventTime": "min_event_time",
    "maxEventTime": "max_event_time",
    "logVersion": "log_version",
    "logOffset": "log_offset",
}
RUNTIME_FIELDS = {
    "totalScanTime": "total_scan_time_ms",
    "totalUpsertTime": "total_upsert_time_ms",
    "totalCreateTime": "total_create_time_ms",
}


_OTHER_FIELDS: Final[Mapping[str, tuple[str, type]]] = {
    "cdc_stats": ("cdcStats", dict),
    "log_files": ("logFiles", list),
    "runtime": ("runtimeStats", dict),
}
_LEAST: Final = -(2**63)


def _kinds() -> dict[str, type]:
    """The types of all values of a write stat by Hudi's names, in the order of the fields of `WriteStat`."""
    named = dict(_OTHER_FIELDS)
    named.update((attribute, (name, str)) for name, attribute in TEXT_FIELDS.items())
    named.update((attribute, (name, int)) for name, attribute in (COUNT_FIELDS | NUMBER_FIELDS).items())
    return dict(named[attribute] for attribute in WriteStat._fields)


_KINDS: Final = _kinds()
_ABSENT: Final = tuple(
    0 if attribute in COUNT_FIELDS.values() else "" if attribute in ("file_id", "partition_path") else None
    for attribute in WriteStat._fields
)
"""What stands for a value that is not there."""
_CDC, _LOGS, _RUNTIME = map(WriteStat._fields.index, _OTHER_FIELDS)


def metadata_values(metadata: CommitMetadata, of_stat: Callable[[WriteStat], dict[str, Any]]) -> dict[str, Any]:
    """All values of commit metadata under Hudi's names, in the order of the JSON form; `of_stat` gives those of a write
    stat. Replaced file groups are there only where the commit may replace some.
    """
    values: dict[str, Any] = {
        "partitionToWriteStats": {
            partition: [of_stat(stat) for stat in stats]
            for partition, stats in metadata.partition_to_write_stats.items()
        },
        "compacted": metadata.compacted,
        "extraMetadata": dict(metadata.extra_metadata),
        "operationType": metadata.operation_type,
    }
    if metadata.partition_to_replace_file_ids is not None:
        values[REPLACED] = {partition: list(ids) for partition, ids in metadata.partition_to_replace_file_ids.items()}
    return values


def stat_values(stat: WriteStat) -> dict[str, Any]:
    """All values of a write stat under Hudi's names."""
    values: dict[str, Any] = {
        name: getattr(stat, attribute)
        for fields in (TEXT_FIELDS, COUNT_FIELDS, NUMBER_FIELDS)
        for name, attribute in fields.items()
    }
    if stat.path is None and not stat.partition_path:
        values["partitionPath"] = None  # a workload profile names no file and leaves the partition to the map's key
    values["cdcStats"] = dict_of(stat.cdc_stats)
    values["logFiles"] = None if stat.log_files is None else list(stat.log_files)
    values["runtimeStats"] = stat.runtime and {
        name: getattr(stat.runtime, attribute) for name, attribute in RUNTIME_FIELDS.items()
    }
    return values


def parse_metadata(values: Mapping[str, Any], path: str) -> CommitMetadata:
    """Commit metadata from the values under Hudi's names.

    Raises:
        Corrupt: a value has the wrong type, or a path leaves the table.
    """
    stats = typed(values, "partitionToWriteStats", dict, path) or {}
    replaced = typed(values, "partitionToReplaceFileIds", dict, path)
    extra = typed(values, "extraMetadata", dict, path) or {}
    for partition in (*stats, *(replaced or ())):
        _ensure_partition(partition, path)
    return CommitMetadata(
        partition_to_write_stats={
            partition: tuple(_parse_stat(stat, path) for stat in typed(stats, partition, list, path) or ())
            for partition in stats
        },
        compacted=bool(typed(values, "compacted", bool, path)),
        extra_metadata={key: "" if value is None else str(value) for key, value in extra.items()},
        operation_type=typed(values, "operationType", str, path),
        partition_to_replace_file_ids=None
        if replaced is None
        else {partition: texts_of(replaced, partition, path) for partition in replaced},
    )


def _ensure_partition(partition: object, path: str) -> None:
    if not isinstance(partition, str):
        raise wrong("partition", partition, path)
    if partition:
        inside_table(partition, "a partition", path)


def _parse_stat(values: object, path: str) -> WriteStat:
    if not isinstance(values, dict):
        raise wrong("write stat", values, path)
    said: list[Any] = list(map(values.get, _KINDS))
    # What is whole is seen at once: a commit may have a hundred thousand of these.
    if not (_are_whole(tuple(map(type, said))) and _are_long(said)):
        said = [
            default if typed(values, name, kind, path) is None else value
            for value, (name, kind), default in zip(said, _KINDS.items(), _ABSENT, strict=True)
        ]
    if said[_CDC] is not None:
        said[_CDC] = numbers_of(values, "cdcStats", path)
    if said[_LOGS] is not None:
        said[_LOGS] = texts_of(values, "logFiles", path)
    if said[_RUNTIME] is not None:
        said[_RUNTIME] = _parse_runtime(said[_RUNTIME], path)
    stat = WriteStat._make(said)
    for file in (*filter(None, (stat.path,)), *(stat.cdc_stats or ())):
        inside_table(file, "a written file", path)
    return stat


@lru_cache(maxsize=256)
def _are_whole(kinds: tuple[type, ...]) -> bool:
    """Whether values of these types, in the order of `_KINDS`, are of the right ones, and none without a default of its
    own is absent.
    """
    return all(
        kind is right or (kind is type(None) and default is None)
        for kind, right, default in zip(kinds, _KINDS.values(), _ABSENT, strict=True)
    )


def _are_long(said: Iterable[Any]) -> bool:
    numbers = [value for value in said if type(value) is int]
    return not numbers or (min(numbers) >= _LEAST and max(numbers) < -_LEAST)


def _parse_runtime(found: Mapping[str, Any], path: str) -> RuntimeStats:
    return RuntimeStats(*[typed(found, name, int, path) or 0 for name in RUNTIME_FIELDS])
