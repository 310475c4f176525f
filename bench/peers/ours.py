"""hoodie on PySpark 4 (our environment), through the same calls a Hudi user makes."""

from __future__ import annotations

from typing import Any

from protocol import Inputs, serve, timed
from spark_peer import KEYS, ORDERING, PARTITION, SparkPeer, session_settings

import hoodie

WRITE = "hoodie.datasource.write."


class Ours(SparkPeer):
    """Writes and reads through the data source; no option that a user would not set."""

    def bulk_load(self, source: Any, table: str) -> None:
        self._write(source, table, "bulk_insert", "overwrite")

    def merge(self, source: Any, table: str) -> None:
        self._write(source, table, "upsert", "append")

    def frame(self, table: str) -> Any:
        return self.spark.read.format("hudi").load(table)

    def files(self, table: str) -> list[str]:
        return [f"{table}/{part.base.path}" for part in hoodie.Table.open(table).files() if part.base]

    def mark(self, table: str) -> Any:
        return hoodie.Table.open(table).timeline().completed()[-1].completed

    def pull(self, table: str, begin: Any) -> Any:
        reader = self.spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
        return reader.option("hoodie.datasource.read.begin.instanttime", begin).load(table)

    def memory_load(self) -> dict[str, Any]:
        """The large table of the memory test."""
        table = self.inputs.table("wide")
        options = {"hoodie.table.name": "wide", WRITE + "recordkey.field": "id", WRITE + "precombine.field": "seq"}
        options |= {WRITE + "operation": "bulk_insert"}
        source = self._input("wide")
        seconds, _ = timed(lambda: source.write.format("hudi").options(**options).mode("overwrite").save(table))
        return {"seconds": seconds, **self._size(table)}

    def memory_upsert(self) -> dict[str, Any]:
        """1 000 rows spread over all its files."""
        table = self.inputs.table("wide")
        change = self._input("wide_change")
        options = {"hoodie.table.name": "wide", WRITE + "recordkey.field": "id", WRITE + "precombine.field": "seq"}
        seconds, _ = timed(lambda: change.write.format("hudi").options(**options).mode("append").save(table))
        return {"seconds": seconds, **self._size(table)}

    def _write(self, source: Any, table: str, operation: str, mode: str) -> None:
        options = {
            "hoodie.table.name": table.rsplit("/", 1)[-1],
            WRITE + "recordkey.field": ",".join(KEYS),
            WRITE + "partitionpath.field": PARTITION,
            WRITE + "precombine.field": ORDERING,
            WRITE + "operation": operation,
        }
        source.write.format("hudi").options(**options).mode(mode).save(table)


def make(inputs: Inputs) -> Ours:
    """The peer in a session of ours with the settings that all peers get."""
    spark = hoodie.session("bench-hoodie", **session_settings(inputs))
    spark.sparkContext.setLogLevel("ERROR")
    return Ours(inputs, spark)


if __name__ == "__main__":
    serve(make)
