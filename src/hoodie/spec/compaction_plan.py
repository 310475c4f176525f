"""What a compaction will do: content of `compaction.requested` and of `logcompaction.requested`.

1. An operation is one file group: the base file and the log files that become the next base file (or, for a log
   compaction, the log files that become one). Files are named without folder, log files oldest first.
2. A group named by a pending compaction has a slice at its instant already, even while no base file is there.
3. Both Avro generations are read and written. Plans of version 1, of old releases, name files with their full path:
   they are understood, only the names are kept.
4. `metrics` are numbers of Hudi's strategies, `preserve_metadata` says nothing: rows keep their commit time and
   sequence number in every compaction.

It does not know storage, nor how a plan is made. Grammar and an example: `docs/format/compaction.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hoodie.errors import Corrupt
from hoodie.spec.avro_container import encode_container, parse_container
from hoodie.spec.avro_schemas import AvroGeneration
from hoodie.spec.file_names import path_in
from hoodie.spec.instant import InstantTime
from hoodie.spec.plan_members import PlannedSlice, missing_values, parse_missing
from hoodie.spec.typed_values import (
    dict_of,
    folder_of,
    inside_table,
    numbers_by_text,
    records_of,
    text_of,
    texts_by_text,
    texts_of,
    typed,
)

_RECORD = "HoodieCompactionPlan"

PLAN_VERSION = 2
"""The version that names files without folder."""


@dataclass(frozen=True, slots=True)
class CompactionOperation(PlannedSlice):
    """One file group of a plan. `base_instant` is that of its slice; `base_file` is None where it has only log files.

    `bootstrap_file` is the source of a bootstrap skeleton, a full path outside the table.
    """

    base_instant: InstantTime | None
    log_files: tuple[str, ...] = ()
    base_file: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    bootstrap_file: str | None = None

    @property
    def base_path(self) -> str | None:
        """The base file's path below the table."""
        return None if self.base_file is None else path_in(self.partition, self.base_file)

    @property
    def log_paths(self) -> tuple[str, ...]:
        """Paths of the log files below the table, oldest first."""
        return tuple(path_in(self.partition, name) for name in self.log_files)


@dataclass(frozen=True, slots=True)
class PlanStrategy:
    """The class that is to carry out a plan, where a plan names one (Hudi's log compactions do)."""

    class_name: str | None = None
    params: Mapping[str, str] | None = None
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What one compaction will do. `missing_partitions`: those a strategy left for a later plan (1.x only)."""

    operations: tuple[CompactionOperation, ...]
    extra_metadata: Mapping[str, str] | None = None
    version: int | None = PLAN_VERSION
    strategy: PlanStrategy | None = None
    preserve_metadata: bool | None = False
    missing_partitions: tuple[str, ...] | None = None

    @property
    def group_ids(self) -> tuple[tuple[str, str], ...]:
        """(partition path, file id) of every operation, in the plan's order."""
        return tuple(one.group_id for one in self.operations)


def new_compaction_plan(operations: tuple[CompactionOperation, ...], generation: AvroGeneration) -> CompactionPlan:
    """The plan with what Hudi's releases of that generation put around its operations."""
    if generation == "1.x":
        return CompactionPlan(operations, extra_metadata={}, missing_partitions=())
    return CompactionPlan(operations)


def encode_compaction_plan(plan: CompactionPlan, generation: AvroGeneration = "1.x") -> bytes:
    """The bytes of `compaction.requested`."""
    values = {
        "operations": [_operation_values(operation) for operation in plan.operations],
        "extraMetadata": dict_of(plan.extra_metadata),
        "version": plan.version,
        "strategy": None if plan.strategy is None else _strategy_values(plan.strategy),
        "preserveHoodieMetadata": plan.preserve_metadata,
        **missing_values(plan.missing_partitions, generation),
    }
    return encode_container(_RECORD, values, generation)


def parse_compaction_plan(data: bytes, path: str) -> CompactionPlan:
    """The plan in a requested file.

    Raises:
        Corrupt: damaged, another kind of record, or a partition or file outside the table.
    """
    name, record = parse_container(data, path)
    if "operations" not in record:
        raise Corrupt(f"{path} holds a {name}, not a {_RECORD}", remedy="Restore the file from a copy", path=path)
    return CompactionPlan(
        operations=tuple(_parse_operation(one, path) for one in records_of(record, "operations", path)),
        extra_metadata=texts_by_text(record, "extraMetadata", path),
        version=typed(record, "version", int, path),
        strategy=_parse_strategy(typed(record, "strategy", dict, path), path),
        preserve_metadata=typed(record, "preserveHoodieMetadata", bool, path),
        missing_partitions=parse_missing(record, path),
    )


def _operation_values(operation: CompactionOperation) -> dict[str, Any]:
    return {
        "baseInstantTime": operation.base_instant,
        "deltaFilePaths": list(operation.log_files),
        "dataFilePath": operation.base_file,
        "fileId": operation.file_id,
        "partitionPath": operation.partition,
        "metrics": dict(operation.metrics),
        "bootstrapFilePath": operation.bootstrap_file,
    }


def _parse_operation(record: Mapping[str, Any], path: str) -> CompactionOperation:
    base = typed(record, "dataFilePath", str, path)
    return CompactionOperation(
        partition=folder_of(record, "partitionPath", path),
        file_id=text_of(record, "fileId", path),
        base_instant=typed(record, "baseInstantTime", str, path),
        log_files=tuple(_file_name(one, path) for one in texts_of(record, "deltaFilePaths", path)),
        base_file=_file_name(base, path) if base else None,
        metrics=numbers_by_text(record, "metrics", path) or {},
        bootstrap_file=typed(record, "bootstrapFilePath", str, path),
    )


def _file_name(said: str, path: str) -> str:
    return inside_table(said.rpartition("/")[2], "a file of an operation", path)


def _strategy_values(strategy: PlanStrategy) -> dict[str, Any]:
    return {
        "compactorClassName": strategy.class_name,
        "strategyParams": dict_of(strategy.params),
        "version": strategy.version,
    }


def _parse_strategy(record: Mapping[str, Any] | None, path: str) -> PlanStrategy | None:
    if record is None:
        return None
    return PlanStrategy(
        typed(record, "compactorClassName", str, path),
        texts_by_text(record, "strategyParams", path),
        typed(record, "version", int, path),
    )
