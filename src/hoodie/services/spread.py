"""How the files of a table with storage paths are spread over roots and prefixes. Pure: nothing is asked of storage.

1. Each folder in which files of the table may lie is a place, also one that is empty. Where the strategy has no short
   list of prefixes, only those with files are known.
2. Files gather when half of the file groups lie in far fewer prefixes than an even hash would put them in: requests do
   not spread then, whatever the number of prefixes is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hoodie.layout import FederatedStorage, Layout
from hoodie.layout.places import places_of
from hoodie.storage import Storage
from hoodie.view import PartitionFiles

MANY_GROUPS: Final = 100
"""File groups below which nothing is said of how they are spread."""
_FAR_FEWER: Final = 8


@dataclass(frozen=True, slots=True)
class PlaceSizes:
    """What lies under one prefix of one root; both are empty texts for what lies at the table path."""

    root: str
    prefix: str
    file_groups: int
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Spread:
    """The places of a table by root and prefix. `prefixes`: how many the newest strategy for all partitions has over
    its roots, 0 where they are not counted.
    """

    places: tuple[PlaceSizes, ...]
    prefixes: int

    @property
    def file_groups(self) -> int:
        return sum(one.file_groups for one in self.places)

    @property
    def crowded(self) -> int:
        """In how many places half of the file groups lie."""
        left, count = self.file_groups / 2, 0
        for groups in sorted((one.file_groups for one in self.places), reverse=True):
            if left <= 0:
                break
            left -= groups
            count += 1
        return count

    @property
    def is_gathered(self) -> bool:
        """Whether files gather in few of the prefixes they could have."""
        usable = min(self.prefixes, self.file_groups)
        return self.file_groups >= MANY_GROUPS and self.crowded < usable / _FAR_FEWER

    @property
    def left_at_home(self) -> int:
        """File groups with files at the table path."""
        return sum(one.file_groups for one in self.places if not one.root)


def spread_of(storage: Storage, found: Iterable[PartitionFiles]) -> Spread | None:
    """The spread of a table's files; None of a table without storage paths."""
    layout = storage.layout if isinstance(storage, FederatedStorage) else None
    if layout is None:
        return None
    files = [(part.partition, file) for part in found for file in (*part.everything, *part.changes)]
    paths = [file.path for _, file in files]
    places = places_of(layout, paths)
    tallies = {(source.root, source.prefix): _Tally() for source in layout.sources if source.prefix is not None}
    for (partition, file), root, key in zip(files, places.roots, places.keys, strict=True):
        prefix, slash, _ = key[: -len(file.path) - 1].partition("/")
        tally = tallies.setdefault((root, prefix if slash and root >= 0 else ""), _Tally())
        tally.groups.add((partition, file.name.file_id))
        tally.files += 1
        tally.size_bytes += file.size_bytes
    shown = sorted(tallies.items())
    return Spread(
        tuple(
            PlaceSizes(layout.roots[root] if root >= 0 else "", prefix, len(one.groups), one.files, one.size_bytes)
            for (root, prefix), one in shown
        ),
        _prefixes(layout),
    )


class _Tally:
    """What was counted of one place."""

    def __init__(self) -> None:
        self.groups: set[tuple[str, str]] = set()
        self.files = 0
        self.size_bytes = 0


def _prefixes(layout: Layout) -> int:
    newest = next((one for one in reversed(layout.versions) if not one.partitions), None)
    prefixes = None if newest is None else newest.strategy.prefixes
    return 0 if newest is None or prefixes is None else len(prefixes) * len(newest.roots)
