"""Which file slices a clustering replaces, in which groups: from slices to a plan. Pure.

1. A slice is taken when its base file is below the limit for small files, whatever its log, unless the strategy takes
   any size. The strategy says which go together, partition by partition (`plan_strategy`).
2. A group of one slice is worth rewriting when that sorts its rows, merges its log or splits it. One that was sorted
   the same way before has nothing to gain and is left out; Hudi rewrites it with each plan.
3. A plan has a limited number of groups. Partitions take turns, so that none starves behind a larger one, unless the
   groups have an order of their own; partitions that are cut short are named in the plan, as by Hudi.
4. Metrics and members are those of Hudi (docs/format/clustering.md), and the ranges of columns that are known: numbers
   among the metrics, texts in the group's extra metadata. Hudi reads past both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hoodie.services.clustering.options import ClusterOptions
from hoodie.services.clustering.overlap import ValueRange, mean_depth
from hoodie.services.clustering.partition_orders import group_params, own_order_of
from hoodie.services.clustering.plan_strategy import GroupOfSlices, PlanFacts, RangesOf
from hoodie.spec import ClusteringGroup, ClusteringPlan, ClusteringSlice, ClusteringStrategy
from hoodie.view import FileSlice, GroupId

_MIB = 1 << 20
_TEXT_BYTES = 256
"""A bound of text is for people: a longer one is left out."""


@dataclass(frozen=True, slots=True)
class GroupedSlices:
    """The groups of a plan in its order, the partitions of which groups were left out, and the slices of these."""

    groups: tuple[GroupOfSlices, ...]
    missing: tuple[str, ...]
    cut: tuple[FileSlice, ...]


def plan_groups(
    slices: Iterable[FileSlice],
    options: ClusterOptions,
    sorted_already: Collection[GroupId] = (),
    facts: PlanFacts | None = None,
) -> GroupedSlices:
    """The groups to rewrite.

    `slices` are those that nothing else is about to rewrite; `sorted_already` the groups whose rows lie in the wanted
    order; `facts` what the strategy needs to know.
    """
    known = facts or PlanFacts()
    by_partition: dict[str, list[FileSlice]] = {}
    any_size = options.strategy.needs.any_size
    for part in slices:
        if any_size or _base_bytes(part) < options.small_file_bytes:
            by_partition.setdefault(part.partition, []).append(part)
    found = [one for parts in by_partition.values() for one in _grouped(parts, options, sorted_already, known)]
    kept = _kept(found, options, known.ranges)
    chosen = {id(one) for one in kept}
    cut = [one for one in found if id(one) not in chosen]
    missing = tuple(dict.fromkeys(one.partition for one in cut))
    return GroupedSlices(tuple(kept), missing, tuple(part for one in cut for part in one.slices))


def _grouped(
    parts: Sequence[FileSlice], options: ClusterOptions, done: Collection[GroupId], facts: PlanFacts
) -> list[GroupOfSlices]:
    found = []
    for group in options.strategy.arrange(parts, facts):
        size = sum(part.size_bytes for part in group)
        outputs = 1 if options.is_single_file else max(1, -(-size // options.target_bytes))
        if len(group) >= options.min_files and (len(group) > 1 or _is_worth_it(group[0], outputs, options, done)):
            ranges = joined_ranges([facts.ranges.get(part.group_id, {}) for part in group])
            order = options.sort_order_in(group[0].partition)
            found.append(GroupOfSlices(group[0].partition, tuple(group), outputs, order, ranges))
    return found


def _kept(found: Sequence[GroupOfSlices], options: ClusterOptions, ranges: RangesOf) -> list[GroupOfSlices]:
    """Those of the groups that the plan has, in its order."""
    chosen = list(options.strategy.choose(found))
    is_as_found = len(chosen) == len(found) and all(a is b for a, b in zip(chosen, found, strict=True))
    if options.groups_by == "PARTITION" and is_as_found:
        return _in_turns(chosen, options.max_groups)
    match options.groups_by:
        case "BYTES":
            chosen.sort(key=lambda one: -one.size_bytes)
        case "FILES":
            chosen.sort(key=lambda one: -len(one.slices))
        case "OVERLAP":
            chosen.sort(key=lambda one: -group_depth(one, ranges))
        case _:
            pass
    return chosen[: options.max_groups]


def _in_turns(groups: Sequence[GroupOfSlices], limit: int) -> list[GroupOfSlices]:
    """So many of the groups, in their order: the first of each partition, then the second, and so on."""
    seen: dict[str, int] = {}
    turns = []
    for place, one in enumerate(groups):
        turns.append((seen.get(one.partition, 0), place))
        seen[one.partition] = seen.get(one.partition, 0) + 1
    return [groups[place] for place in sorted(place for _, place in sorted(turns)[:limit])]


def group_depth(group: GroupOfSlices, ranges: RangesOf) -> float:
    """How many slices of the group a look-up reads, on average, by all columns whose range is known of each."""
    columns = tuple(group.ranges)
    return mean_depth([[ranges[part.group_id][name] for name in columns] for part in group.slices]) if columns else 0.0


def joined_ranges(ranges: Sequence[Mapping[str, ValueRange]]) -> dict[str, ValueRange]:
    """The range of each column over several slices, where it is known of each of them."""
    found: dict[str, ValueRange] = {}
    for name in ranges[0] if ranges else ():
        if all(name in one for one in ranges):
            whole = ranges[0][name]
            for one in ranges[1:]:
                whole = whole.union(one[name])
            found[name] = whole
    return found


def _is_worth_it(part: FileSlice, outputs: int, options: ClusterOptions, done: Collection[GroupId]) -> bool:
    is_sorted = options.row_order_in(part.partition) is None
    if not options.takes_single_slices and is_sorted:
        return False
    is_unsorted = not is_sorted and part.group_id not in done
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
    order = {} if options.order is None else options.order.params()
    planned = []
    for group in groups:
        parts = tuple(_slice(part, absolute, sources) for part in group.slices)
        numbers, texts = _bounds(group.ranges)
        metrics = _metrics(group.slices, options.max_file_bytes) | numbers
        said = texts | group_params(own_order_of(options.partition_orders, group.partition))
        planned.append(
            ClusteringGroup(slices=parts, outputs=group.outputs, metrics=metrics, extra_metadata=said or None)
        )
    strategy = ClusteringStrategy(options.executor, {**order, **options.said})
    return ClusteringPlan(tuple(planned), strategy, missing_partitions=tuple(missing))


def _bounds(ranges: Mapping[str, ValueRange]) -> tuple[dict[str, float], dict[str, str]]:
    """Least and greatest values as metrics and as texts: `min.<column>`, `max.<column>`."""
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    for name, one in ranges.items():
        for which, bound in (("min", one.low), ("max", one.high)):
            if isinstance(bound, bool | int | float):
                numbers[f"{which}.{name}"] = float(bound)
            elif len(bound) <= _TEXT_BYTES:
                texts[f"{which}.{name}"] = bound if isinstance(bound, str) else bound.hex()
    return numbers, texts


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
