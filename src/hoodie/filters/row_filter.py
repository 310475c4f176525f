"""The condition rows must meet, cut into the parts that can be decided early.

1. A filter is a conjunction. Each conjunct knows the columns it looks at, so a part of it can be decided from partition
   values alone, another from the statistics of a file, and the rest from rows.
2. Whatever was decided early is decided again on rows: pruning may only leave out what cannot match, never let through
   less.
3. Rows for which the condition is NULL do not match, as in SQL.

It does not know SQL (see `sql`) or files.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.records.condition import ANYTHING, Condition
from hoodie.records.condition import all_of as all_conditions
from hoodie.records.filter_error import filter_failed


@dataclass(frozen=True, slots=True, eq=False)
class Conjunct:
    """One condition and the top-level columns it looks at. `condition`: what statistics and indexes can tell of it."""

    expression: pc.Expression
    columns: frozenset[str]
    condition: Condition = ANYTHING


@dataclass(frozen=True, slots=True, eq=False)
class RowFilter:
    """All conjuncts must hold. `text` is how the user wrote it."""

    conjuncts: tuple[Conjunct, ...]
    text: str

    @property
    def columns(self) -> frozenset[str]:
        """Columns that must be read to decide the whole filter."""
        return frozenset().union(*(part.columns for part in self.conjuncts))

    @property
    def expression(self) -> pc.Expression:
        """The whole condition."""
        return all_of(part.expression for part in self.conjuncts)

    @property
    def condition(self) -> Condition:
        """What statistics and indexes can tell of the whole condition."""
        return all_conditions(*(part.condition for part in self.conjuncts))

    def decidable_with(self, columns: Collection[str]) -> pc.Expression | None:
        """The conjuncts that look at nothing but `columns` (and at least at one of them); None when there are none."""
        found = self.part_over(columns)
        return None if found is None else found.expression

    def part_over(self, columns: Collection[str]) -> Conjunct | None:
        """The same as one conjunct, which knows its columns."""
        known = frozenset(columns)
        return both(*(part for part in self.conjuncts if part.columns and part.columns <= known))


def filter_of(expression: pc.Expression, schema: pa.Schema) -> RowFilter:
    """The filter of an Arrow expression over the columns of `schema`, as one conjunct.

    Raises:
        Invalid: the expression does not fit the schema or does not give a boolean.
    """
    empty = schema.empty_table()
    try:
        empty.filter(expression)
    except (pa.ArrowException, TypeError) as error:
        raise Invalid(
            f"The filter {expression} cannot be applied: {str(error).splitlines()[0]}",
            remedy="Compare columns with values of their own type, or cast one side",
        ) from error
    return RowFilter((Conjunct(expression, _columns_of(expression, empty)),), str(expression))


def joined(filters: Sequence[RowFilter]) -> RowFilter | None:
    """All filters as one; None when there is none."""
    if len(filters) <= 1:
        return filters[0] if filters else None
    conjuncts = tuple(part for one in filters for part in one.conjuncts)
    return RowFilter(conjuncts, " AND ".join(f"({one.text})" for one in filters))


def both(*parts: Conjunct | None) -> Conjunct | None:
    """The parts that are there as one; None when none is."""
    given = [part for part in parts if part is not None]
    if len(given) <= 1:
        return given[0] if given else None
    columns = frozenset[str]().union(*(part.columns for part in given))
    return Conjunct(
        all_of(part.expression for part in given), columns, all_conditions(*(one.condition for one in given))
    )


def all_of(expressions: Iterable[pc.Expression]) -> pc.Expression:
    """The conjunction of at least one expression."""
    return balanced(operator.and_, list(expressions))


def balanced(
    join: Callable[[pc.Expression, pc.Expression], pc.Expression], parts: list[pc.Expression]
) -> pc.Expression:
    """At least one expression, joined in pairs and pairs of pairs: Arrow goes as deep as an expression is."""
    while len(parts) > 1:
        rest = parts[-1:] if len(parts) % 2 else []
        parts = [join(one, two) for one, two in zip(parts[::2], parts[1::2], strict=False)] + rest
    return parts[0]


def matching(rows: pa.Table, expression: pc.Expression) -> pa.Table:
    """The rows for which the condition is true.

    Raises:
        Invalid: the condition cannot be computed over these rows.
    """
    try:
        return rows.filter(expression)
    except (pa.ArrowException, TypeError) as error:
        raise filter_failed(error, "the rows") from error


def _columns_of(expression: pc.Expression, empty: pa.Table) -> frozenset[str]:
    """Columns an expression needs: those without which it cannot be computed. Arrow has no way to ask."""
    needed = set()
    for name in empty.column_names:
        try:
            empty.drop_columns([name]).filter(expression)
        except pa.ArrowException:
            needed.add(name)
    return frozenset(needed)
