"""Which indexes the metadata table of a version can have, and what they are there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

IndexVersion = Literal["V1", "V2"]


@dataclass(frozen=True, slots=True)
class IndexRules:
    """The indexes of one version of the format.

    `version`: what new indexes are: in V2 statistics name their types, and secondary indexes are spread by value.
    `only`: the partitions of the metadata table that exist; None for all, those with names given by users too.
    `has_partitioned_record_index`: a record index may be cut by the table's partitions.
    `column_stats_by_default`: tables get column statistics unless they are told not to.
    `covers_every_column`: statistics of no column in particular are of all of them, meta columns too; otherwise of the
    first ones.
    `covers_bytes`: V1 statistics have bounds of bytes and decimals.
    `is_built_beside_writes`: writers get along with a partition that is announced and has no groups or records yet.
    """

    version: IndexVersion
    only: frozenset[str] | None
    has_partitioned_record_index: bool
    column_stats_by_default: bool
    covers_every_column: bool
    covers_bytes: bool
    is_built_beside_writes: bool

    def can_have(self, partition: str) -> bool:
        """Whether the metadata table can have this partition."""
        return self.only is None or partition in self.only
