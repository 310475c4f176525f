"""Which file slices a clustering replaces, in which groups: from slices to a plan. Pure.

1. A slice is taken when its base file is below the limit for small files, whatever its log. Slices are packed one after
   the other into groups of at most so many bytes.
2. A group of one slice is worth rewriting when that sorts its rows, merges its log or splits it. One that was sorted
   the same way before has nothing to gain and is left out; Hudi rewrites it with each plan.
3. A plan has a limited number of groups. Partitions take turns, so that none starves behind a larger one; those that
   are cut short are named in the plan, as by Hudi.
4. Metrics and members are those of Hudi (docs/format/clustering.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hoodie.services.clustering.options import ClusterOptions
from hoodie.spec import ClusteringGroup, ClusteringPlan, ClusteringSlice, ClusteringStrategy
from hoodie.view import FileSlice, GroupId

EXECUTOR = "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class GroupOfSlices:
    """Slices of one partition whose rows go to `outputs` new file groups."""

    partition: str
    slices: tuple[FileSlice, ...]
    outputs: int

    @property
    def size_bytes(self) -> int:
        """Size of all files that are read."""
        return sum(part.size_bytes for part in self.slices)


def plan_groups(
    slices: Iterable[FileSlice], options: ClusterOptions, sorted_already: Collection[GroupId] = ()
) -> tuple[tuple[GroupOfSlices, ...], tuple[str, ...]]:
    """The groups to rewrite, in the order of partitions, and the partitions of which groups were left out.

    `slices` are those that nothing else is about to rewrite; `sorted_already` the groups whose rows lie in the wanted
    order.
    """
    by_partition: dict[str, list[FileSlice]] = {}
    for part in slices:
        if _base_bytes(part) < options.small_file_bytes:
            by_partition.setdefault(part.partition, []).append(part)
    found = {name: _packed(parts, options, sorted_already) for name, parts in by_partition.items()}
    turns = sorted((at, number) for number, groups in enumerate(found.values()) for at in range(len(groups)))
    kept = set(turns[: options.max_groups])
    chosen, missing = [], []
    for number, (name, groups) in enumerate(found.items()):
        taken = [group for at, group in enumerate(groups) if (at, number) in kept]
        chosen += taken
        if len(taken) < len(groups):
            missing.append(name)
    return tuple(chosen), tuple(missing)


def _packed(parts: Sequence[FileSlice], options: ClusterOptions, done: Collection[GroupId]) -> list[GroupOfSlices]:
    ordered = list(parts)
    for key in reversed(options.by):
        if key == "SIZE":
            ordered.sort(key=lambda part: -part.size_bytes)
        else:
            ordered.sort(key=lambda part: "" if part.base is None else part.base.name.instant)
    groups: list[list[FileSlice]] = []
    held = 0
    for part in ordered:
        if groups and not options.is_single_file and held + part.size_bytes <= options.max_group_bytes:
            groups[-1].append(part)
            held += part.size_bytes
        else:
            groups.append([part])
            held = part.size_bytes
    found = []
    for group in groups:
        size = sum(part.size_bytes for part in group)
        outputs = 1 if options.is_single_file else max(1, -(-size // options.target_bytes))
        if len(group) > 1 or _is_worth_it(group[0], outputs, options, done):
            found.append(GroupOfSlices(group[0].partition, tuple(group), outputs))
    return found


def _is_worth_it(part: FileSlice, outputs: int, options: ClusterOptions, done: Collection[GroupId]) -> bool:
    if not options.takes_single_slices and options.order is None:
        return False
    is_unsorted = options.order is not None and part.group_id not in done
    return is_unsorted or bool(part.logs) or outputs > 1


def clustering_plan(
    groups: Sequence[GroupOfSlices],
    missing: Sequence[str],
    options: ClusterOptions,
    absolute: Callable[[str], str],
    sources: Mapping[GroupId, str],
) -> ClusteringPlan:
    """The plan of `groups`. `absolute` gives the full path of a file of the table; `sources`: full paths of the source
    files of bootstrap skeletons.
    """
    params = {} if options.order is None else options.order.params()
    planned = []
    for group in groups:
        parts = tuple(_slice(part, absolute, sources) for part in group.slices)
        metrics = _metrics(group.slices, options.max_file_bytes)
        planned.append(ClusteringGroup(slices=parts, outputs=group.outputs, metrics=metrics))
    return ClusteringPlan(tuple(planned), ClusteringStrategy(EXECUTOR, params), missing_partitions=tuple(missing))


def _slice(part: FileSlice, absolute: Callable[[str], str], sources: Mapping[GroupId, str]) -> ClusteringSlice:
    return ClusteringSlice(
        part.partition,
        part.file_id,
        "" if part.base is None else absolute(part.base.path),
        tuple(absolute(log.path) for log in reversed(part.logs)),
        sources.get(part.group_id, ""),
    )


def _metrics(parts: Sequence[FileSlice], max_file_bytes: int) -> dict[str, float]:
    logs = [log for part in parts for log in part.logs]
    read = sum(part.size_bytes // _MIB for part in parts)
    write = sum((max_file_bytes if part.base is None else part.base.size_bytes) // _MIB for part in parts)
    return {
        "TOTAL_IO_READ_MB": float(read),
        "TOTAL_IO_WRITE_MB": float(write),
        "TOTAL_IO_MB": float(read + write),
        "TOTAL_LOG_FILES_SIZE": float(sum(log.size_bytes for log in logs)),
        "TOTAL_LOG_FILES": float(len(logs)),
    }


def _base_bytes(part: FileSlice) -> int:
    return 0 if part.base is None else part.base.size_bytes
