"""Avro schemas of everything the timeline stores, as data, in the two generations that exist.

1. Full names, field names, field order, types and defaults are those of the bytes Hudi writes, down to oddities such as
   `"default":null` inside a map type: `schema(name, generation).text` is the text of `avro.schema` in Hudi's own files.
   Only `doc` attributes are left out: no reader looks at them.
2. A named type is spelled out where it first occurs in a schema and referred to by its bare name afterwards.
3. Generation "0.15" is what tables of version 6 use, "1.x" what versions 8 and later use.

It does not know how records are encoded (see `avro_container`) nor what they mean.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from hoodie.errors import Invalid

AvroGeneration = Literal["0.15", "1.x"]

NAMESPACE = "org.apache.hudi.avro.model"

_Type = Any  # an Avro type: a name, a union (list) or a definition (dict)
_STRING: _Type = {"type": "string", "avro.java.string": "String"}


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A record schema: its bare name and its JSON text as it stands in a file header."""

    name: str
    text: str


@cache
def schema(name: str, generation: AvroGeneration = "1.x") -> AvroSchema:
    """The schema of the record `name` (bare, for instance `HoodieCommitMetadata`).

    Raises:
        Invalid: there is no such record in that generation.
    """
    build = _RECORDS.get(name)
    if build is None or (generation == "0.15" and name in _ONLY_1X):
        raise Invalid(f"No Avro record {name!r} in generation {generation}", name=name)
    named = _with_namespace(_referring(build(generation), set()))
    return AvroSchema(name, json.dumps(named, separators=(",", ":")))


def schema_names(generation: AvroGeneration = "1.x") -> tuple[str, ...]:
    """Names of all records of a generation."""
    return tuple(name for name in _RECORDS if generation == "1.x" or name not in _ONLY_1X)


# Building blocks


def _record(name: str, *fields: dict[str, Any]) -> _Type:
    return {"type": "record", "name": name, "fields": list(fields)}


def _required(name: str, kind: _Type) -> dict[str, Any]:
    return {"name": name, "type": kind}


def _with_default(name: str, kind: _Type, default: object) -> dict[str, Any]:
    return {"name": name, "type": kind, "default": default}


def _optional(name: str, kind: _Type) -> dict[str, Any]:
    return _with_default(name, ["null", kind], None)


def _version(default: int = 1) -> dict[str, Any]:
    return _with_default("version", ["int", "null"], default)


def _strings(name: str) -> dict[str, Any]:
    return _required(name, _array(_STRING))


def _array(items: _Type, **odd_default: object) -> _Type:
    return {"type": "array", "items": items, **odd_default}


def _map(values: _Type, **odd_default: object) -> _Type:
    return {"type": "map", "values": values, "avro.java.string": "String", **odd_default}


def _texts(name: str = "extraMetadata", **odd_default: object) -> dict[str, Any]:
    return _optional(name, _map(_STRING, **odd_default))


def _referring(kind: _Type, seen: set[str]) -> _Type:
    """`kind` with every second definition of a record replaced by its name, in reading order."""
    if isinstance(kind, list):
        return [_referring(branch, seen) for branch in kind]
    if not isinstance(kind, dict):
        return kind
    if kind["type"] == "record":
        if kind["name"] in seen:
            return kind["name"]
        seen.add(kind["name"])
        return kind | {"fields": [f | {"type": _referring(f["type"], seen)} for f in kind["fields"]]}
    inner = {"array": "items", "map": "values"}.get(kind["type"])
    return kind | {inner: _referring(kind[inner], seen)} if inner else kind


