"""hudi-rs (the `hudi` package) behind a pipe, same protocol as hudi_server.py (runs in the compat environment).

A panic of the Rust code is an answer like any other error; where it takes the process down, the client says so.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hudi import HudiQueryType, HudiReadOptions, HudiTable
from hudi_server import own_stdout, serve


class Jobs:
    """One method per job; arguments and answers are JSON values."""

    def ping(self) -> dict[str, Any]:
        return {"version": "hudi-rs"}

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
    ) -> dict[str, Any]:
        chosen = HudiReadOptions()
        if query == "incremental":
            chosen = chosen.with_query_type(HudiQueryType.Incremental).with_start_timestamp(begin or "0")
            chosen = chosen.with_end_timestamp(end) if end else chosen
        elif query == "time_travel":
            chosen = chosen.with_as_of_timestamp(as_of)
        if options:
            chosen = chosen.with_hudi_options(options)
        try:
            batches = [pa.record_batch(batch) for batch in HudiTable(path).read(chosen)]
        except BaseException as error:  # a Rust panic is not an Exception
            raise RuntimeError(f"{type(error).__name__}: {error}") from None
        table = pa.Table.from_batches(batches) if batches else pa.table({})
        pq.write_table(table, out)
        return {"rows": table.num_rows}


if __name__ == "__main__":
    serve(Jobs(), own_stdout())
