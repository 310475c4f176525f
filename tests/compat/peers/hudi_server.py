"""The real Apache Hudi behind a pipe: one JVM for a whole test session (runs in the compat environment).

    python hudi_server.py VERSION [JAR ...]

1. Each line on stdin is one JSON job `{"job": name, ...arguments}`; each gets exactly one JSON line as answer:
   `{"ok": true, ...}` or `{"ok": false, "error": [cause chain, outermost first]}`.
2. The answers travel on the original stdout; whatever the JVM prints goes to stderr.
3. End of input ends the process and its JVM.
It knows nothing of the project under test: rows come in and go out as parquet files.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq
from hudi_session import hudi_session
from lock_jobs import LockJobs

DATASOURCE = "hoodie.datasource.write."
FROM_PROPERTIES = {
    "hoodie.table.recordkey.fields": DATASOURCE + "recordkey.field",
    "hoodie.table.partition.fields": DATASOURCE + "partitionpath.field",
    "hoodie.table.precombine.field": DATASOURCE + "precombine.field",
    "hoodie.table.ordering.fields": DATASOURCE + "precombine.field",
    "hoodie.table.keygenerator.class": DATASOURCE + "keygenerator.class",
    "hoodie.datasource.write.hive_style_partitioning": DATASOURCE + "hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode": DATASOURCE + "partitionpath.urlencode",
    "hoodie.datasource.write.drop.partition.columns": DATASOURCE + "drop.partition.columns",
    "hoodie.populate.meta.fields": "hoodie.populate.meta.fields",
}
KEYGEN_PREFIXES = ("hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.")
QUICK = {f"hoodie.{name}.shuffle.parallelism": "2" for name in ("upsert", "insert", "bulkinsert", "delete")}


class Jobs(LockJobs):
    """One method per job; arguments and answers are JSON values."""

    def __init__(self, version: str, jars: Sequence[str]) -> None:
        self.version = version
        super().__init__(hudi_session(version, jars))

    def ping(self) -> dict[str, Any]:
        return {"version": self.version, "spark": self.spark.version}

    def hadoop(self, conf: dict[str, str]) -> dict[str, Any]:
        """Sets what Hadoop's file systems of the session go by."""
        hadoop = self.spark.sparkContext._jsc.hadoopConfiguration()
        for key, value in conf.items():
            hadoop.set(key, value)
        return {}

    def java(self, properties: dict[str, str]) -> dict[str, Any]:
        """Sets properties of the virtual machine, by which the SDK of AWS goes."""
        for key, value in properties.items():
            self.spark._jvm.java.lang.System.setProperty(key, value)
        return {}

    def read(
        self,
        *,
        path: str,
        out: str,
        query: str = "snapshot",
        begin: str | None = None,
        end: str | None = None,
        as_of: str | None = None,
        options: dict[str, str] | None = None,
        where: str | None = None,
        conf: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        reader = self.spark.read.format("hudi").options(**{"hoodie.metadata.enable": "false", **(options or {})})
        match query:
            case "snapshot" | "read_optimized":
                reader = reader.option("hoodie.datasource.query.type", query)
            case "time_travel":
                reader = reader.option("as.of.instant", as_of)
            case "incremental" | "cdc":
                reader = reader.option("hoodie.datasource.query.type", "incremental")
                reader = reader.option("hoodie.datasource.read.begin.instanttime", begin or "000")
                if end:
                    reader = reader.option("hoodie.datasource.read.end.instanttime", end)
                if query == "cdc":
                    reader = reader.option("hoodie.datasource.query.incremental.format", "cdc")
            case _:
                raise ValueError(query)
        with self._configured(conf or {}):
            frame = reader.load(path)
            return {"rows": self._store(frame.where(where) if where else frame, out)}

    def write(
        self,
        path: str,
        op: str,
        input: str | None = None,
        options: dict[str, str] | None = None,
        mode: str = "append",
    ) -> dict[str, Any]:
        """Continues the table at `path` with what its properties say, or makes one from `options`. Of a table that is
        not on this disk all is said by `options`, and nothing answered.
        """
        settings = {**QUICK, "hoodie.embed.timeline.server": "false", "hoodie.metadata.enable": "false"}
        if Path(path, ".hoodie", "hoodie.properties").exists():
            settings |= self._continue(path)
        settings |= {**(options or {}), DATASOURCE + "operation": op}
        frame = self.spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(input).coalesce(1)
        before = _timeline(path)
        frame.write.format("hudi").options(**settings).mode(mode).save(path)
        if "://" in path:
            return {}
        properties = read_properties(path)
        return {"new_files": sorted(_timeline(path) - before), "table_version": properties["hoodie.table.version"]}

    def sql(self, path: str, statement: str, options: dict[str, str] | None = None) -> dict[str, Any]:
        """Runs one statement in which `{t}` is the table at `path`; answers its rows as text-safe JSON."""
        name = read_properties(path).get("hoodie.table.name", "peer_table")
        with self._configured(options or {}):
            self.spark.sql(f"DROP TABLE IF EXISTS `{name}`")
            self.spark.sql(f"CREATE TABLE `{name}` USING hudi LOCATION '{path}'")
            frame = self.spark.sql(statement.replace("{t}", name).replace("{path}", path))
            rows = [row.asDict(recursive=True) for row in frame.limit(1000).collect()]
            self.spark.sql(f"DROP TABLE IF EXISTS `{name}`")
            return {"rows": rows}

    def facts(self, path: str) -> dict[str, Any]:
        """Instants and latest file slices as Hudi's own classes see them."""
        jvm = self.spark._jvm
        hadoop = self.spark.sparkContext._jsc.hadoopConfiguration()
        conf = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(hadoop)
        client = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
        meta = client.setConf(conf).setBasePath(path).setLoadActiveTimelineOnLoad(True).build()
        engine = jvm.org.apache.hudi.common.engine.HoodieLocalEngineContext(conf)
        no_metadata = jvm.org.apache.hudi.common.config.HoodieMetadataConfig.newBuilder().enable(False).build()
        visible = meta.getActiveTimeline().filterCompletedAndCompactionInstants()
        views = jvm.org.apache.hudi.common.table.view.FileSystemViewManager
        view = views.createInMemoryFileSystemViewWithTimeline(engine, meta, no_metadata, visible)
        partitions = {
            name: sorted(
                (_slice(item) for item in view.getLatestFileSlices(name).toArray()), key=lambda s: s["file_id"]
            )
            for name in partitions_on_disk(path)
        }
        view.close()
        return {
            "properties": read_properties(path),
            "timeline": [_instant(item) for item in meta.getActiveTimeline().getInstants()],
            "partitions": partitions,
        }

    @contextmanager
    def _configured(self, conf: dict[str, str]) -> Iterator[None]:
        """Session settings for the time of one job."""
        for key, value in conf.items():
            self.spark.conf.set(key, value)
        try:
            yield
        finally:
            for key in conf:
                self.spark.conf.unset(key)

    def _continue(self, path: str) -> dict[str, str]:
        """Write options that follow from hoodie.properties, with no upgrade of the table."""
        properties = read_properties(path)
        options = {
            "hoodie.table.name": properties["hoodie.table.name"],
            DATASOURCE + "table.type": properties.get("hoodie.table.type", "COPY_ON_WRITE"),
        }
        options |= {ours: properties[theirs] for theirs, ours in FROM_PROPERTIES.items() if properties.get(theirs)}
        options |= {key: value for key, value in properties.items() if key.startswith(KEYGEN_PREFIXES)}
        if not self.version.startswith("0."):
            options["hoodie.write.table.version"] = properties["hoodie.table.version"]
            options["hoodie.write.auto.upgrade"] = "false"
        return options

    def _store(self, frame: Any, out: str) -> int:
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 (pyspark comes after Java)

        batches = frame._collect_as_arrow()
        table = pa.Table.from_batches(batches) if batches else to_arrow_schema(frame.schema).empty_table()
        pq.write_table(table, out)
        return int(table.num_rows)


def read_properties(path: str) -> dict[str, str]:
    """Keys and values of hoodie.properties, with the escapes of the properties format undone."""
    pairs = (
        line.split("=", 1)
        for line in Path(path, ".hoodie", "hoodie.properties").read_text().splitlines()
        if "=" in line and not line.startswith("#")
    )
    return {key.strip(): re.sub(r"\\(.)", r"\1", value.strip()) for key, value in pairs}


def partitions_on_disk(path: str) -> list[str]:
    """Relative folders that hold a partition metafile, sorted."""
    found = (item.parent for item in Path(path).rglob(".hoodie_partition_metadata*") if not item.name.endswith(".crc"))
    return sorted({"" if item == Path(path) else str(item.relative_to(path)) for item in found})


def _timeline(path: str) -> set[str]:
    folders = (Path(path, ".hoodie"), Path(path, ".hoodie", "timeline"))
    return {item.name for folder in folders if folder.is_dir() for item in folder.iterdir() if item.name[0].isdigit()}


def _instant(instant: Any) -> dict[str, str | None]:
    new = hasattr(instant, "requestedTime")
    try:
        requested, completed = instant.requestedTime(), instant.getCompletionTime()
    except Exception:
        requested, completed, new = instant.getTimestamp(), None, False
    state = instant.getState().name()
    return {
        "requested": requested,
        "action": instant.getAction(),
        "state": state,
        "completed": completed if new else None,
    }


def _slice(item: Any) -> dict[str, Any]:
    base = item.getBaseFile()
    return {
        "file_id": item.getFileId(),
        "base_instant": item.getBaseInstantTime(),
        "base_file": base.get().getFileName() if base.isPresent() else None,
        "log_files": [log.getFileName() for log in item.getLogFiles().toArray()],
    }


def cause_chain(error: BaseException, most: int = 6) -> list[str]:
    """The Java causes of a Spark or py4j error as short lines, outermost first; the Python text where there is none."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    lines: list[str] = []
    try:
        while java is not None and len(lines) < most:
            lines.append(re.sub(r"\s+", " ", java.toString())[:300])
            java = java.getCause()
    except Exception as broken:
        lines.append(f"(no further cause: {type(broken).__name__})")
    return lines or [re.sub(r"\s+", " ", f"{type(error).__name__}: {error}")[:300]]


def serve(jobs: Any, answers: TextIO) -> None:
    """Answers jobs from stdin until it ends."""
    for line in sys.stdin:
        request = json.loads(line)
        try:
            job: Callable[..., dict[str, Any]] = getattr(jobs, request.pop("job"))
            answer = {"ok": True, **job(**request)}
        except Exception as error:
            answer = {"ok": False, "error": cause_chain(error)}
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()


def own_stdout() -> TextIO:
    """The original stdout as a stream of its own; from now on anything else that is printed lands on stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    channel = own_stdout()
    serve(Jobs(sys.argv[1], sys.argv[2:]), channel)
