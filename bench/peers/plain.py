"""Plain parquet files by Spark 4 (our environment): the floor. It can load and scan, nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from layout_peer import LayoutPeer
from protocol import Inputs, serve
from spark_peer import PARTITION, session_settings

import hoodie


class Plain(LayoutPeer):
    """Parquet in folders by partition value."""

    def bulk_load(self, source: Any, table: str) -> None:
        source.write.partitionBy(PARTITION).option("compression", "zstd").mode("overwrite").parquet(table)

    def load_events(self, source: Any, table: str, files: int | None = None) -> None:
        source = source if files is None else source.repartition(files)
        source.write.option("compression", "zstd").mode("overwrite").parquet(table)

    def append(self, source: Any, table: str) -> None:
        source.write.option("compression", "zstd").mode("append").parquet(table)

    def warm_up(self) -> dict[str, Any]:
        table = self.inputs.table("small")
        for _ in range(3):
            self.bulk_load(self._input("small"), table)
        self.frame(table).count()
        return {"seconds": [], "version": f"PySpark {self.spark.version}"}

    def upsert(self, change: str) -> dict[str, Any]:
        return {"seconds": []}

    def small_upserts(self, repeat: int) -> dict[str, Any]:
        return {"seconds": []}

    def scan_cold(self) -> dict[str, Any]:
        """Rows as loaded: they must not be compared with changed tables."""
        return {"seconds": super().scan_cold()["seconds"]}

    def scan_plain(self) -> dict[str, Any]:
        return {"seconds": []}

    def point_query(self, orderkey: int, linenumber: int) -> dict[str, Any]:
        return {"seconds": super().point_query(orderkey, linenumber)["seconds"]}

    def frame(self, table: str) -> Any:
        return self.spark.read.parquet(table)

    def files(self, table: str) -> list[str]:
        return [str(file) for file in Path(table).rglob("*.parquet")]


def make(inputs: Inputs) -> Plain:
    """The peer in the very session our own peer gets: only the format differs."""
    spark = hoodie.session("bench-plain", **session_settings(inputs))
    spark.sparkContext.setLogLevel("ERROR")
    return Plain(inputs, spark)


if __name__ == "__main__":
    serve(make)
