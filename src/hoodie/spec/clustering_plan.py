"""What a clustering will do: the plan in `replacecommit.requested` (version 6) or `clustering.requested`.

1. A group is a set of file slices whose rows go to `outputs` new file groups; the file groups of its slices are
   replaced when the plan completes. Nothing else may change them until then.
2. Paths stand in a plan as its planner spelled them: with or without a scheme, and under the base path the table had
   then. Only partition and file name are trusted, which is what `base_path` and `log_paths` are made of.
3. `metrics` are numbers for people and strategies. `preserve_metadata`: rows keep commit time and sequence number; it
   is true in every plan, and null in those of old releases.
4. Both Avro generations are read and written; all `version` members are 1.

It does not know storage, nor the record around a plan (`replace_plan`). An example: `docs/format/bucket-index.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hoodie.spec.avro_schemas import AvroGeneration
from hoodie.spec.file_names import path_in
from hoodie.spec.plan_members import PlannedSlice, missing_values, parse_missing
from hoodie.spec.sort_order import SORT_COLUMNS, SortOrder, parse_sort_order
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

_VERSION = 1


@dataclass(frozen=True, slots=True)
class ClusteringSlice(PlannedSlice):
    """One file slice that is read. Files are named as the planner spelled them; an empty `data_file` is none."""

    data_file: str | None = ""
    log_files: tuple[str, ...] = ()
    bootstrap_file: str | None = ""

    @property
    def base_path(self) -> str | None:
        """The base file's path below the table; None for a slice of log files only."""
        return path_in(self.partition, _name(self.data_file)) if self.data_file else None

    @property
    def log_paths(self) -> tuple[str, ...]:
        """Paths of the log files below the table, in the plan's order."""
        return tuple(path_in(self.partition, _name(file)) for file in self.log_files)


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """Slices whose rows go to `outputs` new file groups. `extra_metadata`: the nodes of a hash ring, in a resize of
    buckets; an order of its own (`ClusteringPlan.sort_order_of`) and bounds of columns, in plans of ours.
    """

    slices: tuple[ClusteringSlice, ...]
    outputs: int | None = 1
    metrics: Mapping[str, float] | None = None
    extra_metadata: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ClusteringStrategy:
    """The class that is to carry out a plan, and its parameters."""

    class_name: str | None = None
    params: Mapping[str, str] | None = field(default_factory=dict)

    @property
    def sort_order(self) -> SortOrder | None:
        """How the rows of each group are to be sorted; None: as they come. Raises as `parse_sort_order`."""
        return parse_sort_order(self.params or {})


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    """What one clustering will do. `missing_partitions`: those a strategy left for a later plan (1.x only)."""

    groups: tuple[ClusteringGroup, ...]
    strategy: ClusteringStrategy | None = None
    extra_metadata: Mapping[str, str] | None = field(default_factory=dict)
    preserve_metadata: bool | None = True
    missing_partitions: tuple[str, ...] | None = ()

    @property
    def sort_order(self) -> SortOrder | None:
        """How the rows of each group are to be sorted; None: as they come. Raises as `parse_sort_order`."""
        return None if self.strategy is None else self.strategy.sort_order

    def sort_order_of(self, group: ClusteringGroup) -> SortOrder | None:
        """How the rows of one of its groups are to be sorted, which may say so itself (ours do: Hudi reads past it);
        None: as they come. Raises as `parse_sort_order`.
        """
        said = group.extra_metadata or {}
        return parse_sort_order(said) if SORT_COLUMNS in said else self.sort_order

    @property
    def slices(self) -> tuple[ClusteringSlice, ...]:
        """Every slice that is read, in the plan's order."""
        return tuple(part for group in self.groups for part in group.slices)

    @property
    def group_ids(self) -> tuple[tuple[str, str], ...]:
        """(partition path, file id) of every file group that is replaced, in the plan's order."""
        return tuple(part.group_id for part in self.slices)

    def noting(self, more: Mapping[str, str]) -> ClusteringPlan:
        """The plan with more extra metadata."""
        return replace(self, extra_metadata={**(self.extra_metadata or {}), **more})


def clustering_values(plan: ClusteringPlan, generation: AvroGeneration) -> dict[str, Any]:
    """The Avro record of a plan."""
    return {
        "inputGroups": [_group_values(group) for group in plan.groups],
        "strategy": None if plan.strategy is None else _strategy_values(plan.strategy),
        "extraMetadata": dict_of(plan.extra_metadata),
        "version": _VERSION,
        "preserveHoodieMetadata": plan.preserve_metadata,
        **missing_values(plan.missing_partitions, generation),
    }


def parse_clustering(record: Mapping[str, Any], path: str) -> ClusteringPlan:
    """The plan in a decoded Avro record; `path` is the file it stands in.

    Raises:
        Corrupt: a member is of another type, or names no file or partition of the table.
    """
    strategy = typed(record, "strategy", dict, path)
    return ClusteringPlan(
        groups=tuple(_parse_group(group, path) for group in records_of(record, "inputGroups", path)),
        strategy=None if strategy is None else _parse_strategy(strategy, path),
        extra_metadata=texts_by_text(record, "extraMetadata", path),
        preserve_metadata=typed(record, "preserveHoodieMetadata", bool, path),
        missing_partitions=parse_missing(record, path),
    )


def _group_values(group: ClusteringGroup) -> dict[str, Any]:
    return {
        "slices": [_slice_values(part) for part in group.slices],
        "metrics": dict_of(group.metrics),
        "numOutputFileGroups": group.outputs,
        "extraMetadata": dict_of(group.extra_metadata),
        "version": _VERSION,
    }


def _parse_group(record: Mapping[str, Any], path: str) -> ClusteringGroup:
    return ClusteringGroup(
        slices=tuple(_parse_slice(part, path) for part in records_of(record, "slices", path)),
        outputs=typed(record, "numOutputFileGroups", int, path),
        metrics=numbers_by_text(record, "metrics", path),
        extra_metadata=texts_by_text(record, "extraMetadata", path),
    )


def _slice_values(part: ClusteringSlice) -> dict[str, Any]:
    return {
        "dataFilePath": part.data_file,
        "deltaFilePaths": list(part.log_files),
        "fileId": part.file_id,
        "partitionPath": part.partition,
        "bootstrapFilePath": part.bootstrap_file,
        "version": _VERSION,
    }


def _parse_slice(record: Mapping[str, Any], path: str) -> ClusteringSlice:
    data_file = typed(record, "dataFilePath", str, path)
    log_files = texts_of(record, "deltaFilePaths", path)
    for file in (*((data_file,) if data_file else ()), *log_files):
        inside_table(_name(file), "a file of a slice", path)
    return ClusteringSlice(
        partition=folder_of(record, "partitionPath", path),
        file_id=text_of(record, "fileId", path),
        data_file=data_file,
        log_files=log_files,
        bootstrap_file=typed(record, "bootstrapFilePath", str, path),
    )


def _strategy_values(strategy: ClusteringStrategy) -> dict[str, Any]:
    return {
        "strategyClassName": strategy.class_name,
        "strategyParams": dict_of(strategy.params),
        "version": _VERSION,
    }


def _parse_strategy(record: Mapping[str, Any], path: str) -> ClusteringStrategy:
    return ClusteringStrategy(
        typed(record, "strategyClassName", str, path), texts_by_text(record, "strategyParams", path)
    )


def _name(file: str) -> str:
    return file.rpartition("/")[2]
