"""What the Spark peers of the benchmark share: a normally tuned session, the queries and the order of the steps.

Same memory, cores and settings for every peer; the JVM runs with its own defaults (C2 compiler, G1). A subclass says
how its format bulk-inserts, upserts, reads and pulls.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from protocol import Inputs, timed

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import peer_jars  # noqa: F401 (found through the line above; the peers that need jars take it from here)

KEYS = ("l_orderkey", "l_linenumber")
PARTITION = "l_shipmode"
ORDERING = "change_seq"
SCAN_REPEATS = 8
SCAN = """
SELECT l_returnflag, l_linestatus, count(*) AS rows, sum(l_quantity) AS quantity, sum(l_extendedprice) AS price,
       sum(l_extendedprice * (1 - l_discount)) AS discounted, avg(l_tax) AS tax, sum(change_seq) AS changes
FROM {table} GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus
"""


def session_settings(inputs: Inputs) -> dict[str, str]:
    """Settings every Spark peer gets."""
    return {
        "spark.master": f"local[{inputs.cores}]",
        "spark.driver.memory": inputs.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.shuffle.partitions": str(2 * inputs.cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": inputs.table("warehouse"),
        "spark.local.dir": inputs.table("spark_local"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **inputs.settings,
    }


def start_spark(settings: dict[str, str], name: str) -> Any:
    """A session with these settings; quiet."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 (the peer decides first which Java and Python run)

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


class SparkPeer:
    """The steps, in terms of `bulk_load`, `merge`, `frame` and `pull` of a subclass."""

    def __init__(self, inputs: Inputs, spark: Any) -> None:
        self.inputs = inputs
        self.spark = spark
        self.begin: Any = None
        self.plain_seconds: list[float] = []

    def bulk_load(self, source: Any, table: str) -> None:
        raise NotImplementedError

    def merge(self, source: Any, table: str) -> None:
        raise NotImplementedError

    def frame(self, table: str) -> Any:
        """A fresh DataFrame over the newest snapshot."""
        raise NotImplementedError

    def files(self, table: str) -> list[str]:
        """Data files of the newest snapshot."""
        raise NotImplementedError

    def mark(self, table: str) -> Any:
        """Where an incremental pull would begin, were it taken now; None when the format has none."""
        return None

    def pull(self, table: str, begin: Any) -> Any:
        """Rows changed after `begin`."""
        raise NotImplementedError

    def warm_up(self) -> dict[str, Any]:
        """The small table is made and changed a few times: no step pays for a cold JVM."""
        table = self.inputs.table("small")
        self.bulk_load(self._input("small"), table)
        for number in range(3):
            self.merge(self._input(f"small_change_{number}"), table)
        self.frame(table).count()
        return {"seconds": [], "version": f"PySpark {self.spark.version}"}

    def bulk_insert(self) -> dict[str, Any]:
        table = self.inputs.table("large")
        seconds, _ = timed(lambda: self.bulk_load(self._input("base"), table))
        self.begin = self.mark(table)
        return {"seconds": seconds, **self._size(table)}

    def upsert(self, change: str) -> dict[str, Any]:
        table = self.inputs.table("large")
        seconds, _ = timed(lambda: self.merge(self._input(change), table))
        return {"seconds": seconds, **self._size(table)}

    def small_upserts(self, repeat: int) -> dict[str, Any]:
        """Fixed cost of a commit: 100 rows into 10 000, again and again."""
        return self._repeated_changes(self.inputs.table("small"), repeat, self.merge)

    def small_log_upserts(self, repeat: int) -> dict[str, Any]:
        """The same into a table that appends changes to log files, for formats that have such."""
        return {"seconds": []}

    def empty_job(self, repeat: int) -> dict[str, Any]:
        job = self.spark.range(0, 1000, 1, 2).write.format("noop").mode("overwrite")
        seconds, _ = timed(job.save, repeat)
        return {"seconds": seconds}

    def scan_cold(self) -> dict[str, Any]:
        """The first full aggregate of this session: listing, footers and code generation included."""
        seconds, rows = timed(lambda: self._aggregate(self.frame(self.inputs.table("large"))))
        return {"seconds": seconds, "check": {"aggregate": rows}}

    def scan_warm(self) -> dict[str, Any]:
        """The aggregate again and again, in turns with `scan_plain`."""
        table = self.inputs.table("large")
        files = self.files(table)
        return {"seconds": self._in_turns(lambda: self.frame(table), lambda: self._parquet(files))}

    def _in_turns(self, own: Callable[[], Any], plain: Callable[[], Any]) -> list[float]:
        """Seconds of the aggregate over frames of our own; those over plain ones are kept for `scan_plain`.

        Both see the same load of the machine, and each is as often the first of its pair as the second, since a JVM
        gets faster with every query. Each source's own first time does not count.
        """
        for make in (own, plain):
            self._aggregate(make())
        seconds: list[float] = []
        self.plain_seconds = []
        pairs = [(own, seconds), (plain, self.plain_seconds)]
        for turn in range(SCAN_REPEATS):
            for make, into in pairs if turn % 2 == 0 else reversed(pairs):
                into.extend(timed(lambda make=make: self._aggregate(make()))[0])
        return seconds

    def scan_plain(self) -> dict[str, Any]:
        """The same aggregate by Spark's own parquet source over exactly the files of the snapshot; see `scan_warm`."""
        return {"seconds": self.plain_seconds}

    def point_query(self, orderkey: int, linenumber: int) -> dict[str, Any]:
        where = f"l_orderkey = {orderkey} AND l_linenumber = {linenumber}"
        seconds, rows = timed(
            lambda: self.frame(self.inputs.table("large")).where(where).select("l_comment").collect(), 3
        )
        return {"seconds": seconds, "check": {"point": [row[0] for row in rows]}}

    def incremental(self) -> dict[str, Any]:
        """Everything that changed since the bulk insert."""
        if self.begin is None:
            return {"seconds": []}
        table = self.inputs.table("large")
        seconds, row = timed(lambda: self.pull(table, self.begin).selectExpr("count(*)", "sum(change_seq)").first(), 3)
        return {"seconds": seconds, "check": {"pulled": [int(value) for value in row]}}

    def close(self) -> None:
        self.spark.stop()

    def _repeated_changes(self, table: str, repeat: int, merge: Callable[[Any, str], None]) -> dict[str, Any]:
        """Seconds of one change after the other of the small table."""
        seconds: list[float] = []
        for number in range(repeat):
            change = f"small_change_{number % 10}"
            seconds += timed(lambda change=change: merge(self._input(change), table))[0]
        return {"seconds": seconds, "check": {"rows": self.frame(table).count()}}

    def _input(self, name: str) -> Any:
        return self.spark.read.parquet(self.inputs.file(name))

    def _parquet(self, files: list[str]) -> Any:
        return self.spark.read.schema(self.frame(self.inputs.table("large")).schema).parquet(*files)

    def _aggregate(self, frame: Any) -> list[list[str]]:
        frame.createOrReplaceTempView("scanned")
        return [[str(value) for value in row] for row in self.spark.sql(SCAN.format(table="scanned")).collect()]

    def _size(self, table: str) -> dict[str, Any]:
        files = [Path(file.removeprefix("file:")) for file in self.files(table)]
        return {"files": len(files), "bytes": sum(file.stat().st_size for file in files)}
