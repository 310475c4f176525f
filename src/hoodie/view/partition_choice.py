"""Which partitions of a table are wanted, said before their names are known."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol


class PartitionChoice(Protocol):
    """Chooses partitions by their paths. Pure, and the same answer for the same path whoever else is asked about."""

    def of(self, partitions: Collection[str]) -> frozenset[str]:
        """Those of the partitions that are wanted."""
        ...

    def worth_listing(self, folders: Collection[str]) -> frozenset[str]:
        """Those of the folders that are a wanted partition, or in which one may lie at any depth."""
        ...
