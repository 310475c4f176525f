"""Options that a Spark session gives every read and write: `spark.conf.set("hoodie....")`, and `spark.hoodie.*`, as
`spark-submit --conf` and `spark-defaults.conf` can say it. Options of a reader or writer go before them.

Encryption that a session asks of parquet, as Hudi's own guide has it set, is an option of each write, too: our files
are written past Hadoop, and would be plain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hoodie.config.defaults import options_among, over
from hoodie.spark.engine import is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS = ("hoodie.", "spark.hoodie.")
_ENCRYPTION = ("parquet.crypto.", "parquet.encryption.")
_BETWEEN = "\x00"


def with_session(spark: SparkSession, options: Mapping[str, object], *, writes: bool = False) -> dict[str, object]:
    """`options`, and below them those of the session."""
    pairs = _classic_pairs(spark) if is_classic(spark) else _connect_pairs(spark)
    found = options_among({name: value for name, value in pairs if name.startswith(_OURS)})
    if writes:
        found.update(_encryption(spark))
    return over(options, found)


def _classic_pairs(spark: SparkSession) -> Iterator[tuple[str, str]]:
    """The settings of a session, in one call to the JVM."""
    jvm_session: Any = spark._jsparkSession
    text = str(jvm_session.conf().getAll().mkString(_BETWEEN))
    for pair in text.split(_BETWEEN):
        name, _, value = pair.partition(" -> ")
        yield name, value


def _connect_pairs(spark: SparkSession) -> Iterator[tuple[str, str]]:
    yield from ((row[0], row[1]) for row in spark.sql("SET").collect())


def _encryption(spark: SparkSession) -> dict[str, str]:
    hadoop: Any = spark._jsparkSession.sessionState().newHadoopConf()
    found = ((prefix, hadoop.getPropsWithPrefix(prefix)) for prefix in _ENCRYPTION)
    # Mostly there are none. To go through a map of the JVM takes some ten calls, also when it is empty.
    return {
        prefix + name: str(value) for prefix, named in found if not named.isEmpty() for name, value in named.items()
    }
