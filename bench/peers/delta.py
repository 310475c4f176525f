"""Delta Lake 3.3.2 (delta-spark) on PySpark 3.5, MERGE with the partition column in its condition (compat env)."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlparse

from layout_peer import TARGET_BYTES, LayoutPeer
from protocol import Inputs, serve
from spark_peer import KEYS, PARTITION, peer_jars, session_settings, start_spark

JARS = ("io.delta:delta-spark_2.12:3.3.2", "io.delta:delta-storage:3.3.2")
SAME_ROW = " AND ".join(f"t.{column} = s.{column}" for column in (*KEYS, PARTITION))


class Delta(LayoutPeer):
    """Writes through the data source, changes by SQL MERGE."""

    def bulk_load(self, source: Any, table: str) -> None:
        source.write.format("delta").partitionBy(PARTITION).mode("overwrite").save(table)

    def merge(self, source: Any, table: str) -> None:
        source.createOrReplaceTempView("changes")
        self.spark.sql(
            f"MERGE INTO delta.`{table}` t USING changes s ON {SAME_ROW} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()

    def load_events(self, source: Any, table: str, files: int | None = None) -> None:
        source = source if files is None else source.repartition(files)
        source.write.format("delta").mode("overwrite").save(table)

    def append(self, source: Any, table: str) -> None:
        source.write.format("delta").mode("append").save(table)

    def load_sorted(self, source: Any, table: str) -> None:
        source.write.format("delta").mode("overwrite").save(table)

    def merge_sorted(self, source: Any, table: str) -> None:
        source.createOrReplaceTempView("changes")
        self.spark.sql(
            f"MERGE INTO delta.`{table}` t USING changes s ON t.line_key = s.line_key "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()

    def cluster(self, table: str, order: str, columns: tuple[str, ...]) -> None:
        self.spark.conf.set("spark.databricks.io.skipping.mdc.curve", "hilbert" if order == "hilbert" else "zorder")
        self.spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(TARGET_BYTES))
        self.spark.sql(f"OPTIMIZE delta.`{table}` ZORDER BY ({', '.join(columns)})").collect()

    def frame(self, table: str) -> Any:
        return self.spark.read.format("delta").load(table)

    def files(self, table: str) -> list[str]:
        return [unquote(unquote(urlparse(file).path)) for file in self.frame(table).inputFiles()]

    def _parquet(self, files: list[str]) -> Any:
        """Delta keeps the partition column out of its files: a plain scan takes it from the folder names."""
        table = self.inputs.table("large")
        return self.spark.read.option("basePath", table).parquet(*files)


def make(inputs: Inputs) -> Delta:
    """The peer in a session with Delta's extension."""
    peer_jars.ensure_java()
    settings = session_settings(inputs) | {
        "spark.jars": ",".join(str(peer_jars.find_jar(jar)) for jar in JARS),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    return Delta(inputs, start_spark(settings, "bench-delta"))


if __name__ == "__main__":
    serve(make)
