"""deltalake (delta-rs): a table format without a JVM (environment of its own)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from protocol import Inputs, serve, timed

KEYS = ("l_orderkey", "l_linenumber", "l_shipmode")
SAME_ROW = " AND ".join(f"t.{column} = s.{column}" for column in KEYS)
SCAN_COLUMNS = ["l_returnflag", "l_linestatus", "l_quantity", "l_extendedprice", "l_discount", "l_tax", "change_seq"]


class DeltaRs:
    """The steps of the benchmark by the Python API; scans by pyarrow."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        pa.set_cpu_count(inputs.cores)

    def warm_up(self) -> dict[str, Any]:
        table = self.inputs.table("small")
        self._load("small", table)
        for number in range(3):
            self._merge(f"small_change_{number}", table)
        return {"seconds": [], "version": f"deltalake {deltalake.__version__}"}

    def bulk_insert(self) -> dict[str, Any]:
        table = self.inputs.table("large")
        seconds, _ = timed(lambda: self._load("base", table))
        return {"seconds": seconds, **self._size(table)}

    def upsert(self, change: str) -> dict[str, Any]:
        table = self.inputs.table("large")
        seconds, _ = timed(lambda: self._merge(change, table))
        return {"seconds": seconds, **self._size(table)}

    def small_upserts(self, repeat: int) -> dict[str, Any]:
        table, seconds = self.inputs.table("small"), []
        for number in range(repeat):
            seconds += timed(lambda number=number: self._merge(f"small_change_{number % 10}", table))[0]
        return {"seconds": seconds, "check": {"rows": deltalake.DeltaTable(table).to_pyarrow_dataset().count_rows()}}

    def small_log_upserts(self, repeat: int) -> dict[str, Any]:
        return {"seconds": []}

    def empty_job(self, repeat: int) -> dict[str, Any]:
        return {"seconds": []}

    def scan_cold(self) -> dict[str, Any]:
        seconds, _ = timed(self._aggregate)
        return {"seconds": seconds}

    def scan_warm(self) -> dict[str, Any]:
        return {"seconds": timed(self._aggregate, 5)[0]}

    def scan_plain(self) -> dict[str, Any]:
        return {"seconds": []}

    def point_query(self, orderkey: int, linenumber: int) -> dict[str, Any]:
        row = (pc.field("l_orderkey") == orderkey) & (pc.field("l_linenumber") == linenumber)
        table = self.inputs.table("large")
        seconds, found = timed(
            lambda: deltalake.DeltaTable(table).to_pyarrow_dataset().to_table(columns=["l_comment"], filter=row), 3
        )
        return {"seconds": seconds, "check": {"point": found.column(0).to_pylist()}}

    def incremental(self) -> dict[str, Any]:
        return {"seconds": []}

    def close(self) -> None:
        """Nothing is kept open."""

    def _load(self, source: str, table: str) -> None:
        shutil.rmtree(table, ignore_errors=True)
        rows = pq.ParquetFile(self.inputs.file(source)) if Path(self.inputs.file(source)).is_file() else None
        batches = rows.iter_batches(131_072) if rows else self._batches(source)
        schema = rows.schema_arrow if rows else self._dataset(source).schema
        deltalake.write_deltalake(
            table, pa.RecordBatchReader.from_batches(schema, batches), partition_by=["l_shipmode"], mode="overwrite"
        )

    def _batches(self, source: str) -> Any:
        return self._dataset(source).to_batches(batch_size=131_072)

    def _dataset(self, source: str) -> Any:
        import pyarrow.dataset as ds  # noqa: PLC0415 (slow to import, rarely needed)

        return ds.dataset(self.inputs.file(source))

    def _merge(self, change: str, table: str) -> None:
        merger = deltalake.DeltaTable(table).merge(
            pq.read_table(self.inputs.file(change)), SAME_ROW, source_alias="s", target_alias="t"
        )
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def _aggregate(self) -> pa.Table:
        rows = deltalake.DeltaTable(self.inputs.table("large")).to_pyarrow_dataset().to_table(columns=SCAN_COLUMNS)
        sums = [(column, "sum") for column in ("l_quantity", "l_extendedprice", "change_seq")]
        return rows.group_by(["l_returnflag", "l_linestatus"]).aggregate([*sums, ("l_tax", "mean"), ([], "count_all")])

    def _size(self, table: str) -> dict[str, Any]:
        sizes = pa.table(deltalake.DeltaTable(table).get_add_actions(flatten=True)).column("size_bytes")
        return {"files": len(sizes), "bytes": pc.sum(sizes).as_py()}


if __name__ == "__main__":
    serve(DeltaRs)
