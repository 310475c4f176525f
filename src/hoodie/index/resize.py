"""Which ranges of a consistent hashing index are to be split or merged: a pure plan over sizes.

1. A node whose files are larger than `split_bytes` is cut in the middle of its range, as long as the ring has fewer
   than `most` nodes.
2. Neighbours whose files are not larger than `merge_bytes` each become one node, the last of them, as long as what was
   gathered before is not larger either and the ring keeps at least `fewest` nodes.
3. Nodes that are neither stay as they are. A node without file group is not looked at.

Hudi rewrites the other nodes of a partition, too; their names do not change what a key's node is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from hoodie.index.hash_ring import LAST_HASH, HashNode, HashRing


@dataclass(frozen=True, slots=True)
class ResizeLimits:
    """When nodes are split and merged: bytes of a file group, and how many nodes a ring may have."""

    split_bytes: int
    merge_bytes: int
    fewest: int
    most: int


@dataclass(frozen=True, slots=True)
class Resize:
    """One change of a ring: `numbers` are the nodes whose file groups are read, `children` what becomes of the ring."""

    action: Literal["split", "merge"]
    numbers: tuple[int, ...]
    children: tuple[HashNode, ...]


def plan_resizes(
    ring: HashRing, sizes: Sequence[int | None], limits: ResizeLimits, fresh_prefix: Callable[[], str]
) -> tuple[Resize, ...]:
    """The changes a ring needs; `sizes` has bytes of the file group of each node, None where there is none."""
    splits: list[Resize] = []
    for number, size in enumerate(sizes):
        if size is not None and size > limits.split_bytes and ring.count + len(splits) < limits.most:
            middle = _middle(ring, number)
            if middle is not None:
                children = (_new(middle, fresh_prefix()), _new(ring.nodes[number].value, fresh_prefix()))
                splits.append(Resize("split", (number,), children))
    spare = ring.count + len(splits) - limits.fewest
    merges: list[Resize] = []
    for run in _small_runs(sizes, limits.merge_bytes):
        chosen = run[: max(0, spare) + 1]
        if len(chosen) > 1:
            spare -= len(chosen) - 1
            gone = tuple(HashNode(ring.nodes[number].value, None, "DELETE") for number in chosen[:-1])
            merges.append(Resize("merge", chosen, (*gone, _new(ring.nodes[chosen[-1]].value, fresh_prefix()))))
    return (*splits, *merges)


def _new(value: int, prefix: str) -> HashNode:
    return HashNode(value, prefix, "REPLACE")


def _middle(ring: HashRing, number: int) -> int | None:
    """The hash in the middle of a node's range; None for a range that cannot be cut."""
    end, start = ring.nodes[number].value, ring.nodes[number - 1].value
    # The range of the first node begins after the last one and goes over the top.
    middle = ((start + end + (0 if start < end else LAST_HASH + 1)) >> 1) & LAST_HASH
    return None if middle in (start, end) else middle


def _small_runs(sizes: Sequence[int | None], merge_bytes: int) -> list[tuple[int, ...]]:
    runs: list[tuple[int, ...]] = []
    run: list[int] = []
    gathered = 0
    for number, size in enumerate(sizes):
        is_small = size is not None and size <= merge_bytes
        if run and not (is_small and gathered <= merge_bytes):
            runs.append(tuple(run))
            run, gathered = [], 0
        if is_small and size is not None:
            run.append(number)
            gathered += size
    return [*runs, tuple(run)] if run else runs
