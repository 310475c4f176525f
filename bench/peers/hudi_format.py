"""What the real Hudi and hoodie share: both are called through `format("hudi")`, with the same options."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from layout_peer import TARGET_BYTES, LayoutPeer
from protocol import timed
from spark_peer import KEYS, ORDERING, PARTITION

WRITE = "hoodie.datasource.write."
LOGGED = {
    WRITE + "table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "true",
}
MANY_KEY_OPTIONS = {
    "hoodie.table.name": "many_keys",
    WRITE + "recordkey.field": "id",
    WRITE + "precombine.field": "ts",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
FAR_COLUMNS = (*KEYS, "l_returnflag", "l_quantity", "l_extendedprice", "l_shipdate", "l_comment", "change_seq")
MANY_KEYS_STEP = 99_991
MANY_KEY_SQL = "concat('key-', lpad(hex(id * 2654435761), 16, '0'))"


def many_key(number: int) -> str:
    """The key of a row of the table for look-ups; `MANY_KEY_SQL` says the same to Spark."""
    return f"key-{number * 2654435761:016X}"


def table_options(table: str) -> dict[str, str]:
    """Keys, partition and ordering of the table at this path or URL."""
    return {
        "hoodie.table.name": table.rsplit("/", 1)[-1],
        WRITE + "recordkey.field": ",".join(KEYS),
        WRITE + "partitionpath.field": PARTITION,
        WRITE + "precombine.field": ORDERING,
    }


def fingerprint(rows: Iterable[Iterable[Any]]) -> list[Any]:
    """How many rows these are, and a hash of their values, the same in any order."""
    lines = sorted("\x1f".join(str(value) for value in row) for row in rows)
    return [len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest()]


EVENTS = {
    "hoodie.table.name": "events",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "",
    WRITE + "precombine.field": "started",
}
SORTED = {
    "hoodie.table.name": "sorted",
    WRITE + "recordkey.field": "line_key",
    WRITE + "partitionpath.field": "",
    WRITE + "precombine.field": ORDERING,
}
STITCHED = 200
"""Files of two megabytes each, at a scale of 0.5."""
CURVES = {"sort": "linear", "zorder": "z-order", "hilbert": "hilbert"}


class HudiFormat(LayoutPeer):
    """Writes and reads through the data source; no option that a user would not set."""

    parts: ClassVar[dict[str, list[float]]] = {}

    def bulk_load(self, source: Any, table: str) -> None:
        self._write(source, table, "bulk_insert", "overwrite")

    def insert_small(self, table: str, turn: int, options: dict[str, str]) -> dict[str, Any]:
        """A row into each of ten partitions of a table with the columns `id`, `part`, `ts`, `v`."""
        rows = [(f"{turn}-{number}", f"p{number}", turn, "a") for number in range(10)]
        frame = self.spark.createDataFrame(rows, "id string, part string, ts long, v string").coalesce(1)
        writer = frame.write.format("hudi").options(**options).mode("append")
        seconds, _ = timed(lambda: writer.save(table))
        return {"seconds": seconds}

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

    def small_log_upserts(self, repeat: int) -> dict[str, Any]:
        """Fixed cost of a commit of log files, with no compaction among them; the first of the session do not count."""
        table = self.inputs.table("small_logged")
        self._write(self._input("small"), table, "bulk_insert", "overwrite", LOGGED)
        self._repeated_changes(table, 3, self._append)
        return self._repeated_changes(table, repeat, self._append)

    def log_load(self) -> dict[str, Any]:
        """All rows into a merge-on-read table."""
        seconds, _ = timed(
            lambda: self._write(self._input("base"), self.inputs.table("logged"), "bulk_insert", "overwrite", LOGGED)
        )
        return {"seconds": seconds}

    def log_upsert(self, change: str) -> dict[str, Any]:
        """A change of it, with no table service after it."""
        table = self.inputs.table("logged")
        seconds, _ = timed(lambda: self._append(self._input(change), table))
        check = [[str(value) for value in row] for row in self._aggregate(self.frame(table))]
        return {"seconds": seconds, "check": {"aggregate": check}, **self._disk_bytes(table)}

    def compact(self) -> dict[str, Any]:
        """Compaction of what was changed since the last, plan included."""
        table = self.inputs.table("logged")
        seconds, _ = timed(lambda: self.run_compaction(table))
        if len(list(Path(table, ".hoodie", "timeline").glob("*.commit"))) == 0:
            raise AssertionError("nothing was compacted")
        check = [[str(value) for value in row] for row in self._aggregate(self.frame(table))]
        return {"seconds": seconds, "check": {"aggregate": check}}

    def clean_and_archive(self, folder: str) -> dict[str, Any]:
        """Cleaning, then archiving, of a copy of a table with many commits."""
        table = self.inputs.table("many_commits")
        shutil.copytree(folder, table)
        before = self.frame(table).count()
        cleaned, _ = timed(lambda: self.run_clean(table))
        archived, _ = timed(lambda: self.run_archive(table))
        self.parts = {"clean_2000": cleaned, "archive_2000": archived}
        left = len(list(Path(table).rglob("*.parquet")))
        return {
            "seconds": [cleaned[0] + archived[0]],
            "check": {"rows": [before, self.frame(table).count()]},
            "left": left,
        }

    def part(self, half: str) -> dict[str, Any]:
        """Seconds of one half of `clean_and_archive`."""
        return {"seconds": self.parts[half]}

    def index_keys(self, folder: str) -> dict[str, Any]:
        """The first write that wants a record index, one new row, into a copy of a table whose metadata table has all
        but that.
        """
        table = self.inputs.table("indexed")
        shutil.copytree(folder, table, ignore=shutil.ignore_patterns("record_index", ".index_defs"))
        properties = Path(table, ".hoodie", "hoodie.properties")
        properties.write_text("".join(map(_without_record_index, properties.read_text().splitlines(keepends=True))))
        properties.with_name(".hoodie.properties.crc").unlink(missing_ok=True)
        row = self.spark.createDataFrame([("key-new", -1, 0)], "id string, number long, ts long")
        writer = row.write.format("hudi").options(**MANY_KEY_OPTIONS, **{WRITE + "operation": "upsert"}).mode("append")
        seconds, _ = timed(lambda: writer.save(table))
        found = self.look_up(table, [many_key(number * MANY_KEYS_STEP) for number in range(10)])
        return {"seconds": seconds, "check": {"found": found}}

    def far_load(self, table: str) -> dict[str, Any]:
        """The small table on a store that is far away, in three partitions, changed three times: no step pays for a
        cold JVM or a first connection.
        """
        self._write(self._input("small"), table, "bulk_insert", "overwrite", self._far_options)
        for number in range(3):
            self.far_upsert(table, number)
        return {"seconds": []}

    def far_upsert(self, table: str, number: int) -> dict[str, Any]:
        """100 rows into it."""
        change = self._input(f"small_change_{number}")
        seconds, _ = timed(lambda: self._write(change, table, "upsert", "append", self._far_options))
        return {"seconds": seconds}

    def far_rows(self, table: str) -> dict[str, Any]:
        """What all its rows are."""
        frame = self.spark.read.format("hudi").options(**self._far_options).load(table)
        rows = frame.select(*FAR_COLUMNS).collect()
        return {"seconds": [], "check": {"rows": fingerprint(rows)}}

    def load_events(self, source: Any, table: str, files: int | None = None) -> None:
        options = {**EVENTS, WRITE + "operation": "bulk_insert"}
        if files is not None:
            source = source.repartition(files)
            options["hoodie.bulkinsert.shuffle.parallelism"] = str(files)
        source.write.format("hudi").options(**options).mode("overwrite").save(table)

    def append(self, source: Any, table: str) -> None:
        options = {**EVENTS, **self.append_options, WRITE + "operation": "insert"}
        source.write.format("hudi").options(**options).mode("append").save(table)

    def load_sorted(self, source: Any, table: str, files: int | None = None) -> None:
        options = {**SORTED, WRITE + "operation": "bulk_insert"}
        if files is not None:
            options["hoodie.bulkinsert.shuffle.parallelism"] = str(files)
        source.write.format("hudi").options(**options).mode("overwrite").save(table)

    def merge_sorted(self, source: Any, table: str) -> None:
        options = {**SORTED, WRITE + "operation": "upsert"}
        source.write.format("hudi").options(**options).mode("append").save(table)

    def cluster(self, table: str, order: str, columns: tuple[str, ...]) -> None:
        self.run_clustering(
            table,
            {
                "hoodie.clustering.plan.strategy.target.file.max.bytes": str(TARGET_BYTES),
                "hoodie.clustering.plan.strategy.sort.columns": ",".join(columns),
                "hoodie.layout.optimize.strategy": CURVES[order],
            },
        )

    def begin_stitch(self, how: str) -> dict[str, Any]:
        """Makes the files that `stitch` joins, and counts their rows."""
        table = self.inputs.table(f"stitched_{how}")
        shutil.copytree(self.stitch_files(), table)
        return {"seconds": [], "check": {"rows": self.frame(table).count()}}

    def stitch(self, how: str) -> dict[str, Any]:
        """Many files become large ones, with rows as they are: `how` is copy or decode."""
        table = self.inputs.table(f"stitched_{how}")
        seconds, _ = timed(lambda: self.run_stitching(table, how))
        return {"seconds": seconds}

    def end_stitch(self, how: str) -> dict[str, Any]:
        """Counts what `stitch` has left."""
        table = self.inputs.table(f"stitched_{how}")
        files = len(self.files(table))
        if files > STITCHED // 2:
            raise AssertionError(f"{files} of {STITCHED} files are left after stitching")
        return {"seconds": [], "check": {"rows": self.frame(table).count()}, "files": files}

    def stitch_files(self) -> str:
        """A folder with lineitem, four times over, in many files."""
        table = self.inputs.table("many_small")
        if not Path(table).exists():
            once = self._input("sorted")
            others = [name for name in once.columns if name != "line_key"]
            source = once.select(*others, "line_key")
            for copy in range(1, 4):
                source = source.union(once.selectExpr(*others, f"concat('{copy}-', line_key) AS line_key"))
            self.load_sorted(source.repartition(STITCHED), table, STITCHED)
        return table

    @property
    def append_options(self) -> dict[str, str]:
        """What an append says beside the operation."""
        return {}

    def run_clustering(self, table: str, options: dict[str, str]) -> None:
        """Plans a clustering and runs it."""
        raise NotImplementedError

    def run_stitching(self, table: str, how: str) -> None:
        """Joins small files, with rows as they are, by copying row groups or by decoding them."""
        raise NotImplementedError

    def run_compaction(self, table: str) -> None:
        """Plans a compaction and runs it."""
        raise NotImplementedError

    def run_clean(self, table: str) -> None:
        """Cleans with the defaults."""
        raise NotImplementedError

    def run_archive(self, table: str) -> None:
        """Archives with the defaults."""
        raise NotImplementedError

    def _append(self, source: Any, table: str) -> None:
        self._write(source, table, "upsert", "append", LOGGED)

    @property
    def _far_options(self) -> dict[str, str]:
        return {**self.inputs.settings, WRITE + "partitionpath.field": "l_returnflag"}

    def _disk_bytes(self, table: str) -> dict[str, Any]:
        return {"bytes": sum(file.stat().st_size for file in Path(table).rglob("*") if file.is_file())}

    def _write(self, source: Any, table: str, operation: str, mode: str, extra: dict[str, str] | None = None) -> None:
        options = {**table_options(table), **(extra or {}), WRITE + "operation": operation}
        source.write.format("hudi").options(**options).mode(mode).save(table)


def _without_record_index(line: str) -> str:
    """The same line of table properties with no trace of a record index."""
    name, _, value = line.partition("=")
    if "index.defs" in name:
        return ""
    if not name.startswith("hoodie.table.metadata.partitions"):
        return line
    return f"{name}={','.join(part for part in value.strip().split(',') if part != 'record_index')}\n"