def _with_namespace(record: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": record["name"], "namespace": NAMESPACE, "fields": record["fields"]}


# Commits


def _write_stat(generation: AvroGeneration) -> _Type:
    longs = ("numWrites", "numDeletes", "numUpdateWrites", "totalWriteBytes", "totalWriteErrors")
    more_longs = (
        "totalLogRecords",
        "totalLogFiles",
        "totalUpdatedRecordsCompacted",
        "numInserts",
        "totalLogBlocks",
        "totalCorruptLogBlock",
        "totalRollbackBlocks",
        "fileSizeInBytes",
    )
    fields = [_optional(name, _STRING) for name in ("fileId", "path", "prevCommit")]
    fields += [_optional(name, "long") for name in longs]
    fields += [_optional("partitionPath", _STRING)]
    fields += [_optional(name, "long") for name in more_longs]
    if generation == "1.x":
        fields += [
            _optional("logVersion", "int"),
            _optional("logOffset", "long"),
            _optional("baseFile", _STRING),
            _optional("logFiles", _array(_STRING, default=None)),
            _optional("cdcStats", _map("long", default=None)),
            _optional("prevBaseFile", _STRING),
            _optional("minEventTime", "long"),
            _optional("maxEventTime", "long"),
            _optional("runtimeStats", _runtime_stats(generation)),
            _optional("totalLogFilesCompacted", "long"),
            _optional("totalLogReadTimeMs", "long"),
            _optional("totalLogSizeCompacted", "long"),
            _optional("tempPath", _STRING),
            _optional("numUpdates", "long"),
        ]
    return _record("HoodieWriteStat", *fields)


def _runtime_stats(_: AvroGeneration) -> _Type:
    names = ("totalScanTime", "totalCreateTime", "totalUpsertTime")
    return _record("HoodieRuntimeStats", *(_optional(name, "long") for name in names))


def _stats_per_partition(generation: AvroGeneration) -> dict[str, Any]:
    return _optional("partitionToWriteStats", _map(_array(_write_stat(generation))))


def _compacted(generation: AvroGeneration) -> list[dict[str, Any]]:
    return [_optional("compacted", "boolean")] if generation == "1.x" else []


def _commit_metadata(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieCommitMetadata",
        _stats_per_partition(generation),
        *_compacted(generation),
        _texts(default=None),
        _version(),
        _optional("operationType", _STRING),
    )


def _replace_commit_metadata(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieReplaceCommitMetadata",
        _stats_per_partition(generation),
        *_compacted(generation),
        _texts(),
        _version(),
        _optional("operationType", _STRING),
        _optional("partitionToReplaceFileIds", _map(_array(_STRING))),
    )


# Clustering and other replacements


def _requested_replace(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieRequestedReplaceMetadata",
        _optional("operationType", _STRING),
        _optional("clusteringPlan", _clustering_plan(generation)),
        _texts(),
        _version(),
    )


def _clustering_plan(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieClusteringPlan",
        _optional("inputGroups", _array(_clustering_group(generation))),
        _optional("strategy", _clustering_strategy(generation)),
        _texts(),
        _version(),
        _optional("preserveHoodieMetadata", "boolean"),
        *_missing_partitions(generation),
    )


def _clustering_group(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieClusteringGroup",
        _optional("slices", _array(_slice_info(generation))),
        _optional("metrics", _map("double")),
        _with_default("numOutputFileGroups", ["int", "null"], 1),
        _texts(),
        _version(),
    )


def _slice_info(_: AvroGeneration) -> _Type:
    return _record(
        "HoodieSliceInfo",
        _optional("dataFilePath", _STRING),
        _optional("deltaFilePaths", _array(_STRING)),
        _required("fileId", ["null", _STRING]),
        _optional("partitionPath", _STRING),
        _optional("bootstrapFilePath", _STRING),
        _version(),
    )


def _clustering_strategy(_: AvroGeneration) -> _Type:
    return _record(
        "HoodieClusteringStrategy", _optional("strategyClassName", _STRING), _texts("strategyParams"), _version()
    )


def _missing_partitions(generation: AvroGeneration) -> list[dict[str, Any]]:
    return [_optional("missingSchedulePartitions", _array(_STRING))] if generation == "1.x" else []


# Compaction


def _compaction_plan(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieCompactionPlan",
        _optional("operations", _array(_compaction_operation(generation))),
        _texts(),
        _version(),
        _optional("strategy", _compaction_strategy(generation)),
        _with_default("preserveHoodieMetadata", ["boolean", "null"], False),
        *_missing_partitions(generation),
    )


def _compaction_operation(_: AvroGeneration) -> _Type:
    return _record(
        "HoodieCompactionOperation",
        _required("baseInstantTime", ["null", _STRING]),
        _optional("deltaFilePaths", _array(_STRING)),
        _optional("dataFilePath", _STRING),
        _required("fileId", ["null", _STRING]),
        _optional("partitionPath", _STRING),
        _optional("metrics", _map("double")),
        _optional("bootstrapFilePath", _STRING),
    )


def _compaction_strategy(_: AvroGeneration) -> _Type:
    return _record(
        "HoodieCompactionStrategy", _optional("compactorClassName", _STRING), _texts("strategyParams"), _version()
    )


def _compaction_metadata(generation: AvroGeneration) -> _Type:
    stat = _record(
        "HoodieCompactionWriteStat",
        _optional("partitionPath", _STRING),
        _optional("totalLogRecords", "long"),
        _optional("totalLogFiles", "long"),
        _optional("totalUpdatedRecordsCompacted", "long"),
        _optional("hoodieWriteStat", _write_stat(generation)),
    )
    return _record(
        "HoodieCompactionMetadata", _required("partitionToCompactionWriteStats", ["null", _map(_array(stat))])
    )


# Cleaning


def _cleaner_plan(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieCleanerPlan",
        _optional("earliestInstantToRetain", _action_instant(generation)),
        _with_default("lastCompletedCommitTimestamp", _STRING, ""),
        _required("policy", _STRING),
        _optional("filesToBeDeletedPerPartition", _map(_array(_STRING))),
        _version(),
        _optional("filePathsToBeDeletedPerPartition", _map(_array(_clean_file_info(generation)))),
        _optional("partitionsToBeDeleted", _array(_STRING)),
        _texts(default=None),
    )


def _action_instant(_: AvroGeneration) -> _Type:
    return _record("HoodieActionInstant", *(_required(name, _STRING) for name in ("timestamp", "action", "state")))


def _clean_file_info(_: AvroGeneration) -> _Type:
    return _record("HoodieCleanFileInfo", _optional("filePath", _STRING), _optional("isBootstrapBaseFile", "boolean"))


def _clean_metadata(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieCleanMetadata",
        _required("startCleanTime", _STRING),
        _required("timeTakenInMillis", "long"),
        _required("totalFilesDeleted", "int"),
        _required("earliestCommitToRetain", _STRING),
        _with_default("lastCompletedCommitTimestamp", _STRING, ""),
        _required("partitionMetadata", _map(_clean_partition(generation))),
        _version(),
        _optional("bootstrapPartitionMetadata", _map(_clean_partition(generation), default=None)),
        _texts(default=None),
    )


def _clean_partition(_: AvroGeneration) -> _Type:
    return _record(
        "HoodieCleanPartitionMetadata",
        _required("partitionPath", _STRING),
        _required("policy", _STRING),
        _strings("deletePathPatterns"),
        _strings("successDeleteFiles"),
        _strings("failedDeleteFiles"),
        _optional("isPartitionDeleted", "boolean"),
    )


# Rollback, restore, savepoint


def _instant_info(_: AvroGeneration) -> _Type:
    return _record("HoodieInstantInfo", _required("commitTime", _STRING), _required("action", _STRING))


def _rollback_plan(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieRollbackPlan",
        _optional("instantToRollback", _instant_info(generation)),
        _optional("RollbackRequests", _array(_rollback_request(generation))),
        _version(),
    )


def _rollback_request(_: AvroGeneration) -> _Type:
    return _record(
        "HoodieRollbackRequest",
        _required("partitionPath", _STRING),
        _optional("fileId", _STRING),
        _optional("latestBaseInstant", _STRING),
        _with_default("filesToBeDeleted", _array(_STRING, default=[]), []),
        _optional("logBlocksToBeDeleted", _map("long")),
    )


def _rollback_metadata(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieRollbackMetadata",
        _required("startRollbackTime", _STRING),
        _required("timeTakenInMillis", "long"),
        _required("totalFilesDeleted", "int"),
        _strings("commitsRollback"),
        _required("partitionMetadata", _map(_rollback_partition(generation))),
        _version(),
        _with_default("instantsRollback", _array(_instant_info(generation), default=[]), []),
    )


def _rollback_partition(_: AvroGeneration) -> _Type:
    return _record(
        "HoodieRollbackPartitionMetadata",
        _required("partitionPath", _STRING),
        _strings("successDeleteFiles"),
        _strings("failedDeleteFiles"),
        _optional("rollbackLogFiles", _map("long")),
        _optional("logFilesFromFailedCommit", _map("long")),
    )


def _restore_plan(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieRestorePlan",
        _with_default("instantsToRollback", _array(_instant_info(generation), default=None), []),
        _version(2),
        _optional("savepointToRestoreTimestamp", _STRING),
    )


def _restore_metadata(generation: AvroGeneration) -> _Type:
    # Hudi gives the union inside the array a default of its own, as an attribute after the items.
    rollbacks = {"type": "array", "items": ["null", _rollback_metadata(generation)], "default": None}
    return _record(
        "HoodieRestoreMetadata",
        _required("startRestoreTime", _STRING),
        _required("timeTakenInMillis", "long"),
        _strings("instantsToRollback"),
        _required("hoodieRestoreMetadata", _map(rollbacks)),
        _version(),
        _with_default("restoreInstantInfo", _array(_instant_info(generation), default=None), []),
    )


def _savepoint_metadata(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieSavepointMetadata",
        _required("savepointedBy", _STRING),
        _required("savepointedAt", "long"),
        _required("comments", _STRING),
        _required("partitionMetadata", _map(_savepoint_partition(generation))),
        _version(),
    )


def _savepoint_partition(_: AvroGeneration) -> _Type:
    return _record(
        "HoodieSavepointPartitionMetadata", _required("partitionPath", _STRING), _strings("savepointDataFile")
    )


# Indexing


def _index_plan(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieIndexPlan", _version(), _optional("indexPartitionInfos", _array(_index_partition(generation)))
    )


def _index_commit_metadata(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieIndexCommitMetadata",
        _version(),
        _optional("operationType", _STRING),
        _optional("indexPartitionInfos", _array(_index_partition(generation))),
    )


def _index_partition(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieIndexPartitionInfo",
        _version(),
        _optional("metadataPartitionPath", _STRING),
        _optional("indexUptoInstant", _STRING),
        *([_texts()] if generation == "1.x" else []),
    )


# History


def _archived_entry(generation: AvroGeneration) -> _Type:
    return _record(
        "HoodieArchivedMetaEntry",
        _optional("hoodieCommitMetadata", _commit_metadata(generation)),
        _optional("hoodieCleanMetadata", _clean_metadata(generation)),
        _optional("hoodieCompactionMetadata", _compaction_metadata(generation)),
        _optional("hoodieRollbackMetadata", _rollback_metadata(generation)),
        _optional("hoodieSavePointMetadata", _savepoint_metadata(generation)),
        _optional("commitTime", _STRING),
        _optional("actionType", _STRING),
        _version(),
        _optional("hoodieCompactionPlan", _compaction_plan(generation)),
        _optional("hoodieCleanerPlan", _cleaner_plan(generation)),
        _optional("actionState", _STRING),
        _optional("hoodieReplaceCommitMetadata", _replace_commit_metadata(generation)),
        _optional("hoodieRequestedReplaceMetadata", _requested_replace(generation)),
        _optional("HoodieInflightReplaceMetadata", _commit_metadata(generation)),
        _optional("hoodieIndexCommitMetadata", _index_commit_metadata(generation)),
        _optional("stateTransitionTime", _STRING),
    )


def _lsm_instant(_: AvroGeneration) -> _Type:
    return _record(
        "HoodieLSMTimelineInstant",
        _optional("instantTime", _STRING),
        _optional("completionTime", _STRING),
        _optional("action", _STRING),
        _optional("metadata", "bytes"),
        _optional("plan", "bytes"),
        _with_default("version", "int", 1),
    )


def _merge_archive_plan(_: AvroGeneration) -> _Type:
    return _record(
        "HoodieMergeArchiveFilePlan",
        _version(),
        _optional("candidate", _array(_STRING)),
        _optional("mergedArchiveFileName", _STRING),
    )


_ONLY_1X = frozenset({"HoodieLSMTimelineInstant", "HoodieRuntimeStats"})

_RECORDS: dict[str, Callable[[AvroGeneration], _Type]] = {
    "HoodieCommitMetadata": _commit_metadata,
    "HoodieReplaceCommitMetadata": _replace_commit_metadata,
    "HoodieWriteStat": _write_stat,
    "HoodieRuntimeStats": _runtime_stats,
    "HoodieRequestedReplaceMetadata": _requested_replace,
    "HoodieClusteringPlan": _clustering_plan,
    "HoodieClusteringGroup": _clustering_group,
    "HoodieSliceInfo": _slice_info,
    "HoodieClusteringStrategy": _clustering_strategy,
    "HoodieCompactionPlan": _compaction_plan,
    "HoodieCompactionOperation": _compaction_operation,
    "HoodieCompactionStrategy": _compaction_strategy,
    "HoodieCompactionMetadata": _compaction_metadata,
    "HoodieCleanerPlan": _cleaner_plan,
    "HoodieActionInstant": _action_instant,
    "HoodieCleanFileInfo": _clean_file_info,
    "HoodieCleanMetadata": _clean_metadata,
    "HoodieCleanPartitionMetadata": _clean_partition,
    "HoodieRollbackPlan": _rollback_plan,
    "HoodieRollbackRequest": _rollback_request,
    "HoodieInstantInfo": _instant_info,
    "HoodieRollbackMetadata": _rollback_metadata,
    "HoodieRollbackPartitionMetadata": _rollback_partition,
    "HoodieRestorePlan": _restore_plan,
    "HoodieRestoreMetadata": _restore_metadata,
    "HoodieSavepointMetadata": _savepoint_metadata,
    "HoodieSavepointPartitionMetadata": _savepoint_partition,
    "HoodieIndexPlan": _index_plan,
    "HoodieIndexCommitMetadata": _index_commit_metadata,
    "HoodieIndexPartitionInfo": _index_partition,
    "HoodieArchivedMetaEntry": _archived_entry,
    "HoodieLSMTimelineInstant": _lsm_instant,
    "HoodieMergeArchiveFilePlan": _merge_archive_plan,
}
