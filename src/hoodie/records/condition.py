"""What of a filter can be told from statistics and indexes: columns compared with constants, joined by AND and OR.

1. A condition says less than the filter it stands for: where it is false, the filter is not true. What has no place
   here (functions nobody indexed, comparisons of two columns) is `ANYTHING`.
2. There is no NOT: it was pushed down to the comparisons. Rows with a null are not kept by any but `is null`.
3. `function` is applied to the column before it is compared, by the name it has in Spark SQL.

It knows neither SQL (`filters.conditions`) nor statistics (`metadata.ranges`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "in", "starts with", "is null", "is not null"]


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """`function(column) operator values`. `column` is a path with dots; `values` has one value, any number for `in`,
    none for the null tests, in the type the column is compared in.
    """

    column: str
    operator: Operator
    values: pa.Array
    function: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class AllOf:
    """All parts hold. Without parts: no restriction."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AnyOf:
    """One of the parts holds."""

    parts: tuple[Condition, ...]


Condition = Comparison | AllOf | AnyOf

ANYTHING: Final = AllOf(())
"""May hold for every row."""


def all_of(*parts: Condition) -> Condition:
    """The conjunction, flat and without parts that say nothing."""
    flat = tuple(single for part in parts for single in (part.parts if isinstance(part, AllOf) else (part,)))
    if len(flat) == 1:
        return flat[0]
    return AllOf(flat) if flat else ANYTHING


def any_of(*parts: Condition) -> Condition:
    """The disjunction; says nothing when one of its parts does."""
    if any(isinstance(part, AllOf) and not part.parts for part in parts):
        return ANYTHING
    return parts[0] if len(parts) == 1 else AnyOf(parts)


def conjuncts(condition: Condition) -> tuple[Condition, ...]:
    """Conditions that must all hold."""
    return condition.parts if isinstance(condition, AllOf) else (condition,)
