"""How large the rows of a DataFrame are at most, as far as Catalyst can tell before it has made them.

1. Catalyst's estimate of a plan is taken only where every node of the plan gives at most as many rows as it is thought
   to: `explode`, Python functions over batches and groups, and scripts pass for as many rows out as in, and may give
   any number.
2. Rows of an RDD (checkpoints, batches of a stream) carry the estimate of a plan that cannot be seen any more, and so
   do cached rows until they are there.
3. An aggregate that collects values into arrays or maps passes for one value a row.
4. Widths of text and arrays are Spark's guesses: a few long values stay unseen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hoodie.spark.engine import is_classic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNKNOWN: Final = 1 << 62
"""More than any limit."""

_BOUNDED: Final = frozenset(
    {
        "LocalRelation", "OneRowRelation", "EmptyRelation", "Range", "LogicalRelation", "HiveTableRelation",
        "DataSourceV2ScanRelation", "InMemoryRelation", "Aggregate", "Deduplicate", "Distinct", "Except", "Filter",
        "GlobalLimit", "Intersect", "Join", "LocalLimit", "Offset", "Project", "RebalancePartitions", "Repartition",
        "RepartitionByExpression", "Sample", "Sort", "SubqueryAlias", "Tail", "Union", "Window", "WindowGroupLimit",
    }
)  # fmt: skip
"""Nodes of optimized plans that give no more rows than their estimate says."""


def max_size_bytes(frame: DataFrame) -> int:
    """Bytes of all rows of `frame`; `UNKNOWN` where nobody can say."""
    if not is_classic(frame.sparkSession):
        return UNKNOWN
    plan = frame._jdf.queryExecution().optimizedPlan()
    return int(str(plan.stats().sizeInBytes())) if _is_bounded(plan) else UNKNOWN


def _is_bounded(plan: Any) -> bool:
    nodes = [plan]
    while nodes:
        node = nodes.pop()
        kind = str(node.getClass().getSimpleName())
        if kind not in _BOUNDED:
            return False
        if kind == "InMemoryRelation" and not node.cacheBuilder().isCachedColumnBuffersLoaded():
            return False
        if kind == "Aggregate" and any(text in node.schema().json() for text in ('"array"', '"map"')):
            return False
        children = node.children()
        nodes += [children.apply(at) for at in range(children.size())]
    return True
