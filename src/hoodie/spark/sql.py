"""`spark.sql` on Hudi tables: queries by path and temporary views. The text itself is looked at by `sql_text`.

1. A query reads `` hudi.`/path` `` through the same reader as `spark.read.format("hudi")`, with a native scan.
2. So does a temporary view in a classic session, where Spark's own parser says what the statement means. A view shows
   the table of the moment when it was made, as a view over a DataFrame does.
3. Over Spark Connect there is no parser at hand: the server makes the view, over the Python data source.
4. Everything else that names the format is refused before Spark looks for classes it does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hoodie.errors import Invalid, Unsupported
from hoodie.spark.engine import is_classic
from hoodie.spark.sql_text import is_temporary_view, mentions_hudi, parse_path_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AS_OF = "as.of.instant"


def run_sql(
    original: Callable[..., DataFrame], spark: SparkSession, sql: str, args: Any, frames: Mapping[str, Any]
) -> DataFrame:
    """What `spark.sql` gives for a statement with the word `hudi` in it. `original` is PySpark's own.

    Raises:
        Unsupported: the statement makes or changes a Hudi table.
    """
    if not mentions_hudi(sql):
        return original(sql, args, **frames)
    if is_temporary_view(sql):
        return _make_view(original, spark, sql, args, frames)
    query = parse_path_query(sql, is_template=bool(frames))
    if query is None:
        raise Unsupported(
            "SQL statements that make or change tables of the format hudi are not supported yet",
            remedy="Queries and CREATE TEMPORARY VIEW ... USING hudi OPTIONS (path '...') work; "
            'for changes: df.write.format("hudi") or hoodie.Table',
        )
    from hoodie.spark.reader import read_frame  # noqa: PLC0415 - loaded by the first use

    tables = {
        f"hoodie_{number}": read_frame(spark, one.path, {} if one.as_of is None else {_AS_OF: one.as_of})
        for number, one in enumerate(query.relations)
    }
    return original(query.template, args, **frames, **tables)


def _make_view(
    original: Callable[..., DataFrame], spark: SparkSession, sql: str, args: Any, frames: Mapping[str, Any]
) -> DataFrame:
    if not is_classic(spark):
        from hoodie.spark.data_source import register  # noqa: PLC0415 - loaded by the first use

        register(spark)
        return original(sql, args, **frames)
    from pyspark.sql.types import StructType  # noqa: PLC0415 - not every session and worker has to load it

    from hoodie.spark.reader import read_frame  # noqa: PLC0415 - loaded by the first use
    from hoodie.spark.writer import path_of, without_path  # noqa: PLC0415 - loaded by the first use

    jvm: Any = spark._jvm
    statement = spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    if statement.userSpecifiedSchema().isDefined():
        raise Invalid("A Hudi table has its own schema", remedy="Leave the columns of the view out")
    options = dict(jvm.scala.jdk.javaapi.CollectionConverters.asJava(statement.options()))
    frame = read_frame(spark, path_of(None, options), without_path(options))
    name = str(statement.tableIdent().table())
    match (bool(getattr(statement, "global")()), bool(statement.replace())):
        case (True, True):
            frame.createOrReplaceGlobalTempView(name)
        case (True, False):
            frame.createGlobalTempView(name)
        case (False, True):
            frame.createOrReplaceTempView(name)
        case _:
            frame.createTempView(name)
    return spark.createDataFrame([], StructType([]))
