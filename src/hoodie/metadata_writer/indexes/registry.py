"""The kinds of metadata indexes there are. Callers walk them; nobody else knows one from another."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from hoodie.errors import Invalid
from hoodie.metadata import FILES, IndexDefinition
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.indexes import (
    bloom_filters,
    column_stats,
    expression_index,
    files,
    partition_stats,
    record_index,
    secondary_index,
)
from hoodie.metadata_writer.metadata_index import IndexRequest, MetadataIndex, MetadataIndexKind
from hoodie.state.handle import TableHandle

KINDS: Final[tuple[MetadataIndexKind, ...]] = (
    files.KIND,
    record_index.KIND,
    secondary_index.KIND,
    column_stats.KIND,
    partition_stats.KIND,
    bloom_filters.KIND,
    expression_index.KIND,
)
"""Each behind those that it needs. Definitions of new indexes are stored in this order."""


def kind_of(partition: str) -> MetadataIndexKind:
    """The kind of a partition of the metadata table.

    Raises:
        Invalid: there is no such kind.
    """
    found = next((kind for kind in KINDS if kind.owns(partition)), None)
    if found is None:
        known = ", ".join(f"{kind.name}..." if kind.is_named else kind.name for kind in KINDS)
        raise Invalid(f"The metadata table has no partition {partition!r}", remedy=f"There are {known}")
    return found


def index_of(partition: str, context: IndexContext) -> MetadataIndex | None:
    """The index of a partition; None for one that nobody here can maintain."""
    found = next((kind for kind in KINDS if kind.owns(partition)), None)
    return None if found is None else found.open(partition, context)


def ordered(partitions: Iterable[str]) -> tuple[str, ...]:
    """Partitions in the order they are made and written: `files` first, then by name."""
    return tuple(sorted(set(partitions), key=lambda name: (name != FILES, name)))


def is_named(partition: str) -> bool:
    """Whether a partition has a name that a user gave, and nothing but its definition says what it indexes."""
    return any(kind.is_named and kind.owns(partition) for kind in KINDS)


def partition_names(name: str) -> tuple[str, ...]:
    """The partitions that users may mean by a name: it may lack the prefix of its kind."""
    return (name, *(kind.name + name for kind in KINDS if kind.is_named))


def dependents(names: Collection[str], candidates: Iterable[str]) -> set[str]:
    """Those of the candidates that are of no use without the partitions."""
    gone, places = set(names), list(candidates)
    for kind in KINDS:
        if gone.intersection(kind.needs):
            gone.update(filter(kind.owns, places))
    return gone.difference(names)


def ensure_possible(handle: TableHandle, partition: str, definition: IndexDefinition | None) -> None:
    """Checks that the table can have an index, whatever its columns are. `definition`: as it shall be.

    Raises:
        Invalid, Unsupported: it cannot.
    """
    if not handle.profile.indexes.can_have(partition):
        raise Invalid(
            f"Tables of version 6 cannot have the index {partition}",
            remedy="Upgrade the table first, or leave the index out",
            index=partition,
        )
    kind_of(partition).ensure_possible(handle, definition)


def describe_index(request: IndexRequest) -> IndexDefinition:
    """The definition of the index that somebody asks for.

    Raises:
        Invalid, Unsupported: there can be none like it.
    """
    whole = [kind for kind in KINDS if not kind.is_named]
    for kind in whole:
        if (described := kind.described(request)) is not None:
            return described
    if len(request.columns) != 1:
        raise Invalid(
            f"The index {request.name} needs one column",
            remedy="Name it: --column, in Python the argument after the name. The indexes of the whole table are "
            + ", ".join(kind.name for kind in whole if kind.name != FILES),
            columns=request.columns,
        )
    return next(found for kind in KINDS if kind.is_named and (found := kind.described(request)) is not None)
