"""hoodie on PySpark 4 (our environment), through the same calls a Hudi user makes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hudi_format import FAR_COLUMNS, WRITE, HudiFormat, fingerprint, table_options
from protocol import Inputs, serve, timed
from spark_peer import session_settings

import hoodie

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import metadata
import replace_metadata

_PARTITIONED = {WRITE + "partitionpath.field": "part", WRITE + "operation": "bulk_insert"}


class Ours(HudiFormat):
    """hoodie as its users call it, and the memory test."""

    def files(self, table: str) -> list[str]:
        return [f"{table}/{part.base.path}" for part in hoodie.Table.open(table).files() if part.base]

    def mark(self, table: str) -> Any:
        return hoodie.Table.open(table).timeline().completed()[-1].completed

    def look_up(self, folder: str, keys: list[str]) -> list[int]:
        found = hoodie.Table.open(folder).lookup(keys, columns=["number"]).read_all()
        return sorted(found.column("number").to_pylist())

    @property
    def append_options(self) -> dict[str, str]:
        return {"hoodie.parquet.small.file.limit": "0"}

    def run_clustering(self, table: str, options: dict[str, str]) -> None:
        hoodie.Table.open(table, spark=self.spark).services.cluster(**options)

    def run_stitching(self, table: str, how: str) -> None:
        least = 1 << 20 if how == "copy" else 1 << 40
        services = hoodie.Table.open(table, spark=self.spark).services
        services.compact_base_files(**{"hoodie.row.group.copy.min.bytes": str(least)})

    def run_compaction(self, table: str) -> None:
        hoodie.Table.open(table, spark=self.spark).compact()

    def run_clean(self, table: str) -> None:
        hoodie.Table.open(table, spark=self.spark).clean()

    def run_archive(self, table: str) -> None:
        hoodie.Table.open(table, spark=self.spark).archive()

    def replace_metadata(self, with_stats: bool, repeat: int) -> dict[str, Any]:
        """Encoding and decoding of the metadata of a large replacement: a step with two halves, in this process."""
        found = replace_metadata.replace_metadata(with_stats=with_stats, repeat=repeat)
        self.parts = {"encode": found["encode"], "decode": found["decode"]}
        return {"seconds": [sum(pair) for pair in zip(found["encode"], found["decode"], strict=True)], **found}

    def list_files(self, folder: str, repeat: int) -> dict[str, Any]:
        """A new process that opens the table and lists its latest base files; imports included, no Spark."""
        answers = [metadata.run(metadata.LISTING, folder).split() for _ in range(repeat)]
        return {"seconds": [float(seconds) for _, seconds in answers], "files": int(answers[0][0])}

    def far_local_load(self, table: str) -> dict[str, Any]:
        """The same table by the local engine."""
        self._far_local(table, "bulk_insert", "small")
        for number in range(3):
            self.far_local_upsert(table, number)
        return {"seconds": []}

    def far_local_upsert(self, table: str, number: int) -> dict[str, Any]:
        """100 rows into it, by the local engine."""
        return {"seconds": self._far_local(table, "upsert", f"small_change_{number}")}

    def far_local_rows(self, table: str) -> dict[str, Any]:
        """What all its rows are."""
        rows = hoodie.Table.open(table, options=self._far_options).scan(columns=FAR_COLUMNS).read_all()
        return {"seconds": [], "check": {"rows": fingerprint(zip(*rows.to_pydict().values(), strict=True))}}

    def _far_local(self, table: str, operation: str, change: str) -> list[float]:
        options = {**table_options(table), **self._far_options, WRITE + "operation": operation}

        def write() -> None:
            rows = pq.read_table(self.inputs.file(change))
            hoodie.table.write(hoodie.table.as_source(rows), table, options, "append")

        return timed(write)[0]

    def many_partitions(self, rows: int, few: int, many: int) -> dict[str, Any]:
        """So many rows into many partitions and into few, by the local engine: a step with two halves."""
        base = pq.read_table(self.inputs.file("base")).slice(0, rows)
        # Neighbours in the input go to different partitions, and all partitions get about the same number of rows.
        spread = np.arange(base.num_rows, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(33)

        def insert(count: int) -> list[float]:
            names = pc.binary_join_element_wise("p", pa.array(spread % np.uint64(count)).cast(pa.string()), "")
            return self._bulk_insert_local(base.append_column("part", names))

        return self._many_and_few(insert, few, many)

    def many_partitions_spark(self, rows: int, few: int, many: int) -> dict[str, Any]:
        """About so many rows into many partitions and into few, by Spark: a step with two halves."""
        base = self._input("base")
        every = max(1, base.count() // rows)
        chosen = base.where(f"pmod(xxhash64(l_linenumber, l_orderkey), {every}) = 0")
        table = self.inputs.table("partitioned")
        options = {**table_options(table), **_PARTITIONED}

        def insert(count: int) -> list[float]:
            frame = chosen.selectExpr("*", f"concat('p', pmod(xxhash64(l_orderkey, l_linenumber), {count})) as part")
            seconds, _ = timed(lambda: frame.write.format("hudi").options(**options).mode("append").save(table))
            shutil.rmtree(table)
            return seconds

        return self._many_and_few(insert, few, many)

    def _many_and_few(self, insert: Callable[[int], list[float]], few: int, many: int) -> dict[str, Any]:
        self.parts = {"few_partitions": insert(few)}
        return {"seconds": insert(many)}

    def _bulk_insert_local(self, rows: pa.Table) -> list[float]:
        table = self.inputs.table("partitioned")
        options = {**table_options(table), **_PARTITIONED}
        source = hoodie.table.as_source(rows)
        seconds, _ = timed(lambda: hoodie.table.write(source, table, options, "append"))
        shutil.rmtree(table)
        return seconds

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


def make(inputs: Inputs) -> Ours:
    """The peer in a session of ours with the settings that all peers get."""
    spark = hoodie.session("bench-hoodie", **session_settings(inputs))
    spark.sparkContext.setLogLevel("ERROR")
    return Ours(inputs, spark)


if __name__ == "__main__":
    serve(make)
