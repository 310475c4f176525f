"""What the real Hudi and hoodie share: both are called through `format("hudi")`, with the same options."""

from __future__ import annotations

from typing import Any

from protocol import timed
from spark_peer import KEYS, ORDERING, PARTITION, SparkPeer

WRITE = "hoodie.datasource.write."
MANY_KEYS_STEP = 99_991
MANY_KEY_SQL = "concat('key-', lpad(hex(id * 2654435761), 16, '0'))"


def many_key(number: int) -> str:
    """The key of a row of the table for look-ups; `MANY_KEY_SQL` says the same to Spark."""
    return f"key-{number * 2654435761:016X}"


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

    def shared_scan(self, folder: str, repeat: int) -> dict[str, Any]:
        """The aggregate over a snapshot of a table that is only read."""
        seconds, rows = timed(lambda: self._aggregate(self.frame(folder)), repeat)
        return {"seconds": seconds, "check": {"aggregate": rows}}

    def shared_read_optimized(self, folder: str) -> dict[str, Any]:
        """The aggregate over its base files only, in turns with plain parquet over the same files."""
        reader = self.spark.read.format("hudi").option("hoodie.datasource.query.type", "read_optimized")
        files = reader.load(folder).inputFiles()
        schema = reader.load(folder).schema
        plain = self.spark.read.schema(schema)
        return {"seconds": self._in_turns(lambda: reader.load(folder), lambda: plain.parquet(*files))}

    def shared_lookup(self, folder: str, repeat: int) -> dict[str, Any]:
        """100 keys of a table with a record index."""
        keys = [many_key(number * MANY_KEYS_STEP) for number in range(100)]
        seconds, found = timed(lambda: self.look_up(folder, keys), repeat)
        return {"seconds": seconds, "check": {"found": found}}

    def look_up(self, folder: str, keys: list[str]) -> list[int]:
        """Sorted numbers of the rows with these keys."""
        raise NotImplementedError

    def _write(
        self, source: Any, table: str, operation: str, mode: str, extra: dict[str, str] | None = None
    ) -> None:
        options = (extra or {}) | {
            "hoodie.table.name": table.rsplit("/", 1)[-1],
            WRITE + "recordkey.field": ",".join(KEYS),
            WRITE + "partitionpath.field": PARTITION,
            WRITE + "precombine.field": ORDERING,
            WRITE + "operation": operation,
        }
        source.write.format("hudi").options(**options).mode(mode).save(table)
