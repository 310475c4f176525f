"""Apache Hudi 1.2.0 on PySpark 3.5, with Hudi's own defaults (compat environment)."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlparse

from hudi_format import MANY_KEY_OPTIONS, MANY_KEY_SQL, WRITE, HudiFormat
from protocol import Inputs, serve, timed
from spark_peer import peer_jars, session_settings, start_spark

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
CLUSTERING = "org.apache.hudi.client.clustering"
S3A = ("org.apache.hadoop:hadoop-aws:3.3.4", "com.amazonaws:aws-java-sdk-bundle:1.12.262")
"""What the Hadoop of PySpark 3.5 needs to reach S3."""


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

    def run_clustering(self, table: str, options: dict[str, str]) -> None:
        said = dict(options)
        columns = said.pop("hoodie.clustering.plan.strategy.sort.columns", "")
        curve = said.pop("hoodie.layout.optimize.strategy", "")
        order = f"order => '{columns}', order_strategy => '{curve}', " if columns else ""
        rest = ",".join(f"{name}={value}" for name, value in said.items())
        self._call(f"run_clustering(op => 'scheduleAndExecute', path => '{table}', {order}options => '{rest}')")

    def run_stitching(self, table: str, how: str) -> None:
        plan = f"{CLUSTERING}.plan.strategy.SparkStreamCopyClusteringPlanStrategy"
        execution = f"{CLUSTERING}.run.strategy.SparkBinaryCopyClusteringExecutionStrategy"
        copying = {
            "hoodie.clustering.plan.strategy.class": plan,
            "hoodie.clustering.execution.strategy.class": execution,
        }
        self.run_clustering(table, copying if how == "copy" else {})

    def run_compaction(self, table: str) -> None:
        options = "hoodie.compact.inline.max.delta.commits=1"
        self._call(f"run_compaction(op => 'scheduleAndExecute', path => '{table}', options => '{options}')")

    def run_clean(self, table: str) -> None:
        self._register(table)
        self._call("run_clean(table => 'called', options => 'hoodie.metadata.enable=false')")

    def run_archive(self, table: str) -> None:
        self._register(table)
        self._call("archive_commits(table => 'called', min_commits => 20, max_commits => 30, retain_commits => 10)")

    def make_merge_on_read(self, folder: str, blocks: str) -> dict[str, Any]:
        """Lineitem as a merge-on-read table with the 10 % change in log files of Avro or Parquet blocks."""
        table = f"{folder}/merge_on_read_{blocks}"
        extra = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
        extra |= {"hoodie.logfile.data.block.format": blocks}
        self._write(self._input("base"), table, "bulk_insert", "overwrite", extra)
        seconds, _ = timed(lambda: self._write(self._input("change_10pct"), table, "upsert", "append", extra))
        return {"seconds": seconds}

    def make_many_keys(self, folder: str, rows: int) -> dict[str, Any]:
        """Narrow rows with a record index."""
        source = self.spark.range(0, rows, 1, 16).selectExpr(f"{MANY_KEY_SQL} AS id", "id AS number", "id % 7 AS ts")
        options = {
            **MANY_KEY_OPTIONS,
            WRITE + "operation": "bulk_insert",
            "hoodie.bulkinsert.shuffle.parallelism": "16",
        }
        writer = source.write.format("hudi").options(**options).mode("overwrite")
        seconds, _ = timed(lambda: writer.save(f"{folder}/many_keys"))
        return {"seconds": seconds}

    def look_up(self, folder: str, keys: list[str]) -> list[int]:
        """As a filter, with the record index and data skipping switched on."""
        options = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
        frame = self.spark.read.format("hudi").options(**options).load(folder)
        wanted = ", ".join(f"'{key}'" for key in keys)
        return sorted(row[0] for row in frame.where(f"id IN ({wanted})").select("number").collect())

    def _register(self, table: str) -> None:
        self.spark.sql("DROP TABLE IF EXISTS called")
        self.spark.sql(f"CREATE TABLE called USING hudi LOCATION '{table}'")

    def _call(self, procedure: str) -> None:
        self.spark.sql(f"CALL {procedure}").collect()


def make(inputs: Inputs) -> Hudi:
    """The peer in a session with the bundle."""
    peer_jars.ensure_java()
    jars = (BUNDLE, *(S3A if "spark.hadoop.fs.s3a.endpoint" in inputs.settings else ()))
    settings = session_settings(inputs) | {
        "spark.jars": ",".join(str(peer_jars.find_jar(jar)) for jar in jars),
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }
    return Hudi(inputs, start_spark(settings, "bench-hudi"))


if __name__ == "__main__":
    serve(make)
