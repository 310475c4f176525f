"""Spark for the commands that are told to use it; the only place here that imports it, and only then."""

from __future__ import annotations

from typing import Any

from hoodie.engine import Engine


def start_spark() -> Any:
    """A Spark session with `hoodie.enable` called, quiet on the terminal.

    Raises:
        ModuleNotFoundError: pyspark is not installed.
    """
    from hoodie.spark import session  # noqa: PLC0415 - optional, and heavy

    spark: Any = session("hoodie", **{"spark.ui.showConsoleProgress": "false", "spark.ui.enabled": "false"})
    if hasattr(spark, "sparkContext"):
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def spark_engine(spark: Any) -> Engine:
    """The engine that runs tasks in this session."""
    from hoodie.spark import SparkEngine  # noqa: PLC0415 - optional, and heavy

    engine: Engine = SparkEngine(spark)
    return engine
