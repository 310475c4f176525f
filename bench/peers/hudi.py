"""Apache Hudi 1.2.0 on PySpark 3.5, with Hudi's own defaults (compat environment)."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlparse

from protocol import Inputs, serve
from spark_peer import KEYS, ORDERING, PARTITION, SparkPeer, peer_jars, session_settings, start_spark

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
WRITE = "hoodie.datasource.write."


class Hudi(SparkPeer):
    """Writes and reads through the data source."""

    def bulk_load(self, source: Any, table: str) -> None:
        self._write(source, table, "bulk_insert", "overwrite")

    def merge(self, source: Any, table: str) -> None:
        self._write(source, table, "upsert", "append")

    def frame(self, table: str) -> Any:
        return self.spark.read.format("hudi").load(table)

    def files(self, table: str) -> list[str]:
        return [unquote(urlparse(file).path) for file in self.frame(table).inputFiles()]

    def mark(self, table: str) -> Any:
        """The completion time of the newest commit."""
        jvm = self.spark._jvm
        hadoop = self.spark.sparkContext._jsc.hadoopConfiguration()
        conf = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(hadoop)
        meta = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder().setConf(conf).setBasePath(table).build()
        return (
            meta.getActiveTimeline()
            .getCommitsTimeline()
            .filterCompletedInstants()
            .lastInstant()
            .get()
            .getCompletionTime()
        )

    def pull(self, table: str, begin: Any) -> Any:
        reader = self.spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
        return reader.option("hoodie.datasource.read.begin.instanttime", begin).load(table)

    def _write(self, source: Any, table: str, operation: str, mode: str) -> None:
        options = {
            "hoodie.table.name": table.rsplit("/", 1)[-1],
            WRITE + "recordkey.field": ",".join(KEYS),
            WRITE + "partitionpath.field": PARTITION,
            WRITE + "precombine.field": ORDERING,
            WRITE + "operation": operation,
        }
        source.write.format("hudi").options(**options).mode(mode).save(table)


def make(inputs: Inputs) -> Hudi:
    """The peer in a session with the bundle."""
    peer_jars.ensure_java()
    settings = session_settings(inputs) | {
        "spark.jars": str(peer_jars.find_jar(BUNDLE)),
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }
    return Hudi(inputs, start_spark(settings, "bench-hudi"))


if __name__ == "__main__":
    serve(make)
