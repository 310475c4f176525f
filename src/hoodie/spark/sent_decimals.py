"""Decimals on their way from Spark to Python: digits go as longs, so that the JVM makes no object for each value.

1. Only decimals of at most 18 digits, at the top level of a frame; others go as they are.
2. The worker makes them decimals again: `worker.with_schema` does so wherever the schema has a decimal for a long.
3. The function that takes the digits is a class of Catalyst; in a Spark without it frames go as they are.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass

from hoodie.spark.sql_text import quoted
from hoodie.spark.worker_scan import is_short, loaded_class

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UNSCALED = "org.apache.spark.sql.catalyst.expressions.UnscaledValue"
_COLUMNS = "org.apache.spark.sql.classic.ExpressionUtils"


def with_unscaled(frame: DataFrame) -> DataFrame:
    """`frame` with longs in place of its short decimals: the same columns in the same order."""
    short = [is_short(field.dataType) for field in frame.schema.fields]
    jvm: Any = frame.sparkSession._jvm
    if not any(short) or not _has_functions(jvm):
        return frame
    from pyspark.sql.classic.column import Column  # noqa: PLC0415 - not every session and worker has to load it

    unscaled, columns = (JavaClass(name, jvm._gateway_client) for name in (_UNSCALED, _COLUMNS))
    sent: list[Any] = []
    for name, as_long in zip(frame.columns, short, strict=True):
        column: Any = frame[quoted(name)]
        if as_long:
            column = Column(columns.column(unscaled(columns.expression(column._jc)))).alias(name)
        sent.append(column)
    return frame.select(*sent)


@functools.cache
def _has_functions(jvm: Any) -> bool:
    """Whether this Spark has the classes where they are expected."""
    try:
        for name in (_UNSCALED, f"{_COLUMNS}$"):
            loaded_class(jvm, name)
    except Exception:  # py4j's error around ClassNotFoundException
        return False
    return True
