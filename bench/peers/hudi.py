"""Apache Hudi 1.2.0 on PySpark 3.5, with Hudi's own defaults (compat environment)."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlparse

from hudi_format import HudiFormat
from protocol import Inputs, serve
from spark_peer import peer_jars, session_settings, start_spark

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"


class Hudi(HudiFormat):
    """Hudi as its users call it."""

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
