"""Refuses statements that would write into a view of a Hudi table, before Spark looks at them.

Spark lets `INSERT` write into a temporary view when the view is nothing but files: it deletes the folder, or adds files
of its own to it, and knows nothing of commits. Three fences keep it away from a table:

1. A scan of ours never stands alone in a DataFrame: a projection is above it, and Spark's analyzer writes into bare
   relations only. The optimizer takes it away, so plans are what they would be without it.
2. The file index of a native scan names its root twice: Spark writes into relations of one root only. The relation of a
   worker scan can read and nothing else.
3. Here, for the sake of the message: the others fail with whatever words Spark has for the case.

A statement that is not understood here (a script, `IDENTIFIER(...)`, a template) goes on to the first two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from hoodie.errors import Unsupported
from hoodie.spark.sql_text import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE_INDEX: Final = "HudiFileIndex"
"""How the text of our file index begins."""

WORKER_TABLE: Final = "WorkerTable"
"""How the text of our table of the DataSource V2 interfaces begins."""

_MAY_WRITE = re.compile(r"\b(?:INSERT|DELETE|UPDATE|MERGE)\b", re.IGNORECASE)
_TARGETS: Final = {
    "InsertIntoStatement": "table",
    "AppendData": "table",
    "OverwriteByExpression": "table",
    "OverwritePartitionsDynamic": "table",
    "DeleteFromTable": "table",
    "UpdateTable": "table",
    "MergeIntoTable": "targetTable",
}
"""Nodes of Spark's plans that write, and what they call the place."""


def ensure_no_view_is_changed(spark: SparkSession, sql: str) -> None:
    """Checks that the statement does not write into a temporary view of a Hudi table.

    Raises:
        Unsupported: it does.
    """
    if _MAY_WRITE.search(sql) is None:
        return
    from py4j.protocol import Py4JError  # noqa: PLC0415 - not every session and worker has to load it
    from pyspark.errors import PySparkException  # noqa: PLC0415 - not every session and worker has to load it

    try:
        plan = _state(spark).sqlParser().parsePlan(sql)
        targets = list(_targets(plan))
    except (PySparkException, Py4JError):  # Spark will say what is wrong with it
        return
    for target in targets:
        _ensure_no_view(spark, target)


def ensure_no_view(spark: SparkSession, name: str) -> None:
    """Checks that `name`, as Spark's writers take it, is not a temporary view of a Hudi table.

    Raises:
        Unsupported: it is one.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415 - not every session and worker has to load it
    from pyspark.errors import PySparkException  # noqa: PLC0415 - not every session and worker has to load it

    try:
        parts = _state(spark).sqlParser().parseMultipartIdentifier(name)
    except (PySparkException, Py4JError):
        return
    _ensure_no_view(spark, parts)


def _ensure_no_view(spark: SparkSession, name: Any) -> None:
    """`name` is a Scala sequence."""
    if not _state(spark).catalog().isTempView(name):
        return
    parts = [str(part) for part in _elements(name)]
    view = spark.table(".".join(quoted(part) for part in parts))._jdf.queryExecution().analyzed()
    if any(_is_ours(leaf) for leaf in _elements(view.collectLeaves())):
        raise Unsupported(
            f"{'.'.join(parts)} is a view of a Hudi table, and Spark cannot write to it",
            remedy='Write by path: df.write.format("hudi").mode("append").save(path), or with hoodie.Table',
        )


def _targets(plan: Any) -> Iterator[Any]:
    """Names of what a parsed statement writes into, as Scala sequences."""
    nodes = [plan]
    while nodes:
        node = nodes.pop()
        nodes += _elements(node.children())
        place = _TARGETS.get(str(node.nodeName()))
        if place is not None:
            leaves = _elements(getattr(node, place)().collectLeaves())
            yield from (leaf.multipartIdentifier() for leaf in leaves if str(leaf.nodeName()) == "UnresolvedRelation")


def _is_ours(leaf: Any) -> bool:
    match str(leaf.getClass().getSimpleName()):
        case "LogicalRelation" if str(leaf.relation().getClass().getSimpleName()) == "HadoopFsRelation":
            return str(leaf.relation().location().toString()).startswith(f"{FILE_INDEX}(")
        case "DataSourceV2Relation":
            return str(leaf.table().toString()).startswith(f"{WORKER_TABLE}(")
    return False


def _state(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState()


def _elements(seq: Any) -> list[Any]:
    return [seq.apply(at) for at in range(seq.size())]
