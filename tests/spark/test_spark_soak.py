"""Months of a stream in minutes: small micro-batches into a merge-on-read table that looks after itself.

`make soak` runs 1 000 commits; a test run takes a few, which show everything but times and memory.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.timeline import load_history

pytestmark = [pytest.mark.spark, pytest.mark.long]

COMMITS = int(os.environ.get("HOODIE_SOAK_STREAM_COMMITS", "40"))
ROWS = 50
KEYS = 1_000
MEASURED_FROM = 300
WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "events",
    WRITE + "table.type": "MERGE_ON_READ",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "part",
    WRITE + "precombine.field": "ts",
    "hoodie.metadata.enable": "true",
    "hoodie.compact.inline": "true",
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
}


def batch_rows(number: int) -> pa.Table:
    """Rows of a micro-batch: every key comes again after some batches, with a larger `ts`."""
    ids = [(number * ROWS + place) * 7 % KEYS for place in range(ROWS)]
    parts = [f"p{one % 4}" for one in ids]
    return pa.table({"id": ids, "part": parts, "ts": [number] * ROWS, "text": [f"{number}-{one}" for one in ids]})


def make_inbox(folder: Path) -> str:
    folder.mkdir()
    for number in range(COMMITS):
        path = folder / f"{number:06d}.parquet"
        pq.write_table(batch_rows(number), path)
        os.utime(path, (number, number))  # the file source takes files in the order of their times
    return str(folder)


def test_a_stream_of_small_commits_stays_fast_small_and_complete(spark: SparkSession, tmp_path: Path) -> None:
    inbox, base = make_inbox(tmp_path / "inbox"), str(tmp_path / "events")
    me = psutil.Process()
    memory: list[int] = []

    class Watch:
        """Notes this process's memory (MiB) when a batch is done."""

        def __call__(self) -> None:
            memory.append(me.memory_info().rss >> 20)

    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(COMMITS + 10))
    frame = spark.readStream.schema("id long, part string, ts long, text string").option("maxFilesPerTrigger", 1)
    writer = frame.parquet(inbox).writeStream.format("hudi").options(**OPTIONS)
    query = writer.option("checkpointLocation", str(tmp_path / "ck")).trigger(availableNow=True).start(base)
    watch = Watch()
    while not query.awaitTermination(2):
        watch()
    watch()
    assert query.exception() is None

    expected: dict[int, tuple[int, str]] = {}
    for number in range(COMMITS):
        for row in batch_rows(number).to_pylist():
            expected[row["id"]] = (row["ts"], row["text"])
    table = hoodie.Table.open(base)
    stored = table.scan(columns=["id", "ts", "text"]).read_all().to_pylist()
    assert {row["id"]: (row["ts"], row["text"]) for row in stored} == expected
    assert len(stored) == len(expected)
    assert table.validate() == []

    timeline = table.timeline()
    archived = {one.instant.requested for one in load_history(table.storage, timeline.profile)}
    written = {one.requested for one in timeline.completed() if one.action == "deltacommit"}
    assert any(one.action == "commit" for one in timeline.completed()), "no compaction ran"
    assert any(one.action == "clean" for one in timeline.completed()) or COMMITS < 20
    assert me.num_fds() < 100, "connections or files were left open"
    print(f"\n{COMMITS} commits: {len(timeline.instants)} instants active, {len(written)} of them delta commits")
    if COMMITS >= 40:
        assert archived, "nothing was archived"
        assert len(timeline.completed_writes()) <= 60
    durations = [one["durationMs"] for one in query.recentProgress if one["numInputRows"]]
    assert len(durations) == COMMITS
    # Spark's own notes of a stream (offsets, files seen) take longer with every batch, whatever the sink is.
    times = [one["addBatch"] / 1000 for one in durations]
    triggers = [one["triggerExecution"] / 1000 for one in durations]
    if len(times) >= MEASURED_FROM:
        first, last = statistics.mean(times[:100]), statistics.mean(times[-100:])
        print(f"first hundred {first:.3f} s, last hundred {last:.3f} s, {last / first:.2f}x; memory {memory[::20]} MiB")
        whole = statistics.mean(triggers[:100]), statistics.mean(triggers[-100:])
        print(f"with Spark's own notes {whole[0]:.3f} s, {whole[1]:.3f} s; {me.num_fds()} open files")
        assert last <= 1.3 * first
        assert memory[-1] <= 1.25 * memory[len(memory) // 4]
