"""The indexes a table can be given, as values: what `build_index` takes.

A definition has no version yet: the table decides about that. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.errors import Invalid
from hoodie.metadata import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX, IndexDefinition
from hoodie.metadata.partitions import EXPRESSION_PREFIX, SECONDARY_PREFIX
from hoodie.metadata_writer.index_functions import parse_function


def record_index(*, partitioned: bool = False) -> IndexDefinition:
    """An index of where each key is: keys are unique in the table, or (`partitioned`) in each of its partitions."""
    options = {"isPartitioned": "true" if partitioned else "false"}
    return IndexDefinition(RECORD_INDEX, RECORD_INDEX, options=options)


def column_stats_index(*columns: str) -> IndexDefinition:
    """An index of value ranges of columns (paths with dots) in every file; without columns of the first ones."""
    return IndexDefinition(COLUMN_STATS, COLUMN_STATS, COLUMN_STATS, columns)


def partition_stats_index() -> IndexDefinition:
    """An index of value ranges over the partitions of a table."""
    return IndexDefinition(PARTITION_STATS, PARTITION_STATS)


def bloom_filters_index() -> IndexDefinition:
    """An index of the bloom filters of base files."""
    return IndexDefinition(BLOOM_FILTERS, BLOOM_FILTERS)


def secondary_index(name: str, column: str) -> IndexDefinition:
    """An index of which rows have a value in a column."""
    return IndexDefinition(_prefixed(SECONDARY_PREFIX, name), "secondary_index", "identity", (column,))


def expression_index(
    name: str, column: str, function: str, options: Mapping[str, str] | None = None, *, using: str = COLUMN_STATS
) -> IndexDefinition:
    """An index of a function of a column, `using` column_stats or bloom_filters. `options`: those of the function.

    Raises:
        Invalid: another kind, or an option the function needs is not there. Unsupported: the function is not known.
    """
    if using not in (COLUMN_STATS, BLOOM_FILTERS):
        raise Invalid(f"An expression index cannot use {using!r}", remedy="Use column_stats or bloom_filters")
    made = parse_function(function, options or {})
    said = {"expr": made.name, **made.options}
    return IndexDefinition(_prefixed(EXPRESSION_PREFIX, name), using, made.name, (column,), said)


def _prefixed(prefix: str, name: str) -> str:
    if not name:
        raise Invalid("An index needs a name")
    return name if name.startswith(prefix) else prefix + name
