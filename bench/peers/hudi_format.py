"""What the real Hudi and hoodie share: both are called through `format("hudi")`, with the same options."""

from __future__ import annotations

from typing import Any

from spark_peer import KEYS, ORDERING, PARTITION, SparkPeer

WRITE = "hoodie.datasource.write."


class HudiFormat(SparkPeer):
    """Writes and reads through the data source; no option that a user would not set."""

    def bulk_load(self, source: Any, table: str) -> None:
        self._write(source, table, "bulk_insert", "overwrite")

    def merge(self, source: Any, table: str) -> None:
        self._write(source, table, "upsert", "append")

    def frame(self, table: str) -> Any:
        return self.spark.read.format("hudi").load(table)

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
