"""CPU seconds of what base files cost beside parquet itself: bloom filters, and writing with and without one.

Run: `python bench/records.py`. One core, no Spark, data made up on the spot; the best of three runs is printed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.records import BaseFileOptions, BaseFileWriter, BloomFilter, with_meta
from hoodie.storage import MemoryStorage

KEYS = 3_000_000
ROWS = 400_000


def main() -> None:
    """Print one line per figure."""
    pa.set_cpu_count(1)
    keys = record_keys(KEYS)
    show(f"bloom: add {KEYS} keys", lambda: BloomFilter.dynamic().add(keys))
    bloom = BloomFilter.dynamic(ROWS, max_entries=ROWS)
    bloom.add(keys[:ROWS])
    show(f"bloom: ask for {ROWS} keys that are in it", lambda: bloom.contains(keys[:ROWS]))
    show(f"bloom: ask for {ROWS} keys that are not", lambda: bloom.contains(keys[-ROWS:]))
    show("bloom: text", bloom.to_text)
    rows = table(keys[:ROWS])
    for name, options in (("with", BaseFileOptions()), ("without", BaseFileOptions(bloom=None))):
        show(f"base file: {ROWS} rows, {rows.nbytes // 10**6} MB, {name} filter", lambda o=options: write(rows, o))
    show("base file: 100 rows", lambda: write(rows.slice(0, 100), BaseFileOptions()))


def record_keys(count: int) -> pa.StringArray:
    """Keys as a complex key generator makes them, in the order of their first number."""
    orders = pa.array(np.sort(np.random.default_rng(0).integers(1, 6_000_000, count)))
    lines = pa.array(np.random.default_rng(1).integers(1, 8, count))
    parts = ("l_orderkey:", orders.cast(pa.string()), ",l_linenumber:", lines.cast(pa.string()), "")
    return pc.binary_join_element_wise(*parts)


def table(keys: pa.StringArray) -> pa.Table:
    """Rows with meta columns, numbers, a date, a few words and a text that never repeats."""
    chance, count = np.random.default_rng(2), len(keys)
    data = {
        "part": pa.array(chance.integers(0, 100_000, count)),
        "price": pa.array(chance.integers(100, 10**7, count)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(15, 2)),
        "day": pa.array(chance.integers(8000, 10500, count, dtype=np.int32)).cast(pa.date32()),
        "flag": pa.array(["A", "N", "R"]).take(pa.array(chance.integers(0, 3, count))),
        "comment": pc.binary_join_element_wise(keys, keys, " carefully "),
    }
    schema = with_meta(pa.schema([(name, values.type) for name, values in data.items()]))
    numbers = pa.array(np.arange(count)).cast(pa.string())
    one = [
        pa.repeat(text, count) for text in ("20261121060439123", "AIR", f"{'0' * 36}-0_0-1-2_20261121060439123.parquet")
    ]
    meta = [one[0], pc.binary_join_element_wise("20261121060439123_3_", numbers, ""), keys, one[1], one[2]]
    return pa.Table.from_arrays([*meta, *data.values()], schema=schema)


def write(rows: pa.Table, options: BaseFileOptions) -> None:
    """One base file in memory."""
    with BaseFileWriter(MemoryStorage("bench-records"), "f.parquet", rows.schema, options) as writer:
        writer.write(rows)


def show(what: str, work: Callable[[], object]) -> None:
    """Run `work` three times and print the least CPU time."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    print(f"{best:8.3f} s  {what}")


if __name__ == "__main__":
    main()
